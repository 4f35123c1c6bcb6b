//! The status of an app that could not be compared.

use plumb_core::health::HealthStatus;
use plumb_core::status::SyncCode;
use plumb_crd::Application;
use plumb_crd::application as wire;
use plumb_crd::wire::whole_seconds;

use super::patch::{OperationField, send};
use crate::app_run::AppRun;
use crate::queue::RefreshDepth;
use crate::state::app_state::AppState;

/// Writes the status of an app whose spec is invalid.
pub(crate) async fn write_invalid(run: &mut AppRun<'_>, state: &mut AppState) {
    let mut after =
        run.snapshot.wire.as_ref().map(|application| application.status.clone()).unwrap_or_default();
    let conditions = run.conditions.on_wire(&after.conditions, run.now);
    let is_same = after.health.status == HealthStatus::Unknown.as_str();
    after.sync = wire::SyncStatus { status: SyncCode::Unknown.name().to_owned(), ..after.sync };
    after.health = wire::HealthStatus {
        status: HealthStatus::Unknown.as_str().to_owned(),
        message: String::new(),
        last_transition_time: if is_same {
            after.health.last_transition_time
        } else {
            Some(whole_seconds(run.now))
        },
    };
    after.conditions = conditions;
    after.controller_namespace.clone_from(&run.engine.options.namespace);
    if run.snapshot.requested_refresh().is_some() || after.reconciled_at.is_none() {
        after.reconciled_at = Some(whole_seconds(run.now));
    }
    state.git.clear();
    send(run, &after, OperationField::Keep).await;
}

/// Writes the status of an app whose desired state could not be determined. Its resources stay listed, as `Unknown`.
pub(crate) async fn write_unknown(run: &mut AppRun<'_>, application: &Application, state: &mut AppState) {
    let mut after = with_unknown_sync(run, application, state);
    if after.health.status.is_empty() {
        HealthStatus::Unknown.as_str().clone_into(&mut after.health.status);
        after.health.last_transition_time = Some(whole_seconds(run.now));
    }
    send(run, &after, OperationField::Keep).await;
}

/// Writes the status of an app whose cluster cannot be reached. Health is `Unknown` too.
pub(crate) async fn write_unreachable(run: &mut AppRun<'_>, application: &Application, state: &mut AppState) {
    let mut after = with_unknown_sync(run, application, state);
    if after.health.status != HealthStatus::Unknown.as_str() {
        after.health = wire::HealthStatus {
            status: HealthStatus::Unknown.as_str().to_owned(),
            message: String::new(),
            last_transition_time: Some(whole_seconds(run.now)),
        };
    }
    after.controller_namespace.clone_from(&run.engine.options.namespace);
    send(run, &after, OperationField::Keep).await;
}

/// The stored status with the sync status of the app and of all resources set to `Unknown`.
fn with_unknown_sync(
    run: &AppRun<'_>,
    application: &Application,
    state: &AppState,
) -> wire::ApplicationStatus {
    // The snapshot may be newer: this run may have written the end of an operation already.
    let stored = run.snapshot.wire.as_ref().map_or(&application.status, |stored| &stored.status);
    let mut after = stored.clone();
    for resource in after.resources.iter_mut().filter(|resource| !resource.status.is_empty()) {
        SyncCode::Unknown.name().clone_into(&mut resource.status);
    }
    SyncCode::Unknown.name().clone_into(&mut after.sync.status);
    after.sync.compared_to = wire::ComparedTo::of(&application.spec);
    after.conditions = run.conditions.on_wire(&after.conditions, run.now);
    if run.trigger.depth >= RefreshDepth::GitNow || after.reconciled_at.is_none() {
        after.reconciled_at = Some(whole_seconds(run.now));
    }
    if let Some(active) = &state.operation.active {
        after.operation_state = Some(Box::new(active.to_wire(&application.spec)));
    }
    after
}
