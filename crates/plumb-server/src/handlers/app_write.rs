//! Creating, changing and deleting Applications.

use std::sync::Arc;

use plumb_api::{Code, Status};
use plumb_core::object::{Manifest, apply_merge_patch, json_patch, merge_patch};
use plumb_core::sync::deletion::CASCADE;
use plumb_crd::Application;
use serde_json::{Map, Value, json};

use super::operation::change;
use crate::app_feed::without_kind;
use crate::backend::Known;
use crate::call::{Answer, Call, app_object, project_of};

/// The annotation with the address of the instance that manages the Application.
const MANAGED_BY: &str = "argocd.argoproj.io/managed-by-url";
/// How often a change is tried again after a conflict.
const ATTEMPTS: usize = 10;

/// Creates an Application, or with `upsert` changes it.
pub(super) async fn create(call: Arc<Call>) -> Result<Answer, Status> {
    let sent = sent(&call)?;
    let (namespace, name) = identity(&sent);
    let project = project_of(&sent);
    call.require("applications", "create", &app_object(&project, &namespace, &name, call.namespace()))?;
    check(&call, &sent).await?;
    let existing = call.shared.backend.get(Known::Application, &namespace, &name).await?;
    let Some(existing) = existing else {
        let created = call.shared.backend.create(sent).await?;
        call.note_app(&created);
        return Ok(Answer::One(without_kind(created.into_value())));
    };
    let same = |field: &str| {
        let of = |value: &Value| value.pointer(field).cloned().unwrap_or_default();
        let (stored, sent) = (of(existing.value()), of(&sent));
        sent.is_null() || stored == sent
    };
    let fields = ["/spec", "/metadata/labels", "/metadata/annotations", "/metadata/finalizers"];
    if fields.into_iter().all(same) {
        return Ok(Answer::One(without_kind(existing.into_value())));
    }
    if call.flag("upsert") != Some(true) {
        return Err(Status::invalid(
            "existing application spec is different, use upsert flag to force update",
        ));
    }
    replace(&call, &namespace, &name, Some(&sent["spec"]), |stored| Ok(upserted(stored, &sent))).await
}

/// The Application of a request with the labels and annotations that are stored besides its own, and with the finalizers that
/// are stored if it has none.
fn upserted(stored: &Value, sent: &Value) -> Value {
    let mut wanted = sent.clone();
    for field in ["labels", "annotations"] {
        let of =
            |value: &Value| value.pointer(&format!("/metadata/{field}")).and_then(Value::as_object).cloned();
        let mut merged = of(stored).unwrap_or_default();
        merged.extend(of(sent).unwrap_or_default());
        wanted["metadata"][field] = Value::Object(merged);
    }
    if sent.pointer("/metadata/finalizers").is_none() {
        wanted["metadata"]["finalizers"] =
            stored.pointer("/metadata/finalizers").cloned().unwrap_or_default();
    }
    wanted
}

/// Replaces spec, labels, annotations and finalizers.
pub(super) async fn update(call: Arc<Call>) -> Result<Answer, Status> {
    let sent = sent(&call)?;
    let (namespace, name) = identity(&sent);
    let project = project_of(&sent);
    call.require("applications", "update", &app_object(&project, &namespace, &name, call.namespace()))?;
    replace(&call, &namespace, &name, None, |_| Ok(sent.clone())).await
}

/// Replaces the spec.
pub(super) async fn update_spec(call: Arc<Call>) -> Result<Answer, Status> {
    let app = call.app()?;
    let spec = call.request.get("spec").cloned().unwrap_or_default();
    let written = replace(&call, &app.namespace, &app.name, None, |stored| {
        let mut wanted = stored.clone();
        wanted["spec"] = spec.clone();
        normalized(wanted)
    });
    let Answer::One(written) = written.await? else {
        return Err(Status::new(Code::Internal, "no answer"));
    };
    Ok(Answer::One(written.get("spec").cloned().unwrap_or_default()))
}

