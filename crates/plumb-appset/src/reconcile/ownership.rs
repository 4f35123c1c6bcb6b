//! Whose an Application is.

use plumb_crd::ApplicationSet;
use serde_json::{Value as Json, json};

/// The owner reference with `controller: true`.
fn controller(application: &Json) -> Option<&Json> {
    let owners = application["metadata"]["ownerReferences"].as_array()?;
    owners.iter().find(|owner| owner["controller"] == true)
}

/// The set that controls an Application, by its name.
pub fn owner_of(application: &Json) -> Option<&str> {
    let owner = controller(application)?;
    let is_set = owner["kind"] == ApplicationSet::KIND
        && owner["apiVersion"].as_str().is_some_and(|version| version.starts_with("argoproj.io/"));
    if is_set { owner["name"].as_str() } else { None }
}

/// True if the set controls the Application. As in Argo CD the name decides, so that a set that was created again
/// finds its Applications.
pub fn is_owned_by(application: &Json, set: &ApplicationSet) -> bool {
    application["metadata"]["namespace"].as_str().unwrap_or_default() == set.metadata.namespace
        && owner_of(application) == Some(set.metadata.name.as_str())
}

pub(super) fn reference(set: &ApplicationSet) -> Json {
    json!({
        "apiVersion": ApplicationSet::API_VERSION,
        "blockOwnerDeletion": true,
        "controller": true,
        "kind": ApplicationSet::KIND,
        "name": set.metadata.name,
        "uid": set.metadata.uid,
    })
}

/// The owners of an Application, with the set as its controller; or why it cannot become that.
pub(super) fn adopted(set: &ApplicationSet, live: &Json) -> Result<Json, String> {
    let mut owners = live["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
    let ours = reference(set);
    let is_ours = |owner: &&mut Json| owner["kind"] == ours["kind"] && owner["name"] == ours["name"];
    if let Some(owner) = owners.iter_mut().find(is_ours) {
        *owner = ours;
        return Ok(Json::Array(owners));
    }
    if let Some(other) = controller(live) {
        let name = other["name"].as_str().unwrap_or_default();
        let kind = other["kind"].as_str().unwrap_or_default();
        let (namespace, app) =
            (&set.metadata.namespace, live["metadata"]["name"].as_str().unwrap_or_default());
        return Err(format!(
            "error while wrapping using MutateFn: Object {namespace}/{app} is already owned by another {kind} \
             controller {name}"
        ));
    }
    owners.push(ours);
    Ok(Json::Array(owners))
}
