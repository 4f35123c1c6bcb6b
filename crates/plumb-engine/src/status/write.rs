//! Writes the results of a run: the Application's status and the `DriftReport`. One request each, and none if nothing
//! changed.

use plumb_core::object::images;
use plumb_core::status::AppStatus;
use plumb_core::sync::OperationPhase;
use plumb_crd::application as wire;
use plumb_crd::wire::whole_seconds;
use plumb_crd::{Application, Wire as _};

use super::links;
use super::patch::{OperationField, send};
use super::report::write_report;
use crate::app_run::{AppInputs, AppRun};
use crate::compare::run::Compared;
use crate::operation::active::ActiveOperation;
use crate::queue::RefreshDepth;
use crate::state::app_state::AppState;

/// Everything that a status is built from.
pub(crate) struct StatusDraft<'a> {
    pub(crate) inputs: AppInputs<'a>,
    pub(crate) compared: &'a Compared,
    pub(crate) status: &'a AppStatus,
    pub(crate) ended: Option<&'a ActiveOperation>,
}

/// Writes the status and the report after a full run. Returns whether the cluster holds the status now.
pub(crate) async fn write(run: &mut AppRun<'_>, draft: StatusDraft<'_>, state: &mut AppState) -> bool {
    let before = &draft.inputs.application.status;
    let mut after = before.clone();
    fill(run, &mut after, &draft);
    let active = draft.ended.or(state.operation.active.as_ref());
    let mut field = OperationField::Keep;
    if let Some(active) = active {
        after.operation_state = Some(Box::new(active.to_wire(&draft.inputs.application.spec)));
        let ours = active.wire.write();
        field = if draft.ended.is_some() { OperationField::Clear(ours) } else { OperationField::Set(ours) };
    }
    if let Some(ended) = draft.ended {
        add_history(run, &mut after, &draft, ended);
    }
    let is_written = send(run, &after, field).await;
    write_report(run, &draft, &mut state.report).await;
    is_written
}

fn fill(run: &AppRun<'_>, after: &mut wire::ApplicationStatus, draft: &StatusDraft<'_>) {
    let gathered = &draft.compared.gathered;
    let is_multi = draft.inputs.app.multi_source;
    let is_inline = draft.inputs.context.settings.persist_health;
    after.resources = draft.status.resources.iter().map(|object| resource(object, is_inline)).collect();
    after.sync = wire::SyncStatus {
        status: draft.status.sync.name().to_owned(),
        compared_to: wire::ComparedTo::of(&draft.inputs.application.spec),
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
        last_transition_time: since.or(Some(whole_seconds(run.now))),
    };
    after.conditions = run.conditions.on_wire(&after.conditions, run.now);
    // Users' scripts wait until `reconciledAt` is not before the end of the operation. This run compared after it.
    let compared_at =
        draft.ended.map(|ended| ended.record.finished_at.map_or(run.now, |end| end.max(run.now)));
    if after.reconciled_at.is_none() || run.trigger.depth >= RefreshDepth::GitNow || compared_at.is_some() {
        after.reconciled_at = Some(whole_seconds(compared_at.unwrap_or(run.now)));
    }
    after.source_type =
        if is_multi { String::new() } else { gathered.source_types.first().cloned().unwrap_or_default() };
    after.source_types = if is_multi { gathered.source_types.clone() } else { Vec::new() };
    // Empty means that each entry of `resources` has its own health.
    after.resource_health_source = if is_inline { String::new() } else { "appTree".to_owned() };
    after.controller_namespace.clone_from(&run.engine.options.namespace);
    after.summary = summary(draft);
}

fn add_history(
    run: &AppRun<'_>,
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
        deployed_at: ended.record.finished_at.unwrap_or(run.now),
        id,
        source: result.source.clone(),
        deploy_started_at: Some(ended.record.started_at),
        sources: result.sources.clone(),
        revisions: result.revisions.clone(),
        initiated_by: ended.wire.initiated_by.clone(),
    });
    let surplus = after.history.len().saturating_sub(draft.inputs.app.revision_history_limit);
    after.history.drain(..surplus);
}

/// Writes the state of the operation and nothing else. Returns whether it was written.
pub(crate) async fn write_progress(
    run: &mut AppRun<'_>,
    application: &Application,
    active: &ActiveOperation,
) -> bool {
    let mut after = run
        .snapshot
        .wire
        .as_ref()
        .map_or_else(|_| application.status.clone(), |stored| stored.status.clone());
    after.operation_state = Some(Box::new(active.to_wire(&application.spec)));
    // A requested refresh is answered at the end of the run, not now.
    let requested = run.refresh.take();
    let is_written = send(run, &after, OperationField::Set(active.wire.write())).await;
    run.refresh = requested;
    is_written
}

/// Writes the result of an operation that ended before it could start.
pub(crate) async fn write_ended(run: &mut AppRun<'_>, application: &Application, active: &ActiveOperation) {
    let mut after = application.status.clone();
    after.operation_state = Some(Box::new(active.to_wire(&application.spec)));
    send(run, &after, OperationField::Clear(active.wire.write())).await;
}

/// Writes the conditions of an app that is being deleted.
pub(crate) async fn write_deletion(run: &mut AppRun<'_>, application: &Application) {
    let mut after = application.status.clone();
    after.conditions = run.conditions.on_wire(&after.conditions, run.now);
    send(run, &after, OperationField::Keep).await;
}

/// Images of the app's pods, its URLs, and whether it is an app of apps.
fn summary(draft: &StatusDraft<'_>) -> wire::ApplicationSummary {
    let context = draft.inputs.context;
    let tree = context.cluster.store.tree(&context.instance).into_iter();
    let tree: Vec<_> = tree
        .filter(|node| node.key.namespace.as_deref().is_none_or(|name| context.permits_namespace(name)))
        .collect();
    let mut found: Vec<String> =
        tree.iter().flat_map(|node| node.images.iter().map(ToString::to_string)).collect();
    if found.is_empty() {
        // A workload that is scaled to zero has no pods: use the images of its pod template.
        found = draft.compared.live.objects.values().flat_map(|live| images(live)).collect();
    }
    found.sort();
    found.dedup();
    wire::ApplicationSummary {
        external_urls: links::external_urls(
            &draft.inputs.app.annotations,
            draft.compared.live.objects.values().map(AsRef::as_ref),
        ),
        images: found,
        is_app_of_apps: draft.status.is_app_of_apps,
    }
}

/// One entry of `resources`. Health is stored only if the settings say so, and only for objects that count.
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
