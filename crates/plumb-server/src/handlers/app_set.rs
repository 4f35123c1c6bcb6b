//! `ApplicationSets`.

use std::sync::Arc;

use plumb_api::{Code, Status};
use plumb_core::object::merge_patch;
use plumb_crd::ApplicationSet;
use serde_json::{Map, Value, json};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;

use super::selector::Selector;
use super::watch::{PATIENCE, send};
use crate::app_feed::without_kind;
use crate::backend::{Known, of_api};
use crate::call::{Answer, Call, app_object};
use crate::set_feed::SetEvent;

/// How many messages wait for a reader.
const WAITING: usize = 64;

/// How often a change is tried again after a conflict.
const TRIES: usize = 5;

/// The project that the Applications of a set are in.
fn project_of(set: &Value) -> String {
    match set.pointer("/spec/template/spec/project").and_then(Value::as_str) {
        None | Some("") => "default".to_owned(),
        Some(project) => project.to_owned(),
    }
}

fn text<'v>(value: &'v Value, path: &str) -> &'v str {
    value.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

/// A set as permissions name it.
fn object(call: &Call, set: &Value) -> String {
    let (namespace, name) = (text(set, "/metadata/namespace"), text(set, "/metadata/name"));
    app_object(&project_of(set), namespace, name, call.namespace())
}

async fn ready(call: &Call) -> Result<(), Status> {
    let anywhere = call.leader()?.has_sets_anywhere();
    call.shared.sets.ready((!anywhere).then(|| call.namespace().to_owned())).await
}

/// The namespace that the request means.
fn namespace(call: &Call) -> String {
    let asked = ["appsetNamespace", "appSetNamespace"].into_iter().map(|field| call.text(field));
    match asked.into_iter().find(|namespace| !namespace.is_empty()) {
        None => call.namespace().to_owned(),
        Some(namespace) => namespace.to_owned(),
    }
}

/// The set of the request. One that does not exist and one that the caller may not use look the same, unless the caller
/// may use sets of this name in every project: then nothing can be hidden.
async fn asked(call: &Call, action: &str) -> Result<Arc<Value>, Status> {
    ready(call).await?;
    let (namespace, name) = (namespace(call), call.text("name"));
    if !call.leader()?.permits_set_namespace(&namespace) {
        return Err(Status::denied());
    }
    let Some(set) = call.shared.sets.get(&namespace, name) else {
        let projects = call.shared.state.projects();
        let sees_all = !projects.is_empty()
            && projects.iter().all(|project| {
                let project = project.name().unwrap_or_default();
                let object = app_object(project, &namespace, name, call.namespace());
                call.allows("applicationsets", action, &object)
            });
        return Err(if sees_all {
            Status::not_found(format!("applicationsets.argoproj.io \"{name}\" not found"))
        } else {
            Status::denied()
        });
    };
    call.require("applicationsets", action, &object(call, &set))?;
    Ok(set)
}

pub(super) async fn get(call: Arc<Call>) -> Result<Answer, Status> {
    asked(&call, "get").await.map(|set| Answer::One(without_kind(Value::clone(&set))))
}

/// Which sets a request means.
struct SetFilter {
    name: String,
    namespace: String,
    projects: Vec<String>,
    selector: Selector,
}

impl SetFilter {
    fn of(call: &Call) -> Result<Self, Status> {
        let named = call.text("name");
        let asked = [call.text("appsetNamespace"), call.text("appSetNamespace")];
        let namespace = asked.into_iter().find(|namespace| !namespace.is_empty());
        // A name alone means the set in the control-plane namespace.
        let default = if named.is_empty() { "" } else { call.namespace() };
        Ok(Self {
            name: named.to_owned(),
            namespace: namespace.unwrap_or(default).to_owned(),
            projects: call.texts("projects"),
            selector: Selector::parse(call.text("selector"))?,
        })
    }

