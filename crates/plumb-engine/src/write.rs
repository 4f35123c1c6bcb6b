//! Writes down what a run has found: the Application's status and the `DriftReport`. One request each, and none
//! when nothing changed.

use std::sync::Arc;

use plumb_core::app::App;
use plumb_core::drift::Finding;
use plumb_core::object::GroupVersionKind;
use plumb_core::status::AppStatus;
use plumb_core::sync::OperationPhase;
use plumb_core::sync::deletion::finalizers_for;
use plumb_crd::application as wire;
use plumb_crd::{Application, DriftReport, IllObject, Wire};
use plumb_kube::{ApplyOptions, FieldValidation, OwnWrite, Patch, PatchOptions, Target};
use serde_json::{Value, json};
use tracing::{debug, warn};

use crate::compare::Compared;
use crate::events;
use crate::execute::images;
use crate::health::Ill;
use crate::links;
use crate::memory::Memory;
use crate::merge_patch::merge_patch;
use crate::operation::{ActiveOperation, keep_request_to_end};
use crate::project::Ground;
use crate::queue::Look;
use crate::reconcile::Run;
use crate::registry::{Known, REFRESH_ANNOTATION, REFRESH_TIMESTAMP_ANNOTATION};

/// A report names at most this many objects that are not well.
const MOST_ILL: usize = 100;

/// Conditions found in one run, in the order in which they were found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Conditions {
    found: Vec<(&'static str, String)>,
    kept: Vec<&'static str>,
}

impl Conditions {
    pub(crate) fn add(&mut self, condition: &'static str, message: impl Into<String>) {
        let entry = (condition, message.into());
        if !self.found.contains(&entry) {
            self.found.push(entry);
        }
    }

    /// Conditions of this type stay as they were: this run could not tell.
    pub(crate) fn keep(&mut self, condition: &'static str) {
        self.kept.push(condition);
    }

    /// The messages of all errors.
    pub(crate) fn errors(&self) -> Vec<String> {
        self.found
            .iter()
            .filter(|(condition, _)| condition.ends_with("Error"))
            .map(|(_, message)| message.clone())
            .collect()
    }

    /// As they stand in the status. A condition that stood there before keeps its time.
    fn on_wire(&self, before: &[wire::Condition], now: jiff::Timestamp) -> Vec<wire::Condition> {
        let mut conditions: Vec<wire::Condition> = self
            .found
            .iter()
            .map(|(condition, message)| {
                let known = before
                    .iter()
                    .find(|known| known.condition_type == *condition && known.message == *message);
                wire::Condition {
                    condition_type: (*condition).to_owned(),
                    message: message.clone(),
                    last_transition_time: known
                        .and_then(|known| known.last_transition_time)
                        .or(Some(seconds(now))),
                }
            })
            .collect();
        conditions.extend(
            before.iter().filter(|known| self.kept.contains(&known.condition_type.as_str())).cloned(),
        );
        conditions.sort_by(|a, b| (&a.condition_type, &a.message).cmp(&(&b.condition_type, &b.message)));
        conditions.dedup();
        conditions
    }
}

/// Everything that a status is made from.
pub(crate) struct StatusDraft<'a> {
    pub(crate) application: &'a Application,
    pub(crate) app: &'a App,
    pub(crate) ground: &'a Ground,
    pub(crate) compared: &'a Compared,
    pub(crate) status: &'a AppStatus,
    pub(crate) ended: Option<&'a ActiveOperation>,
}