/// Patches spec, labels, annotations and finalizers.
pub(super) async fn patch(call: Arc<Call>) -> Result<Answer, Status> {
    let app = call.app()?;
    let text = call.text("patch");
    let patch: Value = serde_json::from_str(text)
        .map_err(|error| Status::invalid(format!("cannot read the patch: {error}")))?;
    replace(&call, &app.namespace, &app.name, None, |stored| patched(stored, call.text("patchType"), &patch))
        .await
}

/// The patched Application.
fn patched(stored: &Value, patch_type: &str, patch: &Value) -> Result<Value, Status> {
    let mut patched = stored.clone();
    match patch_type {
        "merge" => apply_merge_patch(&mut patched, patch),
        "json" | "" => json_patch(&mut patched, patch)
            .map_err(|why| Status::invalid(format!("cannot apply the patch: {why}")))?,
        other => return Err(Status::invalid(format!("Patch type '{other}' is not supported"))),
    }
    let mut patched = normalized(patched)?;
    // Which app it is says the request, not the patch: the namespace decides which projects are open to it.
    if !patched["metadata"].is_object() {
        return Err(Status::invalid("the patch leaves no metadata"));
    }
    for field in ["name", "namespace"] {
        patched["metadata"][field] = stored["metadata"][field].clone();
    }
    Ok(patched)
}

/// Deletes an Application, by default with its objects.
pub(super) async fn delete(call: Arc<Call>) -> Result<Answer, Status> {
    let app = call.app()?;
    let policy = call.text("propagationPolicy");
    let cascade = call.flag("cascade");
    if cascade == Some(false) && !policy.is_empty() {
        return Err(Status::invalid("cannot set propagation policy when cascading is disabled"));
    }
    let finalizer = match policy {
        "" | "foreground" => CASCADE.to_owned(),
        "background" => format!("{CASCADE}/background"),
        other => return Err(Status::invalid(format!("invalid propagation policy: {other}"))),
    };
    let stored = change(&call, app, |stored| {
        Ok(finalizers(stored, cascade, &finalizer).map(|after| json!({"metadata": {"finalizers": after}})))
    });
    call.shared.backend.delete(&stored.await?).await?;
    Ok(Answer::One(json!({})))
}

/// The finalizers that an Application needs for this deletion, if it does not have them. One that is being deleted keeps its
/// own.
fn finalizers(stored: &Manifest, cascade: Option<bool>, wanted: &str) -> Option<Vec<Value>> {
    let before = stored.value().pointer("/metadata/finalizers").and_then(Value::as_array).cloned();
    let before = before.unwrap_or_default();
    let is_ours = |entry: &Value| entry.as_str().is_some_and(|entry| entry.starts_with(CASCADE));
    let mut after: Vec<Value> = before.iter().filter(|entry| !is_ours(entry)).cloned().collect();
    if cascade != Some(false) {
        after.push(json!(wanted));
    }
    (!stored.is_terminating() && after != before).then_some(after)
}

/// The Application of the request as it would be stored. `status` and `operation` of a request never count.
fn sent(call: &Call) -> Result<Value, Status> {
    let sent =
        call.request.get("application").ok_or_else(|| Status::invalid("application is nil in request"))?;
    let text = |path: &str| sent.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let name = text("/metadata/name");
    if name.is_empty() {
        return Err(Status::invalid("application name is required"));
    }
    let namespace = match text("/metadata/namespace") {
        "" => call.namespace(),
        namespace => namespace,
    };
    if namespace != call.namespace() && !call.leader()?.permits_namespace(namespace) {
        return Err(Status::invalid(format!("namespace '{namespace}' is not permitted")));
    }
    let mut metadata = changeable(sent);
    metadata.insert("name".to_owned(), json!(name));
    metadata.insert("namespace".to_owned(), json!(namespace));
    metadata.retain(|_, value| !value.is_null());
    normalized(json!({"metadata": metadata, "spec": sent.get("spec").cloned().unwrap_or_default()}))
}