    /// True if the request means this set and the caller may see it.
    fn shows(&self, call: &Call, set: &Value) -> bool {
        let labels = set.pointer("/metadata/labels").and_then(Value::as_object).into_iter().flatten();
        let labels =
            labels.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect();
        (self.name.is_empty() || self.name == text(set, "/metadata/name"))
            && (self.namespace.is_empty() || self.namespace == text(set, "/metadata/namespace"))
            && (self.projects.is_empty() || self.projects.contains(&project_of(set)))
            && self.selector.matches(&labels)
            && call.allows("applicationsets", "get", &object(call, set))
    }
}

pub(super) async fn list(call: Arc<Call>) -> Result<Answer, Status> {
    ready(&call).await?;
    let filter = SetFilter::of(&call)?;
    let leader = call.leader()?;
    let mut seen = call.shared.sets.all();
    seen.retain(|set| {
        leader.permits_set_namespace(text(set, "/metadata/namespace")) && filter.shows(&call, set)
    });
    seen.sort_by(|one, other| text(one, "/metadata/name").cmp(text(other, "/metadata/name")));
    let items: Vec<Value> = seen.iter().map(|set| without_kind(Value::clone(set))).collect();
    Ok(Answer::One(json!({"metadata": {}, "items": items})))
}

/// The changes of the sets that the request means and the caller may see. Rights are checked for each change.
pub(super) async fn watch(call: Arc<Call>) -> Result<Answer, Status> {
    ready(&call).await?;
    let filter = SetFilter::of(&call)?;
    // First the subscription, then the list: no change is lost between them.
    let mut changes = call.shared.sets.subscribe();
    let mut first = Vec::new();
    if !filter.name.is_empty() || call.text("resourceVersion").is_empty() {
        let known = call.shared.sets.all();
        let shown = known.iter().filter(|set| filter.shows(&call, set));
        first.extend(shown.map(|set| SetEvent::new("ADDED", Value::clone(set))));
    }
    let (sender, receiver) = mpsc::channel(WAITING);
    tokio::spawn(async move {
        for event in first {
            if !send(&sender, event.item).await {
                return;
            }
        }
        loop {
            let event = tokio::select! {
                event = changes.recv() => event,
                () = sender.closed() => return,
            };
            match event {
                Ok(event) => {
                    if filter.shows(&call, event.set()) && !send(&sender, event.item).await {
                        return;
                    }
                }
                Err(RecvError::Lagged(_) | RecvError::Closed) => {
                    let slow = Status::unavailable("the client reads too slowly; it has to start over");
                    let _ = sender.send_timeout(Err(slow), PATIENCE).await;
                    return;
                }
            }
        }
    });
    Ok(Answer::Stream(receiver))
}

/// The set of a request as it would be stored. Its status never counts.
fn sent(call: &Call, field: &str) -> Result<Value, Status> {
    let sent = call.request.get(field).filter(|sent| sent.is_object());
    let sent = sent.ok_or_else(|| {
        Status::invalid("error creating ApplicationSets: ApplicationSets is nil in request")
    })?;
    let mut metadata = Map::new();
    for name in ["name", "labels", "annotations", "finalizers"] {
        if let Some(value) = sent.pointer(&format!("/metadata/{name}")).filter(|value| !value.is_null()) {
            metadata.insert(name.to_owned(), value.clone());
        }
    }
    let namespace = match text(sent, "/metadata/namespace") {
        "" => call.namespace(),
        namespace => namespace,
    };
    metadata.insert("namespace".to_owned(), json!(namespace));
    let object = json!({
        "apiVersion": ApplicationSet::API_VERSION, "kind": ApplicationSet::KIND,
        "metadata": metadata, "spec": sent.get("spec").cloned().unwrap_or_else(|| json!({})),
    });
    if text(&object, "/metadata/name").is_empty() {
        return Err(Status::invalid("error creating ApplicationSets: the ApplicationSet has no name"));
    }
    if !call.leader()?.permits_set_namespace(namespace) {
        return Err(Status::denied());
    }
    // Who may create the set could otherwise reach every project.
    if text(&object, "/spec/template/spec/project").contains("{{") {
        return Err(Status::invalid(
            "error validating ApplicationSets: the Argo CD API does not currently support creating ApplicationSets with \
             templated `project` fields",
        ));
    }
    ApplicationSet::from_json(&object)
        .map_err(|error| Status::invalid(format!("error validating ApplicationSets: {error}")))?;
    Ok(object)
}

