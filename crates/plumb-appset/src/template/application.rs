//! Renders one Application.

use plumb_crd::application::ApplicationSpec;
use plumb_crd::application_set::{ApplicationSet, ApplicationSetTemplate};
use plumb_crd::wire::Wire as _;
use serde_json::{Value as Json, json};

use super::patch;
use crate::error::GenerationError;
use crate::params::Params;
use crate::render::{Renderer, Session};

/// The finalizer that makes a deleted Application delete its objects.
pub(super) const RESOURCES_FINALIZER: &str = "resources-finalizer.argocd.argoproj.io";

/// Renders a template with one parameter set: `metadata`, `spec` and perhaps `operation`.
pub(crate) fn render(
    set: &ApplicationSet,
    template: &ApplicationSetTemplate,
    renderer: &Renderer,
    params: &Params,
) -> Result<Json, GenerationError> {
    let session = renderer.session(params).map_err(GenerationError::render)?;
    let mut application = if params.is_empty() {
        // Argo CD returns the template as it is, without the default finalizer.
        from_template(&template.metadata.write(), &template.spec.write())
    } else {
        let mut complete = rendered(&session, template).map_err(GenerationError::render)?;
        add_finalizer(set, &mut complete);
        complete
    };
    if let Some(text) = set.spec.template_patch.as_deref() {
        let text = session.text(text).map_err(GenerationError::render);
        let text = text.map_err(|error| error.during("error replacing values in templatePatch"))?;
        patch::apply(&mut application, &text).map_err(GenerationError::render)?;
    }
    application["metadata"]["namespace"] = Json::from(set.metadata.namespace.as_str());
    normal_form(&mut application)?;
    Ok(application)
}

fn rendered(session: &Session<'_>, template: &ApplicationSetTemplate) -> Result<Json, String> {
    let metadata = session.json(&template.metadata.write(), "metadata")?;
    let spec = session.json(&template.spec.write(), "spec")?;
    Ok(from_template(&metadata, &spec))
}

fn from_template(metadata: &Json, spec: &Json) -> Json {
    let mut application = json!({"metadata": metadata, "spec": spec});
    if application["metadata"].get("name").is_none() {
        application["metadata"]["name"] = Json::from("");
    }
    application
}

fn add_finalizer(set: &ApplicationSet, application: &mut Json) {
    let preserves = set.spec.sync_policy.as_ref().is_some_and(|policy| policy.preserve_resources_on_deletion);
    let metadata = &mut application["metadata"];
    let has_finalizers =
        metadata.get("finalizers").and_then(Json::as_array).is_some_and(|list| !list.is_empty());
    if !has_finalizers && !preserves {
        metadata["finalizers"] = json!([RESOURCES_FINALIZER]);
    }
}

/// Only known fields, and none that is empty.
fn normal_form(application: &mut Json) -> Result<(), GenerationError> {
    let spec = ApplicationSpec::read(&application["spec"]).map_err(|error| {
        GenerationError::render(format!("cannot read the rendered Application: spec.{error}"))
    })?;
    application["spec"] = spec.write();
    if let Some(metadata) = application["metadata"].as_object_mut() {
        metadata.retain(|key, value| key == "name" || !is_empty(value));
    }
    Ok(())
}

fn is_empty(json: &Json) -> bool {
    match json {
        Json::Null => true,
        Json::String(text) => text.is_empty(),
        Json::Array(items) => items.is_empty(),
        Json::Object(map) => map.is_empty(),
        Json::Bool(_) | Json::Number(_) => false,
    }
}
