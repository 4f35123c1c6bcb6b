//! The one request that changes an Application from its stored state to the wanted state.

use std::sync::Arc;
use std::time::Instant;

use plumb_core::app::AppId;
use plumb_core::object::merge_patch;
use plumb_core::sync::deletion::finalizers_for;
use plumb_crd::Wire;
use plumb_crd::annotations::{REFRESH, REFRESH_TIMESTAMP};
use plumb_crd::application as wire;
use plumb_crd::wire::whole_seconds;
use plumb_kube::{ApiError, WriteError};
use serde_json::{Value, json};
use tracing::{debug, warn};

use super::state_change::StateChange;
use crate::app_run::AppRun;
use crate::apps::shown_text::ShownText;
use crate::apps::snapshot::AppSnapshot;
use crate::events::event::of_change;
use crate::operation::active::keep_request_to_end;
use crate::state::retries::Subject;

/// What happens to the `operation` field.
pub(super) enum OperationField {
    /// It is not changed.
    Keep,
    /// It is set to the operation in progress.
    Set(Value),
    /// It is removed, if it still holds this operation.
    Clear(Value),
}

/// Sends the difference between the Application in the cluster and the wanted status. Returns whether the cluster holds
/// that status now.
pub(super) async fn send(
    run: &mut AppRun<'_>,
    after: &wire::ApplicationStatus,
    operation: OperationField,
) -> bool {
    let mut after = after.clone();
    clean(&run.engine.shown_text(), &mut after);
    let mut is_short = false;
    for _ in 0..3 {
        if let (Some(state), Ok(stored)) = (&mut after.operation_state, &run.snapshot.wire) {
            keep_request_to_end(stored.status.operation_state.as_deref(), state);
        }
        let Some(patch) = patch(run, &after, &operation) else { return true };
        let before = Arc::clone(&run.snapshot);
        match run.engine.patch_application(&run.snapshot.id, patch).await {
            Ok(written) => {
                run.engine.retries.over(&run.snapshot.id, Subject::Status);
                record_events(run, &before, &after);
                if let Some((snapshot, trigger)) = run.engine.registry.note(&written) {
                    if let Some(trigger) = trigger.filter(|_| written.annotation(REFRESH).is_some()) {
                        run.engine.queue.push(snapshot.id.clone(), trigger);
                    }
                    run.snapshot = snapshot;
                }
                return true;
            }
            Err(error) if error.api().is_some_and(ApiError::is_conflict) => {
                // Another writer changed the Application: read it again and apply the status on top.
                if !reread(run).await {
                    run.engine.retry_later(&run.snapshot.id, Subject::Status);
                    return false;
                }
            }
            Err(error) if error.api().is_some_and(ApiError::is_not_found) => return false,
            Err(error) if is_too_large(&error) && !is_short => {
                // The status exceeds the size limit of etcd: write a short one that gives the reason.
                warn!(app = %run.snapshot.id, %error, "the status is too large, writing a short one");
                after = shortened(&run.snapshot, &after, run.now);
                is_short = true;
            }
            Err(error) => {
                if let Some(times) = run.engine.retry_later(&run.snapshot.id, Subject::Status) {
                    log_failure(&run.snapshot.id, &error, times, "the status");
                }
                return false;
            }
        }
    }
    // Other writers were faster three times.
    run.engine.retry_later(&run.snapshot.id, Subject::Status);
    false
}

/// Cleans every text of the status that quotes others. Conditions are clean already.
fn clean(shown: &ShownText, status: &mut wire::ApplicationStatus) {
    shown.clean(&mut status.health.message);
    for health in status.resources.iter_mut().filter_map(|resource| resource.health.as_mut()) {
        shown.clean(&mut health.message);
    }
    let Some(state) = &mut status.operation_state else { return };
    shown.clean(&mut state.message);
    for result in state.sync_result.iter_mut().flat_map(|result| &mut result.resources) {
        shown.clean(&mut result.message);
    }
}

/// An API server that cannot be reached, or a lost lease, is logged once for all apps, by the keeper of the lease.
pub(super) fn log_failure(app: &AppId, error: &WriteError, times: u64, what: &str) {
    let is_outage =
        matches!(error, WriteError::NotLeader(_)) || error.api().is_some_and(ApiError::is_unavailable);
    if is_outage {
        debug!(%app, %error, times, "cannot write {what}");
    } else {
        warn!(%app, %error, times, "cannot write {what}; trying again");
    }
}