fn check_project(call: &Call, set: &Value) -> Result<(), Status> {
    let project = project_of(set);
    call.shared.state.project(&project).map(drop).ok_or_else(|| {
        Status::invalid(format!(
            "error validating ApplicationSets: appprojects.argoproj.io \"{project}\" not found"
        ))
    })
}

async fn generated(call: &Call, set: &Value) -> Result<Vec<Value>, Status> {
    let typed = ApplicationSet::from_json(set).map_err(|error| Status::invalid(error.to_string()))?;
    let applications = call.leader()?.generate(typed).await;
    applications.map_err(|why| Status::invalid(format!("error generating applications: {why}")))
}

/// Creates a set, or with `upsert` changes it.
pub(super) async fn create(call: Arc<Call>) -> Result<Answer, Status> {
    ready(&call).await?;
    let sent = sent(&call, "applicationset")?;
    call.require("applicationsets", "create", &object(&call, &sent))?;
    check_project(&call, &sent)?;
    if call.flag("dryRun") == Some(true) {
        return preview(&call, sent).await;
    }
    // The controller writes the status of the set at the same time.
    for _ in 1..TRIES {
        match create_or_change(&call, &sent).await {
            Err(status) if status.code == Code::Aborted => {}
            result => return result,
        }
    }
    create_or_change(&call, &sent).await
}

async fn create_or_change(call: &Call, sent: &Value) -> Result<Answer, Status> {
    let (namespace, name) = (text(sent, "/metadata/namespace"), text(sent, "/metadata/name"));
    let existing = call.shared.backend.get(Known::ApplicationSet, namespace, name).await?;
    let Some(existing) = existing else {
        let created = call.shared.backend.create(sent.clone()).await?;
        call.shared.sets.note(&created);
        return Ok(Answer::One(without_kind(created.into_value())));
    };
    let same = |field: &str| {
        let of = |value: &Value| value.pointer(field).cloned().unwrap_or_default();
        let (stored, sent) = (of(existing.value()), of(sent));
        sent.is_null() || stored == sent
    };
    let fields = ["/spec", "/metadata/labels", "/metadata/annotations", "/metadata/finalizers"];
    if fields.into_iter().all(same) {
        return Ok(Answer::One(without_kind(existing.into_value())));
    }
    if call.flag("upsert") != Some(true) {
        return Err(Status::invalid(
            "existing ApplicationSet spec is different, use upsert flag to force update",
        ));
    }
    // The rights on the stored set, in its own project; those on the new one were checked.
    call.require("applicationsets", "update", &object(call, existing.value()))?;
    let mut patch = json!({"metadata": {"resourceVersion": existing.resource_version()}});
    if let Some(change) = merge_patch(existing.value().get("spec").unwrap_or(&Value::Null), &sent["spec"]) {
        patch["spec"] = change;
    }
    for field in ["labels", "annotations", "finalizers"] {
        if let Some(value) = sent.pointer(&format!("/metadata/{field}")) {
            patch["metadata"][field] = value.clone();
        }
    }
    let written = call.shared.backend.patch(Known::ApplicationSet, namespace, name, patch).await?;
    call.shared.sets.note(&written);
    Ok(Answer::One(without_kind(written.into_value())))
}

/// What a set would generate, as its status would list it.
async fn preview(call: &Call, mut set: Value) -> Result<Answer, Status> {
    let applications = generated(call, &set).await?;
    let resources = applications.iter().map(|application| {
        json!({"group": "argoproj.io", "version": "v1alpha1", "kind": "Application",
            "namespace": text(&set, "/metadata/namespace"), "name": text(application, "/metadata/name")})
    });
    let resources: Vec<Value> = resources.collect();
    set["status"] = json!({"resources": resources});
    Ok(Answer::One(without_kind(set)))
}

