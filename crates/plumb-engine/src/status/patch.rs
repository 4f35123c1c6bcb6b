//! The one request that brings an Application from what stands in the cluster to what should.

use std::sync::Arc;

use plumb_core::app::AppId;
use plumb_core::object::{GroupVersionKind, merge_patch};
use plumb_core::sync::deletion::finalizers_for;
use plumb_crd::application as wire;
use plumb_crd::wire::whole_seconds;
use plumb_crd::{Application, Wire};
use plumb_kube::{ApiError, OwnWrite, Patch, PatchOptions, Target, WriteError};
use serde_json::{Value, json};
use tracing::warn;

use crate::apps::registry::{REFRESH_ANNOTATION, REFRESH_TIMESTAMP_ANNOTATION};
use crate::apps::snapshot::Known;
use crate::events;
use crate::operation::active::keep_request_to_end;
use crate::reconcile::run::Run;

/// What happens to the `operation` field.
pub(super) enum Lock {
    /// It is not ours to change.
    Leave,
    /// It says what is under way.
    Hold(Value),
    /// It goes, if it is still this one.
    Release(Value),
}

impl Run<'_> {
    /// Sends the difference between what stands in the cluster and what should. Says whether it stands there
    /// now.
    pub(super) async fn send(&mut self, after: &wire::ApplicationStatus, lock: Lock) -> bool {
        let mut after = after.clone();
        let mut is_short = false;
        for _ in 0..3 {
            if let (Some(state), Ok(known)) = (&mut after.operation_state, &self.known.wire) {
                keep_request_to_end(known.status.operation_state.as_deref(), state);
            }
            let Some(patch) = self.patch(&after, &lock) else { return true };
            let before = Arc::clone(&self.known);
            match self.engine.patch_application(&self.known.id, patch).await {
                Ok(seen) => {
                    self.tell(&before, &after);
                    if let Some((known, trigger)) = self.engine.registry.note(&seen) {
                        if let Some(trigger) =
                            trigger.filter(|_| seen.annotation(REFRESH_ANNOTATION).is_some())
                        {
                            self.engine.queue.push(known.id.clone(), trigger);
                        }
                        self.known = known;
                    }
                    return true;
                }
                Err(error) if error.api().is_some_and(ApiError::is_conflict) => {
                    // Somebody wrote in between: take in what they wrote, and try once more on top of it.
                    if !self.reread().await {
                        self.engine.retry_later(&self.known.id);
                        return false;
                    }
                }
                Err(error) if error.api().is_some_and(ApiError::is_not_found) => return false,
                Err(error) if is_too_large(&error) && !is_short => {
                    // More than etcd takes: at least the reason gets through.
                    warn!(app = %self.known.id, %error, "the status is too large");
                    after = shortened(&self.known, &after, self.now);
                    is_short = true;
                }
                Err(error) => {
                    warn!(app = %self.known.id, %error, "status not written");
                    self.engine.retry_later(&self.known.id);
                    return false;
                }
            }
        }
        self.engine.retry_later(&self.known.id);
        false
    }

    /// Events for what a write changed.
    fn tell(&self, before: &Known, after: &wire::ApplicationStatus) {
        let Ok(application) = &before.wire else { return };
        for happening in events::event::of_change(&application.status, after) {
            self.engine.tell(before, application, happening);
        }
    }

    async fn reread(&mut self) -> bool {
        let Ok(Some(seen)) = self.engine.get_application(&self.known.id).await else { return false };
        let Some((known, trigger)) = self.engine.registry.note(&seen) else { return false };
        if let Some(trigger) = trigger {
            self.engine.queue.push(known.id.clone(), trigger);
        }
        self.known = known;
        true
    }

    /// The whole change of the Application as one merge patch; `None` if there is nothing to change.
    fn patch(&self, after: &wire::ApplicationStatus, lock: &Lock) -> Option<Value> {
        let application = self.known.wire.as_ref().ok();
        let before = application.map_or_else(|| json!({}), |application| application.status.write());
        let mut patch = serde_json::Map::new();
        if let Some(status) = merge_patch(&before, &after.write()) {
            patch.insert("status".to_owned(), status);
        }
        let operation = application.and_then(|application| application.operation.as_ref());
        match lock {
            // Another operation that somebody asked for in between is theirs.
            Lock::Release(ours) if operation.map(Wire::write).as_ref() == Some(ours) => {
                patch.insert("operation".to_owned(), Value::Null);
            }
            Lock::Release(_) | Lock::Leave => {}
            Lock::Hold(asked) => {
                if operation.map(Wire::write).as_ref() != Some(asked) {
                    patch.insert("operation".to_owned(), asked.clone());
                }
            }
        }
        if let Some(spec) = self.known.tidied_spec() {
            patch.insert("spec".to_owned(), spec);
        }
        let mut metadata = serde_json::Map::new();
        let wanted = application.zip(self.hooks.as_ref()).and_then(|(application, gathered)| {
            finalizers_for(&application.metadata.finalizers, &gathered.desired.get().hooks)
        });
        if let Some(finalizers) = wanted {
            metadata.insert("finalizers".to_owned(), json!(finalizers));
        }
        // Only what this run has done: somebody may have asked for another look in the meantime.
        if self.refresh.is_some() && self.known.refresh_request() == self.refresh {
            metadata.insert(
                "annotations".to_owned(),
                json!({REFRESH_ANNOTATION: null, REFRESH_TIMESTAMP_ANNOTATION: null}),
            );
        }
        if patch.is_empty() && metadata.is_empty() {
            return None;
        }
        metadata.insert("resourceVersion".to_owned(), Value::String(self.known.resource_version.clone()));
        patch.insert("metadata".to_owned(), Value::Object(metadata));
        Some(Value::Object(patch))
    }
}

/// Does the server say that it is more than it can store?
fn is_too_large(error: &WriteError) -> bool {
    error.api().and_then(ApiError::code) == Some(413)
}

/// What stood in the cluster before, and that more does not fit.
fn shortened(
    known: &Known,
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

/// Group, version and kind of Applications.
pub(crate) fn application_gvk() -> GroupVersionKind {
    GroupVersionKind::from_api_version(Application::API_VERSION, Application::KIND)
}

/// The patch of one Application.
pub(crate) fn application_patch(id: &AppId, patch: Value) -> OwnWrite {
    OwnWrite::Patch {
        target: Target {
            gvk: application_gvk(),
            namespace: Some(id.namespace.clone()),
            name: id.name.clone(),
        },
        patch: Patch::Merge(patch),
        options: PatchOptions {
            field_manager: Some("argocd-application-controller".to_owned()),
            subresource: None,
        },
    }
}