/// Records events for the changes of a write.
fn record_events(run: &AppRun<'_>, before: &AppSnapshot, after: &wire::ApplicationStatus) {
    let Ok(application) = &before.wire else { return };
    for event in of_change(&application.status, after) {
        run.engine.record_event(before, application, event);
    }
    let Some(change) = StateChange::of(&application.status, after) else {
        return;
    };
    let (app, retries) = (&before.id, &run.engine.retries);
    if !change.is_other_error() {
        retries.over(app, Subject::OtherError);
        change.log();
    } else if retries.told(app, Subject::OtherError, Instant::now()).is_some() {
        change.log();
    }
}

async fn reread(run: &mut AppRun<'_>) -> bool {
    let Ok(Some(application)) = run.engine.get_application(&run.snapshot.id).await else { return false };
    let Some((snapshot, trigger)) = run.engine.registry.note(&application) else { return false };
    if let Some(trigger) = trigger {
        run.engine.queue.push(snapshot.id.clone(), trigger);
    }
    run.snapshot = snapshot;
    true
}

/// The whole change of the Application as one merge patch; `None` if there is nothing to change.
fn patch(run: &AppRun<'_>, after: &wire::ApplicationStatus, field: &OperationField) -> Option<Value> {
    let application = run.snapshot.wire.as_ref().ok();
    let before = application.map_or_else(|| json!({}), |application| application.status.write());
    let mut patch = serde_json::Map::new();
    if let Some(status) = merge_patch(&before, &after.write()) {
        patch.insert("status".to_owned(), status);
    }
    let operation = application.and_then(|application| application.operation.as_ref());
    match field {
        // Keep another operation that a user requested in the meantime.
        OperationField::Clear(ours) if operation.map(Wire::write).as_ref() == Some(ours) => {
            patch.insert("operation".to_owned(), Value::Null);
        }
        OperationField::Clear(_) | OperationField::Keep => {}
        OperationField::Set(asked) => {
            if operation.map(Wire::write).as_ref() != Some(asked) {
                patch.insert("operation".to_owned(), asked.clone());
            }
        }
    }
    if let Some(spec) = run.snapshot.tidied_spec() {
        patch.insert("spec".to_owned(), spec);
    }
    let mut metadata = serde_json::Map::new();
    let wanted = application.zip(run.gathered.as_ref()).and_then(|(application, gathered)| {
        finalizers_for(&application.metadata.finalizers, &gathered.desired.get().hooks)
    });
    if let Some(finalizers) = wanted {
        metadata.insert("finalizers".to_owned(), json!(finalizers));
    }
    // Remove only the request that this run served. A user may have requested another refresh in the meantime.
    if run.refresh.is_some() && run.snapshot.refresh_request() == run.refresh {
        metadata.insert("annotations".to_owned(), json!({REFRESH: null, REFRESH_TIMESTAMP: null}));
    }
    if patch.is_empty() && metadata.is_empty() {
        return None;
    }
    metadata.insert("resourceVersion".to_owned(), Value::String(run.snapshot.resource_version.clone()));
    patch.insert("metadata".to_owned(), Value::Object(metadata));
    Some(Value::Object(patch))
}

/// True if the API server refused the object because of its size.
fn is_too_large(error: &WriteError) -> bool {
    error.api().and_then(ApiError::code) == Some(413)
}

/// The stored status with the new sync and health status, and a condition that says that the rest does not fit.
fn shortened(
    snapshot: &AppSnapshot,
    after: &wire::ApplicationStatus,
    now: jiff::Timestamp,
) -> wire::ApplicationStatus {
    let mut short = snapshot.wire.as_ref().map(|wire| wire.status.clone()).unwrap_or_default();
    short.sync.status.clone_from(&after.sync.status);
    short.health.clone_from(&after.health);
    short.conditions = vec![wire::Condition {
        condition_type: "UnknownError".to_owned(),
        message: "the status is larger than the cluster can store: split the app, or keep less history \
                  (spec.revisionHistoryLimit)"
            .to_owned(),
        last_transition_time: Some(whole_seconds(now)),
    }];
    short
}
