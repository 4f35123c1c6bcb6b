//! What the API server would make of manifests: a dry run of each.

use std::sync::Arc;

use plumb_api::Status;
use plumb_core::object::{Manifest, ObjectKey};
use plumb_core::tracking::FIELD_MANAGER;
use plumb_crd::Application;
use plumb_crd::application::ResourceStatus;
use plumb_kube::{ApplyOptions, ClusterClient};
use serde_json::{Value, json};

use super::mask::masks_for;
use super::resource::{client_of, without_managed_fields};
use crate::backend::of_api;
use crate::call::{Answer, Call};

/// Most objects of one request.
const MOST: usize = 2_000;

/// One object of the request.
struct Pair {
    key: ObjectKey,
    target: Option<Manifest>,
}

/// Compares the objects of an app with what their manifests would make of them.
pub(super) async fn diff(call: Arc<Call>) -> Result<Answer, Status> {
    let app = call.app()?;
    let typed = app.typed()?;
    let pairs = pairs(&call, &typed)?;
    let leader = call.leader()?;
    let (client, runtime) = client_of(&call, app)?;
    let mut items = Vec::new();
    let mut is_modified = false;
    for Pair { key, target } in pairs {
        // What the cluster has counts, not what the caller says that it has.
        let live = leader.live(&typed, &key).await.map_err(Status::unavailable)?;
        let kinds = target.iter().chain(&live).map(Manifest::gvk).collect();
        let masks = masks_for(&call, &typed, kinds, &[]).await?;
        let live = live.map(Manifest::into_value);
        let client = client.clone();
        let predicted = match target {
            None => None,
            Some(target) => {
                let gvk = target.gvk();
                let is_new = live.is_none();
                let run = runtime.spawn(async move { dry_run(&client, &target, is_new).await });
                let run = run.await.map_err(|_| Status::unavailable("the request was aborted"))?;
                // The error of such an object may quote its values.
                let run = run.map_err(|status| {
                    if masks.covers(&gvk) {
                        Status::new(status.code, format!("cannot try the {}", gvk.kind))
                    } else {
                        status
                    }
                })?;
                Some(run.into_value())
            }
        };
        let differs = live.as_ref().map(comparable) != predicted.as_ref().map(comparable);
        is_modified |= differs;
        let shown = |object: Option<&Value>, other: Option<&Value>| {
            object.map_or_else(
                || "null".to_owned(),
                |object| masks.hide_beside(without_managed_fields(object.clone()), other).to_string(),
            )
        };
        let (predicted, live) = (shown(predicted.as_ref(), live.as_ref()), shown(live.as_ref(), None));
        items.push(json!({
            "group": key.group, "kind": key.kind, "namespace": key.namespace_or_empty(), "name": key.name,
            "targetState": predicted, "liveState": live, "modified": differs,
        }));
    }
    Ok(Answer::One(json!({"items": items, "modified": is_modified})))
}

/// The pairs of the request. An object must be one of the app; a manifest must be of its object, and permitted.
fn pairs(call: &Call, app: &Application) -> Result<Vec<Pair>, Status> {
    let live = call.request.get("liveResources").and_then(Value::as_array).cloned().unwrap_or_default();
    let targets = call.texts("targetManifests");
    if live.len().max(targets.len()) > MOST {
        return Err(Status::invalid("too many objects in one request"));
    }
    let managed: Vec<ObjectKey> = app.status.resources.iter().map(ResourceStatus::key).collect();
    let mut pairs = Vec::new();
    for index in 0..live.len().max(targets.len()) {
        let target = targets.get(index).filter(|text| !text.is_empty() && *text != "null");
        let target = target.map(|text| read(text)).transpose()?;
        let given = live.get(index).filter(|given| !given["name"].as_str().unwrap_or_default().is_empty());
        let key = match (given.map(key_of), target.as_ref().and_then(Manifest::key)) {
            (Some(given), of_target) => {
                if !managed.contains(&given) {
                    return Err(Status::denied());
                }
                if of_target.is_some_and(|of_target| of_target != given) {
                    return Err(Status::invalid(format!("the manifest at {index} is not of {given}")));
                }
                given
            }
            (None, Some(of_target)) => of_target,
            (None, None) => {
                return Err(Status::invalid(format!("entry {index} has neither object nor manifest")));
            }
        };
        if let Some(why) = target.as_ref().and_then(|_| call.leader().ok()?.denies(app, &key)) {
            return Err(Status::new(plumb_api::Code::PermissionDenied, why));
        }
        pairs.push(Pair { key, target });
    }
    Ok(pairs)
}

fn read(text: &str) -> Result<Manifest, Status> {
    let value = serde_json::from_str(text)
        .map_err(|error| Status::invalid(format!("cannot read a manifest: {error}")))?;
    Manifest::new(value).map_err(|error| Status::invalid(format!("cannot read a manifest: {error}")))
}

fn key_of(given: &Value) -> ObjectKey {
    let text = |field: &str| given[field].as_str().unwrap_or_default().to_owned();
    let namespace = Some(text("namespace")).filter(|namespace| !namespace.is_empty());
    ObjectKey::new(text("group"), text("kind"), namespace, text("name"))
}

async fn dry_run(client: &ClusterClient, target: &Manifest, is_new: bool) -> Result<Manifest, Status> {
    let tried = if is_new {
        client.dry_run_create(target, FIELD_MANAGER).await
    } else {
        client.dry_run_apply(target, &ApplyOptions::default()).await
    };
    tried.map(|applied| applied.manifest).map_err(|error| of_api(&error))
}

/// An object without what changes with each write.
fn comparable(object: &Value) -> Value {
    let mut object = without_managed_fields(object.clone());
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in ["resourceVersion", "generation"] {
            metadata.remove(field);
        }
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_each_write_changes_is_no_difference() {
        let object = |version: &str, size: u32| json!({"metadata": {"name": "a", "resourceVersion": version, "managedFields": []}, "size": size});
        assert_eq!(comparable(&object("1", 3)), comparable(&object("2", 3)));
        assert_ne!(comparable(&object("1", 3)), comparable(&object("1", 4)));
    }
}
