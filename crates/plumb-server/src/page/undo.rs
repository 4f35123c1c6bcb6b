//! Deleted objects, and bringing them back.

use plumb_api::{Code, Status};
use plumb_core::app::AppId;
use plumb_core::object::ObjectKey;
use plumb_core::plan::{Tombstone, TombstoneReason};
use plumb_crd::Application;
use plumb_engine::tombstones::{self, APP_LABEL, TombstoneNote};
use plumb_kube::{Fence, Gate, TOMBSTONE_PREFIX, WritePermit};
use serde_json::{Value, json};
use tracing::info;

use super::acts::Acted;
use super::caller::{PageCaller, PageMode};
use crate::audit::Written;
use crate::backend::{Known, of_api};

/// The field manager of restored objects.
const FIELD_MANAGER: &str = "argocd-server";

struct Deleted {
    id: String,
    note: TombstoneNote,
}

/// What is noted about all deleted objects. None of them is unpacked: anybody who deletes objects fills this list.
async fn read(caller: &PageCaller) -> Result<Vec<Deleted>, Status> {
    let state = &caller.shared.state;
    let secrets = caller.shared.backend.list(Known::Secret, Some(state.namespace()), Some(APP_LABEL)).await?;
    let mut deleted: Vec<Deleted> = tombstones::notes(&secrets)
        .into_iter()
        .filter_map(|note| {
            let id = note.name.strip_prefix(TOMBSTONE_PREFIX)?.to_owned();
            Some(Deleted { id, note })
        })
        .collect();
    deleted.sort_by_key(|deleted| std::cmp::Reverse(deleted.note.deleted_at));
    Ok(deleted)
}

/// The deleted object.
async fn unpack(caller: &PageCaller, note: &TombstoneNote) -> Result<Tombstone, Status> {
    let mut secrets = Vec::new();
    for name in note.secrets() {
        secrets
            .extend(caller.shared.backend.get(Known::Secret, caller.shared.state.namespace(), &name).await?);
    }
    let damaged = || Status::precondition("the copy of the object is incomplete, so it cannot be restored");
    let stored = tombstones::read_all(&secrets).pop().ok_or_else(damaged)?;
    let tombstone = stored.tombstone;
    // The annotations were checked, the content is written.
    let is_noted = tombstone.app == note.app && tombstone.key == note.key && tombstone.server == note.server;
    if is_noted { Ok(tombstone) } else { Err(damaged()) }
}

/// The app of a deleted object, if it exists and the caller may see it.
fn app_of(caller: &PageCaller, id: &AppId) -> Option<Application> {
    caller.app(id).ok()
}

/// The deleted objects of apps that the caller may see, without their content.
pub(super) async fn list(caller: &PageCaller) -> Result<Value, Status> {
    let mut shown = Vec::new();
    for Deleted { id, note } in &read(caller).await? {
        let Some(app) = app_of(caller, &note.app) else { continue };
        let key = &note.key;
        shown.push(json!({
            "id": id, "app": [note.app.namespace, note.app.name],
            "object": {"group": key.group, "kind": key.kind, "namespace": key.namespace_or_empty(), "name": key.name},
            "at": note.deleted_at.as_second(), "why": reason(note.reason),
            "revision": note.revision, "lost": note.lost,
            "refusal": may_not(caller, &app), "exists": is_back(&app, key, note.deleted_at.as_second()),
        }));
    }
    Ok(json!({"deleted": shown}))
}

/// True if the app was compared with the object in the cluster after its deletion: a user restored it, or Git has it again.
/// Until then the status lists it as it was before.
fn is_back(app: &Application, key: &ObjectKey, deleted_at: i64) -> bool {
    let status = &app.status;
    if status.reconciled_at.is_none_or(|at| at.as_second() <= deleted_at) {
        return false;
    }
    let mut resources = status.resources.iter().filter(|resource| resource.key() == *key);
    resources.any(|resource| resource.health.as_ref().is_none_or(|health| health.status != "Missing"))
}

/// Why the caller may not restore objects of an app; `None` if it is permitted.
fn may_not(caller: &PageCaller, app: &Application) -> Option<String> {
    let is_permitted = caller.may("sync", app.project(), &app.id());
    (!is_permitted).then(|| "you may not: `applications, sync` is missing in argocd-rbac-cm".to_owned())
}