impl Run<'_> {
    /// The status and the report after a full run.
    pub(crate) async fn write(&mut self, draft: StatusDraft<'_>, memory: &mut Memory) {
        let before = &draft.application.status;
        let mut after = before.clone();
        self.fill(&mut after, &draft);
        let active = draft.ended.or(memory.operation.as_ref());
        let mut lock = Lock::Leave;
        if let Some(active) = active {
            after.operation_state = Some(Box::new(active.to_wire(&draft.application.spec)));
            let ours = active.wire.write();
            lock = if draft.ended.is_some() { Lock::Release(ours) } else { Lock::Hold(ours) };
        }
        if let Some(ended) = draft.ended {
            self.add_history(&mut after, &draft, ended);
        }
        self.send(&after, lock).await;
        self.report(draft.app, draft.compared, memory).await;
    }

    fn fill(&self, after: &mut wire::ApplicationStatus, draft: &StatusDraft<'_>) {
        let gathered = &draft.compared.gathered;
        let is_multi = draft.app.multi_source;
        let is_inline = draft.ground.settings.persist_health;
        after.resources = draft.status.resources.iter().map(|object| resource(object, is_inline)).collect();
        after.sync = wire::SyncStatus {
            status: draft.status.sync.name().to_owned(),
            compared_to: wire::ComparedTo::of(&draft.application.spec),
            revision: if is_multi {
                String::new()
            } else {
                gathered.revisions.first().cloned().unwrap_or_default()
            },
            revisions: if is_multi { gathered.revisions.clone() } else { Vec::new() },
        };
        let health = &draft.status.health;
        let is_same = after.health.status == health.status.as_str();
        let since = if is_same { after.health.last_transition_time } else { None };
        after.health = wire::HealthStatus {
            status: health.status.as_str().to_owned(),
            message: health.message.clone(),
            last_transition_time: since.or(Some(seconds(self.now))),
        };
        after.conditions = self.conditions.on_wire(&after.conditions, self.now);
        // Scripts wait after an operation until somebody has looked since it ended, and this look has.
        let ended = draft.ended.and_then(|ended| ended.record.finished_at);
        if after.reconciled_at.is_none() || self.look >= Look::GitNow || ended.is_some() {
            after.reconciled_at = Some(seconds(ended.map_or(self.now, |ended| ended.max(self.now))));
        }
        if let Some(ended) = draft.ended {
            // What stands here was seen after the operation: scripts wait until this is not before its end.
            let seen = ended.record.finished_at.map_or(self.now, |finished| finished.max(self.now));
            after.reconciled_at = Some(seconds(seen));
        }
        after.source_type =
            if is_multi { String::new() } else { gathered.source_types.first().cloned().unwrap_or_default() };
        after.source_types = if is_multi { gathered.source_types.clone() } else { Vec::new() };
        // Empty: the health of each object stands beside it.
        after.resource_health_source = if is_inline { String::new() } else { "appTree".to_owned() };
        after.controller_namespace.clone_from(&self.engine.options.namespace);
        after.summary = summary(draft);
    }

    fn add_history(
        &self,
        after: &mut wire::ApplicationStatus,
        draft: &StatusDraft<'_>,
        ended: &ActiveOperation,
    ) {
        if ended.record.phase != OperationPhase::Succeeded || !ended.is_full() {
            return;
        }
        let Some(result) = after.operation_state.as_ref().and_then(|state| state.sync_result.clone()) else {
            return;
        };
        let id = after.history.last().map_or(0, |last| last.id.saturating_add(1));
        after.history.push(wire::RevisionHistory {
            revision: result.revision.clone(),
            deployed_at: ended.record.finished_at.unwrap_or(self.now),
            id,
            source: result.source.clone(),
            deploy_started_at: Some(ended.record.started_at),
            sources: result.sources.clone(),
            revisions: result.revisions.clone(),
            initiated_by: ended.wire.initiated_by.clone(),
        });
        let surplus = after.history.len().saturating_sub(draft.app.revision_history_limit);
        after.history.drain(..surplus);
    }

    /// Nothing could be compared: the spec is wrong.
    pub(crate) async fn write_invalid(&mut self, memory: &mut Memory) {
        let mut after =
            self.known.wire.as_ref().map(|application| application.status.clone()).unwrap_or_default();
        let conditions = self.conditions.on_wire(&after.conditions, self.now);
        let is_same = after.health.status == "Unknown";
        after.sync = wire::SyncStatus { status: "Unknown".to_owned(), ..after.sync };
        after.health = wire::HealthStatus {
            status: "Unknown".to_owned(),
            message: String::new(),
            last_transition_time: if is_same {
                after.health.last_transition_time
            } else {
                Some(seconds(self.now))
            },
        };
        after.conditions = conditions;
        after.controller_namespace.clone_from(&self.engine.options.namespace);
        if self.known.requested_refresh().is_some() || after.reconciled_at.is_none() {
            after.reconciled_at = Some(seconds(self.now));
        }
        memory.gathered = None;
        self.send(&after, Lock::Leave).await;
    }

    /// What Git asks could not be worked out: the objects keep their entries, nothing is known about them.
    pub(crate) async fn write_unknown(&mut self, application: &Application, _app: &App, memory: &mut Memory) {
        let mut after = application.status.clone();
        for resource in after.resources.iter_mut().filter(|resource| !resource.status.is_empty()) {
            "Unknown".clone_into(&mut resource.status);
        }
        "Unknown".clone_into(&mut after.sync.status);
        after.sync.compared_to = wire::ComparedTo::of(&application.spec);
        after.conditions = self.conditions.on_wire(&after.conditions, self.now);
        if after.health.status.is_empty() {
            "Unknown".clone_into(&mut after.health.status);
            after.health.last_transition_time = Some(seconds(self.now));
        }
        if self.look >= Look::GitNow || after.reconciled_at.is_none() {
            after.reconciled_at = Some(seconds(self.now));
        }
        if let Some(active) = &memory.operation {
            after.operation_state = Some(Box::new(active.to_wire(&application.spec)));
        }
        self.send(&after, Lock::Leave).await;
    }

    /// The cluster cannot be seen: nothing is known about any object, its health included.
    pub(crate) async fn write_unreachable(&mut self, application: &Application, memory: &mut Memory) {
        let mut after = application.status.clone();
        for resource in after.resources.iter_mut().filter(|resource| !resource.status.is_empty()) {
            "Unknown".clone_into(&mut resource.status);
        }
        "Unknown".clone_into(&mut after.sync.status);
        after.sync.compared_to = wire::ComparedTo::of(&application.spec);
        after.conditions = self.conditions.on_wire(&after.conditions, self.now);
        if after.health.status != "Unknown" {
            after.health = wire::HealthStatus {
                status: "Unknown".to_owned(),
                message: String::new(),
                last_transition_time: Some(seconds(self.now)),
            };
        }
        after.controller_namespace.clone_from(&self.engine.options.namespace);
        if self.look >= Look::GitNow || after.reconciled_at.is_none() {
            after.reconciled_at = Some(seconds(self.now));
        }
        if let Some(active) = &memory.operation {
            after.operation_state = Some(Box::new(active.to_wire(&application.spec)));
        }
        self.send(&after, Lock::Leave).await;
    }

    /// The operation as it stands, and nothing else. Says whether it was written.
    pub(crate) async fn write_progress(
        &mut self,
        application: &Application,
        active: &ActiveOperation,
    ) -> bool {
        let mut after = self
            .known
            .wire
            .as_ref()
            .map_or_else(|_| application.status.clone(), |known| known.status.clone());
        after.operation_state = Some(Box::new(active.to_wire(&application.spec)));
        self.send(&after, Lock::Hold(active.wire.write())).await
    }

    /// An operation that ended before it could begin.
    pub(crate) async fn write_ended(&mut self, application: &Application, active: &ActiveOperation) {
        let mut after = application.status.clone();
        after.operation_state = Some(Box::new(active.to_wire(&application.spec)));
        self.send(&after, Lock::Release(active.wire.write())).await;
    }

    /// The conditions of an app that is being deleted.
    pub(crate) async fn write_deletion(&mut self, application: &Application) {
        let mut after = application.status.clone();
        after.conditions = self.conditions.on_wire(&after.conditions, self.now);
        self.send(&after, Lock::Leave).await;
    }

    /// Sends the difference between what stands in the cluster and what should. Says whether it stands there
    /// now.
    async fn send(&mut self, after: &wire::ApplicationStatus, lock: Lock) -> bool {
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
                    if let Some((id, trigger)) = self.engine.registry.note(&seen) {
                        if let Some(trigger) =
                            trigger.filter(|_| seen.annotation(REFRESH_ANNOTATION).is_some())
                        {
                            self.engine.queue.push(id.clone(), trigger);
                        }
                        if let Some(known) = self.engine.registry.get(&id) {
                            self.known = known;
                        }
                    }
                    return true;
                }
                Err(error) if error.api().is_some_and(plumb_kube::ApiError::is_conflict) => {
                    // Somebody wrote in between: take in what they wrote, and try once more on top of it.
                    if !self.reread().await {
                        return false;
                    }
                }
                Err(error) if error.api().is_some_and(plumb_kube::ApiError::is_not_found) => return false,
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
        for happening in events::of_change(&application.status, after) {
            self.engine.tell(before, application, happening);
        }
    }

    async fn reread(&mut self) -> bool {
        let Ok(Some(seen)) = self.engine.get_application(&self.known.id).await else { return false };
        let Some((id, trigger)) = self.engine.registry.note(&seen) else { return false };
        if let Some(trigger) = trigger {
            self.engine.queue.push(id.clone(), trigger);
        }
        let Some(known) = self.engine.registry.get(&id) else { return false };
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
        if self.known.requested_refresh().is_some() {
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

    async fn report(&self, app: &App, compared: &Compared, memory: &mut Memory) {
        let findings: Vec<&Finding> =
            compared.verdicts.values().flat_map(|verdict| &verdict.findings).collect();
        let revision = compared.gathered.revisions.first().cloned().unwrap_or_default();
        let ill: Vec<IllObject> = compared.checked.ill.iter().take(MOST_ILL).map(ill_object).collect();
        let pauses = self.pauses(app, compared);
        let is_empty = findings.is_empty() && ill.is_empty() && pauses.is_empty();
        let report = DriftReport::of(&app.id, &revision, seconds(self.now), findings)
            .with_health(ill)
            .with_pauses(pauses);
        if memory.report.is_none() {
            // What an earlier process wrote is not written again.
            memory.report = self.engine.reports.take(&app.id);
        }
        if memory.report.as_ref().is_some_and(|written| written.says_the_same(&report)) {
            return;
        }
        if memory.report.is_none() && is_empty && !self.engine.reports.contains(&app.id) {
            return;
        }
        let mut object = report.to_json();
        object["metadata"] = json!({
            "name": app.id.name,
            "namespace": app.id.namespace,
            // The report goes when its app goes.
            "ownerReferences": [{"apiVersion": Application::API_VERSION, "kind": Application::KIND, "name": app.id.name, "uid": app.uid}],
        });
        let Ok(manifest) = plumb_core::object::Manifest::new(object) else { return };
        let options = ApplyOptions {
            field_manager: "plumb".to_owned(),
            force: true,
            field_validation: FieldValidation::Ignore,
            subresource: None,
        };
        match self.engine.home.gate.write_own(&OwnWrite::Apply { manifest, options }).await {
            Ok(_) => {
                self.engine.reports.insert(&app.id);
                memory.report = Some(report);
            }
            Err(error) => {
                debug!(app = %app.id, %error, "report not written");
                self.engine.retry_later(&app.id);
            }
        }
    }
}

/// Images of the app's pods, where it can be reached, and whether it has apps of its own.
fn summary(draft: &StatusDraft<'_>) -> wire::ApplicationSummary {
    let tree = draft.ground.cluster.store.tree(&draft.ground.instance);
    let mut found: Vec<String> =
        tree.iter().flat_map(|node| node.images.iter().map(ToString::to_string)).collect();
    if found.is_empty() {
        // Workloads without pods (scaled to zero) have images all the same.
        found = draft.compared.live.objects.values().flat_map(|live| images(live)).collect();
    }
    found.sort();
    found.dedup();
    wire::ApplicationSummary {
        external_urls: links::external_urls(
            &draft.app.annotations,
            draft.compared.live.objects.values().map(AsRef::as_ref),
        ),
        images: found,
        is_app_of_apps: draft.status.is_app_of_apps,
    }
}

/// An object that is not well, as the report has it.
fn ill_object(ill: &Ill) -> IllObject {
    IllObject {
        group: ill.key.group.clone(),
        kind: ill.key.kind.clone(),
        namespace: ill.key.namespace_or_empty().to_owned(),
        name: ill.key.name.clone(),
        status: ill.status.map(|status| status.as_str().to_owned()).unwrap_or_default(),
        since: Some(seconds(ill.since)),
        stuck: ill.is_stuck,
        message: ill.message.clone(),
        causes: ill.causes.clone(),
    }
}

/// Does the server say that it is more than it can store?
fn is_too_large(error: &plumb_kube::WriteError) -> bool {
    error.api().and_then(plumb_kube::ApiError::code) == Some(413)
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
        last_transition_time: Some(seconds(now)),
    }];
    short
}