/// What a set generates. Nothing is written.
pub(super) async fn generate(call: Arc<Call>) -> Result<Answer, Status> {
    ready(&call).await?;
    let sent = sent(&call, "applicationSet")?;
    call.require("applicationsets", "create", &object(&call, &sent))?;
    check_project(&call, &sent)?;
    let applications = generated(&call, &sent).await?;
    let namespace = text(&sent, "/metadata/namespace").to_owned();
    let applications = applications.into_iter().map(|mut application| {
        if text(&application, "/metadata/namespace").is_empty() {
            application["metadata"]["namespace"] = json!(namespace);
        }
        without_kind(application)
    });
    Ok(Answer::One(json!({"applications": applications.collect::<Vec<_>>()})))
}

pub(super) async fn delete(call: Arc<Call>) -> Result<Answer, Status> {
    let set = asked(&call, "delete").await?;
    let (namespace, name) = (text(&set, "/metadata/namespace"), text(&set, "/metadata/name"));
    let stored = call.shared.backend.get(Known::ApplicationSet, namespace, name).await?;
    if let Some(stored) = stored {
        call.shared.backend.delete(&stored).await?;
        if call.shared.backend.get(Known::ApplicationSet, namespace, name).await?.is_none() {
            call.shared.sets.note_gone(namespace, name);
        }
    }
    Ok(Answer::One(json!({"project": project_of(&set), "applicationset": without_kind(Value::clone(&set))})))
}

/// The Applications of a set, as far as the caller may see them.
pub(super) async fn tree(call: Arc<Call>) -> Result<Answer, Status> {
    let set = asked(&call, "get").await?;
    let uid = text(&set, "/metadata/uid");
    let (namespace, name) = (text(&set, "/metadata/namespace"), text(&set, "/metadata/name"));
    let parent = json!({"group": "argoproj.io", "version": "v1alpha1", "kind": "ApplicationSet",
        "namespace": namespace, "name": name, "uid": uid});
    let leader = call.leader()?;
    let mut nodes = Vec::new();
    for app in leader.apps().iter().filter(|app| app.namespace() == namespace) {
        let Some(head) = app.head() else { continue };
        let object = app_object(head.project(), namespace, app.name(), call.namespace());
        let head = head.to_json();
        let owners = head.pointer("/metadata/ownerReferences").and_then(Value::as_array);
        let is_child = owners.is_some_and(|owners| owners.iter().any(|owner| text(owner, "/uid") == uid));
        if !is_child || !call.allows("applications", "get", &object) {
            continue;
        }
        let mut node = json!({"group": "argoproj.io", "version": "v1alpha1", "kind": "Application",
            "namespace": namespace, "name": app.name(), "uid": text(&head, "/metadata/uid"),
            "resourceVersion": app.resource_version(), "parentRefs": [parent]});
        if let Some(health) = head.pointer("/status/health") {
            node["health"] = health.clone();
        }
        if let Some(created) = head.pointer("/metadata/creationTimestamp") {
            node["createdAt"] = created.clone();
        }
        nodes.push(node);
    }
    nodes.sort_by(|one, other| text(one, "/name").cmp(text(other, "/name")));
    Ok(Answer::One(json!({"nodes": nodes})))
}

pub(super) async fn events(call: Arc<Call>) -> Result<Answer, Status> {
    let set = asked(&call, "get").await?;
    let (uid, namespace) = (text(&set, "/metadata/uid"), text(&set, "/metadata/namespace"));
    let events = call.shared.backend.client.events_of(uid, Some(namespace)).await;
    let events = events.map_err(|error| of_api(&error))?;
    Ok(super::resource::shown_events(events))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_project_of_a_set_is_that_of_its_template() {
        assert_eq!(project_of(&json!({"spec": {"template": {"spec": {"project": "team"}}}})), "team");
        assert_eq!(project_of(&json!({"spec": {}})), "default");
    }
}