fn reason(reason: TombstoneReason) -> &'static str {
    match reason {
        TombstoneReason::Pruned => "removed from Git",
        TombstoneReason::AppDeleted => "its app was deleted",
        TombstoneReason::Recreated => "recreated",
    }
}

/// An app may have moved to another cluster since: there, an object of the same name is another one.
fn check_server(deleted_in: &str, current: &str) -> Result<(), Status> {
    if deleted_in.trim_end_matches('/') == current.trim_end_matches('/') {
        return Ok(());
    }
    Err(Status::precondition(format!(
        "the object was in the cluster {deleted_in}, and the app is now in {current}; use `plumb undo restore`"
    )))
}

/// The deleted object that a request names, and its app.
async fn asked(caller: &PageCaller, body: &Value) -> Result<(Deleted, Application), Status> {
    let id = body.pointer("/options/id").and_then(Value::as_str).unwrap_or_default();
    let missing = || Status::not_found("there is no such deleted object, or you may not see it");
    let deleted = read(caller).await?.into_iter().find(|deleted| deleted.id == id).ok_or_else(missing)?;
    let app = app_of(caller, &deleted.note.app).ok_or_else(missing)?;
    Ok((deleted, app))
}

/// Whether the object exists, in the cluster of its app as it is now.
async fn exists(caller: &PageCaller, app: &Application, note: &TombstoneNote) -> Result<bool, Status> {
    let leader = caller.shared.handle.leader();
    let leader = leader.ok_or_else(|| Status::unavailable("this replica does not lead yet; try again"))?;
    if let Some(why) = leader.denies(app, &note.key) {
        return Err(Status::new(Code::PermissionDenied, why));
    }
    let away = || Status::unavailable("the cluster of the app is not connected");
    check_server(&note.server, &leader.server_of_app(app).ok_or_else(away)?)?;
    let (client, runtime) = leader.cluster_client(app).ok_or_else(away)?;
    drop(leader);
    let key = note.key.clone();
    let found = runtime.spawn(async move { client.get(&key).await.map_err(|error| of_api(&error)) });
    Ok(found.await.map_err(|_| Status::unavailable("the request was aborted"))??.is_some())
}

/// What a restore would do, with the token of these facts.
fn plan_of(deleted: &Deleted, app: &Application, hurdle: Option<&str>) -> Value {
    let (note, key) = (&deleted.note, &deleted.note.key);
    let mut notes = vec![format!("It was deleted on {}: {}.", note.deleted_at, reason(note.reason))];
    if let Some(lost) = &note.lost {
        notes.push(format!("Lost: {lost}."));
    }
    if note.reason == TombstoneReason::Pruned {
        notes.push("A later prune deletes it again unless Git has it.".to_owned());
    }
    let token = format!("{}-{}", deleted.id, u8::from(hurdle.is_none()));
    let step = json!({"group": key.group, "kind": key.kind, "namespace": key.namespace_or_empty(), "name": key.name,
                      "what": "create", "why": "from the copy that plumb kept", "wave": 0});
    json!({
        "verb": "restore", "app": [app.metadata.namespace, app.metadata.name], "steps": [step], "notes": notes,
        "hurdle": hurdle, "button": format!("Restore {} {}", key.kind, key.name), "undo": "Delete it again on its screen.",
        "typed": null, "commands": [format!("plumb undo restore {}", deleted.id)], "token": token,
    })
}

async fn planned(caller: &PageCaller, deleted: &Deleted, app: &Application) -> Result<Value, Status> {
    if let Some(why) = may_not(caller, app) {
        return Ok(plan_of(deleted, app, Some(&why)));
    }
    let hurdle = match exists(caller, app, &deleted.note).await {
        Ok(true) => Some("it exists already; a restore does not change it".to_owned()),
        Ok(false) => None,
        Err(status) => Some(status.message),
    };
    Ok(plan_of(deleted, app, hurdle.as_deref()))
}

/// What a restore would do. Nothing is written.
pub(super) async fn show(caller: &PageCaller, body: &Value) -> Result<Value, Status> {
    let (deleted, app) = asked(caller, body).await?;
    planned(caller, &deleted, &app).await
}