/// Completes an Application as Argo CD stores it.
fn normalized(mut app: Value) -> Result<Value, Status> {
    app["apiVersion"] = json!(Application::API_VERSION);
    app["kind"] = json!(Application::KIND);
    if !app.get("spec").is_some_and(Value::is_object) {
        return Err(Status::invalid("application spec is required"));
    }
    app["spec"]["project"] = json!(project_of(&app));
    if app["spec"].get("destination").is_none_or(Value::is_null) {
        app["spec"]["destination"] = json!({});
    }
    Ok(app)
}

fn identity(app: &Value) -> (String, String) {
    let text = |path: &str| app.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
    (text("/metadata/namespace"), text("/metadata/name"))
}

/// The metadata that a user may change.
fn changeable(app: &Value) -> Map<String, Value> {
    let part = |field: &str| app.pointer(&format!("/metadata/{field}")).cloned().unwrap_or_default();
    let fields = ["labels", "annotations", "finalizers"];
    fields.into_iter().map(|field| (field.to_owned(), part(field))).collect()
}

/// The caller may do it to the stored Application; one that moves to another project may also be created there.
fn require_both(call: &Call, action: &str, stored: &Value, sent: &Value) -> Result<(), Status> {
    let (namespace, name) = identity(stored);
    let (old, new) = (project_of(stored), project_of(sent));
    call.require("applications", action, &app_object(&old, &namespace, &name, call.namespace()))?;
    if old != new {
        call.require("applications", "create", &app_object(&new, &namespace, &name, call.namespace()))?;
    }
    Ok(())
}

/// What Argo CD checks before it stores an Application: the project, the destination, and that the manifests render.
async fn check(call: &Call, app: &Value) -> Result<(), Status> {
    let (namespace, name) = identity(app);
    call.check_project(&project_of(app), &namespace)?;
    check_managed_by(app)?;
    let typed = Application::from_json(app).map_err(|error| Status::invalid(error.to_string()))?;
    let leader = call.leader()?;
    if let Some(why) = leader.refusal(&typed) {
        return Err(Status::invalid(format!(
            "application spec for {name} is invalid: InvalidSpecError: {why}"
        )));
    }
    if call.flag("validate") == Some(false) {
        return Ok(());
    }
    leader.connected(&typed).await.map_err(Status::unavailable)?;
    match leader.render(typed, Vec::new()).await {
        Ok(_) => Ok(()),
        Err(why) => {
            let why = format!(
                "application spec for {name} is invalid: InvalidSpecError: Unable to generate manifests: {why}"
            );
            Err(Status::invalid(why))
        }
    }
}

/// The annotation with the address of another instance becomes a link, so it must be a web address.
fn check_managed_by(app: &Value) -> Result<(), Status> {
    let annotations = app.pointer("/metadata/annotations");
    let Some(url) = annotations.and_then(|all| all.get(MANAGED_BY)?.as_str()) else { return Ok(()) };
    let rest = ["http://", "https://"].into_iter().find_map(|scheme| url.strip_prefix(scheme));
    let has_host = rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['/', '?', '#']));
    if has_host && !url.chars().any(|letter| letter.is_control() || letter.is_whitespace()) {
        return Ok(());
    }
    Err(Status::invalid(format!("invalid {MANAGED_BY} annotation: it must be an http or https URL")))
}

