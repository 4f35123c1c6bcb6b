//! A plan while it is made.

use plumb_core::app::ClusterRef;
use plumb_core::object::ObjectKey;
use plumb_crd::Application;
use serde_json::{Value, json};

use super::PlanRequest;
use crate::object_ref::object_ref;
use crate::trouble::short;

/// Kinds whose deletion loses data that no copy brings back.
pub(super) const DATA: [&str; 4] =
    ["PersistentVolumeClaim", "PersistentVolume", "Namespace", "CustomResourceDefinition"];
/// More deletions than this, and more than half of the objects, need the name of the app.
pub(super) const MANY: usize = 5;

/// The steps and words of a plan while it is made.
#[derive(Default)]
pub(super) struct Draft {
    pub(super) steps: Vec<Value>,
    pub(super) notes: Vec<String>,
    pub(super) hurdle: Option<String>,
    pub(super) button: String,
    pub(super) undo: String,
    pub(super) typed: bool,
    pub(super) commands: Vec<String>,
}

pub(super) fn name_of(app: &Application) -> String {
    if app.metadata.namespace == "argocd" {
        app.metadata.name.clone()
    } else {
        format!("{}/{}", app.metadata.namespace, app.metadata.name)
    }
}

pub(super) fn step(key: &ObjectKey, what: &str, why: &str, wave: i64) -> Value {
    let mut step = object_ref(key);
    step["what"] = json!(what);
    step["why"] = json!(short(why));
    step["wave"] = json!(wave);
    step
}

pub(super) fn refuse_busy(draft: &mut Draft, app: &Application) {
    if app.operation.is_some() {
        draft.hurdle = Some("another operation runs; wait for it or terminate it".to_owned());
    }
    if app.metadata.deletion_timestamp.is_some() {
        draft.hurdle = Some("the Application is being deleted".to_owned());
    }
}

pub(super) fn one_object<'r>(draft: &mut Draft, request: &'r PlanRequest) -> Option<&'r ObjectKey> {
    let object = request.objects.first();
    if object.is_none() {
        draft.hurdle = Some("name an object".to_owned());
    }
    object
}

/// The command that annotates an Application.
pub(super) fn kubectl_annotate(app: &Application, annotation: &str) -> String {
    let (namespace, name) = (&app.metadata.namespace, &app.metadata.name);
    format!("kubectl -n {namespace} annotate application {name} {annotation}")
}

/// Kind and name of an object as kubectl takes them. A kind alone may be that of another group.
pub(super) fn kubectl_object(key: &ObjectKey) -> String {
    let group = if key.group.is_empty() { String::new() } else { format!(".{}", key.group) };
    format!("{}{group}/{}", key.kind.to_lowercase(), key.name)
}

/// Says where a command of kubectl must run, if the objects of the app are in another cluster than plumb.
pub(super) fn note_cluster(draft: &mut Draft, app: &Application) {
    let destination = &app.spec.destination;
    let named = if destination.name.is_empty() { &destination.server } else { &destination.name };
    if named.is_empty() || named == "in-cluster" || named == ClusterRef::IN_CLUSTER_SERVER {
        return;
    }
    draft.notes.push(format!("The command of kubectl must run against the cluster {named}."));
}

/// A word for a shell.
pub(super) fn quoted(text: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:@".contains(letter);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", short(text).replace('\'', "'\\''"))
}
