//! Syncs, rollbacks, terminations.

use std::sync::Arc;

use plumb_api::{Code, Status};
use plumb_core::object::Manifest;
use plumb_crd::Application;
use serde_json::{Value, json};

use super::sync_request::{is_automated, of_rollback, of_sync, other_revisions};
use crate::app_feed::without_kind;
use crate::backend::Known;
use crate::call::{Answer, Call, FoundApp};

/// The setting that has syncs to a revision which the Application does not track need the right to override.
const OVERRIDE_FOR_REVISIONS: &str = "application.sync.requireOverridePrivilegeForRevisionSync";

/// Requests a sync.
pub(super) async fn sync(call: Arc<Call>) -> Result<Answer, Status> {
    let app = call.app()?;
    let typed = app.typed()?;
    if let Some(why) = call.leader()?.manual_sync_window(&typed) {
        return Err(Status::new(
            Code::PermissionDenied,
            format!("cannot sync: blocked by sync window: {why}"),
        ));
    }
    let has_manifests = !call.texts("manifests").is_empty();
    if has_manifests {
        call.require("applications", "override", &app.object(call.namespace()))?;
        if is_automated(&typed) && call.flag("dryRun") != Some(true) {
            return Err(Status::precondition(
                "cannot use local sync when Automatic Sync Policy is enabled unless for dry run",
            ));
        }
        if let Some(why) = call.leader()?.refuses_local_manifests(&typed) {
            return Err(Status::precondition(why));
        }
    }
    refuse_deleting(&typed)?;
    let others = other_revisions(&typed, &call.request)?;
    if !others.is_empty() && call.setting_is_on(OVERRIDE_FOR_REVISIONS) {
        call.require("applications", "override", &app.object(call.namespace()))?;
    }
    let operation = of_sync(&typed, &call.request, call.username())?;
    start(&call, app, operation).await
}

/// Requests a sync to an earlier state.
pub(super) async fn rollback(call: Arc<Call>) -> Result<Answer, Status> {
    let app = call.app()?;
    let typed = app.typed()?;
    refuse_deleting(&typed)?;
    if is_automated(&typed) {
        return Err(Status::precondition("rollback cannot be initiated when auto-sync is enabled"));
    }
    // Unlike Argo CD: a rollback changes the cluster as any sync does, so sync windows hold for it, too.
    if let Some(why) = call.leader()?.manual_sync_window(&typed) {
        return Err(Status::new(
            Code::PermissionDenied,
            format!("cannot sync: blocked by sync window: {why}"),
        ));
    }
    let id = call.number("id").unwrap_or_default();
    let entry = typed.status.history.iter().find(|entry| entry.id == id);
    let entry = entry.ok_or_else(|| {
        Status::invalid(format!("application {} does not have deployment with id {id}", app.name))
    })?;
    start(&call, app, of_rollback(&typed, entry, &call.request, call.username())).await
}

/// Stops the running operation.
pub(super) async fn terminate(call: Arc<Call>) -> Result<Answer, Status> {
    let app = call.app()?;
    change(&call, app, |stored| {
        let is_running = stored.value().get("operation").is_some_and(|operation| !operation.is_null())
            && stored.value().pointer("/status/operationState").is_some();
        if !is_running {
            return Err(Status::invalid("Unable to terminate operation. No operation is in progress"));
        }
        Ok(Some(json!({"status": {"operationState": {"phase": "Terminating"}}})))
    })
    .await?;
    Ok(Answer::One(json!({})))
}

fn refuse_deleting(app: &Application) -> Result<(), Status> {
    if app.is_terminating() { Err(Status::precondition("application is deleting")) } else { Ok(()) }
}

async fn read(call: &Call, app: &FoundApp) -> Result<Manifest, Status> {
    let stored = call.shared.backend.get(Known::Application, &app.namespace, &app.name).await?;
    stored.ok_or_else(Status::denied)
}

/// How often an operation is written again after another writer was faster.
const ATTEMPTS: usize = 10;

/// Writes an operation, unless another one is there.
async fn start(call: &Call, app: &FoundApp, operation: Value) -> Result<Answer, Status> {
    let written = change(call, app, |stored| {
        if stored.value().get("operation").is_some_and(|operation| !operation.is_null()) {
            return Err(Status::precondition("another operation is already in progress"));
        }
        let mut patch = json!({"operation": operation});
        if stored.value().pointer("/status/operationState").is_some() {
            patch["status"] = json!({"operationState": null});
        }
        Ok(Some(patch))
    });
    Ok(Answer::One(without_kind(written.await?.into_value())))
}

/// Patches what is stored, unless nothing is to change; again if another writer was faster. The engine writes the status at
/// any time.
pub(super) async fn change(
    call: &Call,
    app: &FoundApp,
    patch: impl Fn(&Manifest) -> Result<Option<Value>, Status>,
) -> Result<Manifest, Status> {
    for _ in 0..ATTEMPTS {
        let stored = read(call, app).await?;
        let Some(mut patch) = patch(&stored)? else { return Ok(stored) };
        patch["metadata"]["resourceVersion"] = json!(stored.resource_version());
        match call.patch_app(&app.namespace, &app.name, patch).await {
            Ok(written) => return Ok(written),
            Err(status) if status.code == Code::Aborted => {}
            Err(status) => return Err(status),
        }
    }
    Err(Status::new(Code::Aborted, "the application keeps changing; try again"))
}
