//! The one request that changes an Application from what the cluster holds to what it should hold.

use std::sync::Arc;

use plumb_core::object::merge_patch;
use plumb_core::sync::deletion::finalizers_for;
use plumb_crd::Wire;
use plumb_crd::application as wire;
use plumb_crd::wire::whole_seconds;
use plumb_kube::{ApiError, WriteError};
use serde_json::{Value, json};
use tracing::warn;

use crate::app_run::AppRun;
use crate::apps::registry::{REFRESH_ANNOTATION, REFRESH_TIMESTAMP_ANNOTATION};
use crate::apps::snapshot::AppSnapshot;
use crate::events::event::of_change;
use crate::operation::active::keep_request_to_end;

/// What happens to the `operation` field.
pub(super) enum OperationField {
    /// It is not ours to change.
    Keep,
    /// It says what is under way.
    Set(Value),
    /// It goes, if it is still this one.
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
    let mut is_short = false;
    for _ in 0..3 {
        if let (Some(state), Ok(known)) = (&mut after.operation_state, &run.snapshot.wire) {
            keep_request_to_end(known.status.operation_state.as_deref(), state);
        }
        let Some(patch) = patch(run, &after, &operation) else { return true };
        let before = Arc::clone(&run.snapshot);
        match run.engine.patch_application(&run.snapshot.id, patch).await {
            Ok(seen) => {
                record_events(run, &before, &after);
                if let Some((known, trigger)) = run.engine.registry.note(&seen) {
                    if let Some(trigger) = trigger.filter(|_| seen.annotation(REFRESH_ANNOTATION).is_some()) {
                        run.engine.queue.push(known.id.clone(), trigger);
                    }
                    run.snapshot = known;
                }
                return true;
            }
            Err(error) if error.api().is_some_and(ApiError::is_conflict) => {
                // Somebody wrote in between: take in what they wrote, and try once more on top of it.
                if !reread(run).await {
                    run.engine.retry_later(&run.snapshot.id);
                    return false;
                }
            }
            Err(error) if error.api().is_some_and(ApiError::is_not_found) => return false,
            Err(error) if is_too_large(&error) && !is_short => {
                // More than etcd takes: at least the reason gets through.
                warn!(app = %run.snapshot.id, %error, "the status is too large");
                after = shortened(&run.snapshot, &after, run.now);
                is_short = true;
            }
            Err(error) => {
                warn!(app = %run.snapshot.id, %error, "status not written");
                run.engine.retry_later(&run.snapshot.id);
                return false;
            }
        }
    }
    run.engine.retry_later(&run.snapshot.id);
    false
}

/// Events for what a write changed.
fn record_events(run: &AppRun<'_>, before: &AppSnapshot, after: &wire::ApplicationStatus) {
    let Ok(application) = &before.wire else { return };
    for event in of_change(&application.status, after) {
        run.engine.record_event(before, application, event);
    }
}

async fn reread(run: &mut AppRun<'_>) -> bool {
    let Ok(Some(seen)) = run.engine.get_application(&run.snapshot.id).await else { return false };
    let Some((known, trigger)) = run.engine.registry.note(&seen) else { return false };
    if let Some(trigger) = trigger {
        run.engine.queue.push(known.id.clone(), trigger);
    }
    run.snapshot = known;
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
        // Another operation that somebody asked for in between is theirs.
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
    // Only what this run has done: somebody may have asked for another look in the meantime.
    if run.refresh.is_some() && run.snapshot.refresh_request() == run.refresh {
        metadata.insert(
            "annotations".to_owned(),
            json!({REFRESH_ANNOTATION: null, REFRESH_TIMESTAMP_ANNOTATION: null}),
        );
    }
    if patch.is_empty() && metadata.is_empty() {
        return None;
    }
    metadata.insert("resourceVersion".to_owned(), Value::String(run.snapshot.resource_version.clone()));
    patch.insert("metadata".to_owned(), Value::Object(metadata));
    Some(Value::Object(patch))
}

/// Does the server say that it is more than it can store?
fn is_too_large(error: &WriteError) -> bool {
    error.api().and_then(ApiError::code) == Some(413)
}

/// What stood in the cluster before, and that more does not fit.
fn shortened(
    known: &AppSnapshot,
    after: &wire::ApplicationStatus,
    now: jiff::Timestamp,
) -> wire::ApplicationStatus {
    let mut short = known.wire.as_ref().map(|wire| wire.status.clone()).unwrap_or_default();
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