/// Creates a deleted object again, as the plan of the token said.
pub(super) async fn act(caller: &PageCaller, body: &Value) -> Result<Acted, Status> {
    if caller.mode != PageMode::On {
        return Err(Status::new(Code::PermissionDenied, "this page is read-only; copy the command"));
    }
    let (deleted, app) = asked(caller, body).await?;
    if let Some(why) = may_not(caller, &app) {
        return Err(Status::new(Code::PermissionDenied, why));
    }
    let plan = planned(caller, &deleted, &app).await?;
    if !plan["hurdle"].is_null() || body.get("token") != plan.get("token") {
        return Ok(Acted::Moved(plan));
    }
    restore(caller, &deleted, &app).await.map(Acted::Done)
}

async fn restore(caller: &PageCaller, deleted: &Deleted, app: &Application) -> Result<Value, Status> {
    let tombstone = unpack(caller, &deleted.note).await?;
    let leader = caller.shared.handle.leader();
    let leader = leader.ok_or_else(|| Status::unavailable("this replica does not lead yet; try again"))?;
    if let Some(why) = leader.denies(app, &tombstone.key) {
        return Err(Status::new(Code::PermissionDenied, why));
    }
    let away = || Status::unavailable("the cluster of the app is not connected");
    let server = leader.server_of_app(app).ok_or_else(away)?;
    check_server(&tombstone.server, &server)?;
    let acting = leader.acting_client(app);
    let (client, runtime) = acting.map_err(|why| Status::new(Code::PermissionDenied, why))?;
    drop(leader);
    info!(user = caller.identity.username, object = %tombstone.key, app = %tombstone.app, "restore through the page");
    let key = tombstone.key.clone();
    let created = runtime.spawn(async move {
        if client.get(&tombstone.key).await.map_err(|error| of_api(&error))?.is_some() {
            return Err(Status::precondition("it exists already and was not changed"));
        }
        let permit = WritePermit::requested_by_user(tombstone.key.clone());
        let gate = Gate::new(client, Fence::of_command(), None);
        let first = gate.create(&permit, &tombstone.restorable(), FIELD_MANAGER).await;
        if first.is_ok() {
            return Ok(());
        }
        let again = match tombstone.restorable_elsewhere() {
            Some(elsewhere) => gate.create(&permit, &elsewhere, FIELD_MANAGER).await,
            None => first,
        };
        // The error of a Secret may quote its values.
        again
            .map(drop)
            .map_err(|_| Status::precondition("the API server refuses it; `plumb undo restore` says why"))
    });
    created.await.map_err(|_| Status::unavailable("the request was aborted"))??;
    let object = app.to_json();
    caller.shared.audit.record(&Written {
        method: "application.ApplicationService/RestoreResource",
        request: &json!({"kind": key.kind, "resourceName": key.name}),
        object: Some(&object),
        user: &caller.identity.username,
        from: None,
        namespace: caller.shared.state.namespace(),
    });
    Ok(json!({"done": format!("restored {} {}", key.kind, key.name)}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deleted_object_is_back_when_it_is_in_a_later_comparison() {
        let key = ObjectKey::new("", "ConfigMap", Some("web".to_owned()), "a");
        let deleted_at = "2026-02-01T00:00:05Z".parse::<jiff::Timestamp>().unwrap().as_second();
        let compared = |at: &str, name: &str| {
            let resource = json!({"version": "v1", "kind": "ConfigMap", "namespace": "web", "name": name});
            let status = json!({"reconciledAt": at, "resources": [resource]});
            Application::from_json(&json!({"metadata": {"name": "shop"}, "spec": {}, "status": status}))
                .unwrap()
        };
        assert!(!is_back(&compared("2026-02-01T00:00:05Z", "a"), &key, deleted_at), "it was compared before");
        assert!(is_back(&compared("2026-02-01T00:00:09Z", "a"), &key, deleted_at));
        assert!(!is_back(&compared("2026-02-01T00:00:09Z", "b"), &key, deleted_at));
    }

    #[test]
    fn an_object_is_restored_only_where_it_was() {
        assert!(check_server("https://east", "https://east/").is_ok());
        assert!(check_server("https://east", "https://west").is_err());
    }
}