/// Writes spec and metadata of the changed Application on top of what is stored; again if another writer was faster. The
/// change starts from what is stored each time, so that it undoes nothing of the other writer. `checked` is a spec that
/// needs no further check.
async fn replace(
    call: &Call,
    namespace: &str,
    name: &str,
    checked: Option<&Value>,
    change: impl Fn(&Value) -> Result<Value, Status>,
) -> Result<Answer, Status> {
    let mut checked = checked.cloned();
    for _ in 0..ATTEMPTS {
        let stored = call.shared.backend.get(Known::Application, namespace, name).await?;
        let stored = stored.ok_or_else(Status::denied)?;
        let wanted = change(stored.value())?;
        require_both(call, "update", stored.value(), &wanted)?;
        let spec = &wanted["spec"];
        if checked.as_ref() == Some(spec) {
            check_managed_by(&wanted)?;
        } else {
            check(call, &wanted).await?;
            checked = Some(spec.clone());
        }
        let patch = patch_for(&stored, spec, changeable(&wanted));
        let written = call.shared.backend.patch(Known::Application, namespace, name, patch).await;
        match written {
            Ok(written) => {
                call.note_app(&written);
                return Ok(Answer::One(without_kind(written.into_value())));
            }
            Err(status) if status.code == Code::Aborted => {}
            Err(status) => return Err(status),
        }
    }
    Err(Status::new(Code::Aborted, "the application keeps changing; try again"))
}

/// The merge patch from the stored object to the wanted one: fields that a client does not know stay, unless their parent
/// goes.
fn patch_for(stored: &Manifest, spec: &Value, metadata: Map<String, Value>) -> Value {
    let before = stored.value().get("spec").cloned().unwrap_or_default();
    let mut patch = json!({"metadata": {"resourceVersion": stored.resource_version()}});
    if let Some(change) = merge_patch(&before, spec) {
        patch["spec"] = change;
    }
    for (field, wanted) in metadata {
        let before = stored.value().pointer(&format!("/metadata/{field}")).cloned().unwrap_or_default();
        if before == wanted {
            continue;
        }
        let empty = |value: Value| if value.is_null() { json!({}) } else { value };
        patch["metadata"][&field] = if field == "finalizers" {
            wanted
        } else {
            merge_patch(&empty(before), &empty(wanted)).unwrap_or_else(|| json!({}))
        };
    }
    patch
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_keeps_what_others_have_written_meanwhile() {
        let app = |labels: Value, path: &str| {
            json!({"metadata": {"name": "a", "namespace": "x", "labels": labels, "finalizers": ["f"]},
                "spec": {"project": "p", "source": {"path": path}}})
        };
        let stored = app(json!({"theirs": "new"}), "theirs");
        let wanted =
            patched(&stored, "merge", &json!({"metadata": {"name": "b", "labels": {"mine": "x"}}})).unwrap();
        assert_eq!(wanted["metadata"]["labels"], json!({"theirs": "new", "mine": "x"}));
        assert_eq!(
            (&wanted["metadata"]["name"], &wanted["spec"]["source"]["path"]),
            (&json!("a"), &json!("theirs"))
        );
        let list = json!([{"op": "add", "path": "/metadata/labels/mine", "value": "x"}]);
        assert_eq!(patched(&stored, "", &list).unwrap()["metadata"]["labels"], wanted["metadata"]["labels"]);
        assert!(patched(&stored, "strategic", &json!({})).is_err());
        let mut sent = app(json!({"mine": "x"}), "mine");
        sent["metadata"].as_object_mut().unwrap().remove("finalizers");
        let wanted = upserted(&stored, &sent);
        assert_eq!(wanted["metadata"]["labels"], json!({"theirs": "new", "mine": "x"}));
        assert_eq!(
            (&wanted["metadata"]["finalizers"], &wanted["spec"]["source"]["path"]),
            (&json!(["f"]), &json!("mine"))
        );
    }

    #[test]
    fn only_a_web_address_becomes_a_link() {
        let check =
            |url: &str| check_managed_by(&json!({"metadata": {"annotations": {MANAGED_BY: url}}})).is_ok();
        assert!(check("https://argocd.example.com/x") && check("http://localhost:8080"));
        for wrong in ["javascript:alert(1)", "https://", "https:///x", "//x", "data:x", "https://a b", ""] {
            assert!(!check(wrong), "{wrong}");
        }
        assert!(check_managed_by(&json!({"metadata": {}})).is_ok());
    }
}