/// What happens to the `operation` field.
enum Lock {
    /// It is not ours to change.
    Leave,
    /// It says what is under way.
    Hold(Value),
    /// It goes, if it is still this one.
    Release(Value),
}

/// One entry of `resources`. Health is stored only on request, and only where it counts.
fn resource(object: &plumb_core::status::ObjectStatus, with_health: bool) -> wire::ResourceStatus {
    let counts = with_health && object.role == plumb_core::health::Role::Counts;
    let health = object.health.as_ref().filter(|_| counts).map(|health| wire::HealthStatus {
        status: health.status.as_str().to_owned(),
        message: health.message.clone(),
        last_transition_time: None,
    });
    wire::ResourceStatus {
        group: object.key.group.clone(),
        version: object.version.clone(),
        kind: object.key.kind.clone(),
        namespace: object.key.namespace_or_empty().to_owned(),
        name: object.key.name.clone(),
        status: object.status.map(|status| status.name().to_owned()).unwrap_or_default(),
        health,
        hook: object.is_hook,
        requires_pruning: object.requires_pruning,
        sync_wave: object.wave.map_or(0, |wave| i64::from(wave.0)),
        requires_deletion_confirmation: object.requires_confirmation,
    }
}

/// Times on the wire have no fractions.
pub(crate) fn seconds(time: jiff::Timestamp) -> jiff::Timestamp {
    jiff::Timestamp::from_second(time.as_second()).unwrap_or(time)
}

/// Group, version and kind of Applications.
pub(crate) fn application_gvk() -> GroupVersionKind {
    GroupVersionKind::from_api_version(Application::API_VERSION, Application::KIND)
}

/// The patch of one Application.
pub(crate) fn application_patch(id: &plumb_core::app::AppId, patch: Value) -> OwnWrite {
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
