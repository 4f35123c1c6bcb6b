//! One run for one app. Reads as the way of the data in ARCHITECTURE.md.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use plumb_core::drift::VerdictStatus;
use plumb_core::object::ObjectKey;
use plumb_core::status::{AppStatus, SyncCode};
use plumb_core::sync::{OperationPhase, PlannedKinds};
use plumb_crd::application::ConditionType;
use plumb_crd::to_leaving_app;
use tracing::{Instrument as _, debug, debug_span, info_span};

use super::gather::{Desired, gather_or_keep};
use super::idle_check::is_unchanged;
use super::restore;
use super::unavailable::{AppParts, fail_operation, leave_objects, without_context};
use crate::app_run::compare::compare;
use crate::app_run::{AppInputs, AppRun};
use crate::apps::context::Purpose;
use crate::compare::judge::DryRunPolicy;
use crate::compare::run::Compared;
use crate::deletion::app::delete;
use crate::engine::Engine;
use crate::metrics::counters::ON_BEHALF;
use crate::operation::ended::EndedOperation;
use crate::queue::{Job, RefreshDepth, Trigger, TriggerReason};
use crate::state::app_state::AppState;
use crate::status::pauses::pauses;
use crate::status::roll_up::roll_up;
use crate::status::unknown::{write_invalid, write_unknown};
use crate::status::warnings::add_warnings;
use crate::status::write::{StatusDraft, write};
use crate::sync::advance::operate;
use crate::sync::automation::start_by_itself;
use crate::sync::kinds::{kinds_of, present_kinds};
use crate::sync::requested::current_operation;

/// How long a hard refresh waits for the lists of the app's kinds. Later ones request a run by what they change.
const READ_WITHIN: Duration = Duration::from_secs(10);

/// How a run ended.
#[derive(Debug)]
pub(super) enum RunEnd {
    /// The status is up to date in the cluster, or a retry is requested.
    Written,
    /// The end of an operation waits a moment for the app to become healthy.
    Settling,
    /// Git or chart servers take long. Another run is requested for when they have answered.
    WaitingForSources,
    /// All slots for runs on the app's cluster are taken, or other large apps run. Another run is requested for when one is free.
    WaitingForSlot,
    /// Nothing could be compared: the sources or the cluster cannot be read. The status says why.
    Unknown,
    /// The spec is invalid, the project does not permit it, or its cluster is not available. The status says why.
    Unavailable,
    /// The app is being deleted.
    Deleting,
    /// An annotation says that plumb leaves the app alone.
    Skipped,
}

/// Runs one app.
pub(crate) async fn reconcile(engine: &Engine, job: &Job) {
    let span = info_span!("reconcile", app = %job.app, trigger = job.trigger.reason.name());
    async {
        let state = engine.records.state(&job.app);
        let mut state = state.lock().await;
        if is_unchanged(engine, job, &mut state).await {
            return;
        }
        let Some(snapshot) = engine.registry.get(&job.app) else {
            return engine.forget(&job.app);
        };
        let labels = engine.labels_of(&snapshot);
        engine.metrics.triggers.increment([job.trigger.reason.name()]);
        let _measured = engine.metrics.run(&labels);
        let mut run = AppRun::new(engine, job, snapshot);
        let end = ON_BEHALF.scope(labels.clone(), check_and_run(&mut run, &mut state)).await;
        if run.gathered.is_none() && !matches!(end, RunEnd::WaitingForSources | RunEnd::WaitingForSlot) {
            let waiting = engine.claims.not_rendered(&job.app);
            engine.request_runs(waiting, Trigger::live(TriggerReason::Claim));
            // A prune of another app need not wait for this one any more.
            let waiting = engine.records.take_waiting(&job.app);
            engine.request_runs(waiting, Trigger::live(TriggerReason::Move));
        }
        debug!(depth = ?run.trigger.depth, ?end, "reconciled");
    }
    .instrument(span)
    .await;
}

/// Checks the spec, the project and the cluster, then deletes or reconciles the app.
async fn check_and_run(run: &mut AppRun<'_>, state: &mut AppState) -> RunEnd {
    let snapshot = Arc::clone(&run.snapshot);
    let leaving;
    let (application, app) = match (&snapshot.wire, &snapshot.app) {
        (Ok(application), Ok(app)) => (application, app),
        (Ok(application), Err(_)) if application.is_terminating() => {
            leaving = to_leaving_app(application);
            let Some(app) = &leaving else {
                leave_objects(run, application).await;
                return RunEnd::Deleting;
            };
            (application, app)
        }
        (Ok(application), Err(problems)) => {
            for problem in problems {
                run.conditions.add(ConditionType::InvalidSpecError, problem.to_string());
            }
            fail_operation(run, application, &mut state.operation).await;
            write_invalid(run, state).await;
            return RunEnd::Unavailable;
        }
        (Err(error), _) => {
            let message = format!("the Application cannot be read: {error}");
            run.conditions.add(ConditionType::InvalidSpecError, message);
            write_invalid(run, state).await;
            return RunEnd::Unavailable;
        }
    };
    if app.skip_reconcile {
        return RunEnd::Skipped;
    }
    // pure: settings, project and cluster, from memory
    let purpose = if application.is_terminating() { Purpose::Delete } else { Purpose::Reconcile };
    let context = match run.engine.context_for(app, purpose) {
        Ok(context) => context,
        Err(why) => {
            without_context(run, AppParts { application, app }, why, state).await;
            return RunEnd::Unavailable;
        }
    };
    let trigger = Trigger::new(run.trigger.depth, TriggerReason::Slot);
    let Some(_slot) = context.cluster.run_slots.take(&run.engine.queue, &app.id, trigger) else {
        return RunEnd::WaitingForSlot;
    };
    let Ok(_turn) = run.engine.large_apps.take_turn(&app.id, trigger) else {
        return RunEnd::WaitingForSlot;
    };
    let inputs = AppInputs { application, app, context: &context };
    if application.is_terminating() {
        delete(run, inputs, state).await;
        return RunEnd::Deleting;
    }
    reconcile_app(run, inputs, state).await
}

/// Gathers, compares, syncs and writes one app.
async fn reconcile_app(run: &mut AppRun<'_>, inputs: AppInputs<'_>, state: &mut AppState) -> RunEnd {
    // client: Git and the renderers
    let desired = match gather_or_keep(run, inputs, state).instrument(debug_span!("gather")).await {
        Ok(desired) => desired,
        Err(end) => return end,
    };
    // client: a hard refresh takes no kind and no list for granted
    if run.trigger.depth == RefreshDepth::Hard {
        read_again(inputs, &desired).await;
    }
    // pure: does a sync follow that writes every difference anyway?
    let dry_runs = dry_run_policy(run, inputs, &desired);
    // client: the live objects, and answers of the API server where the judge asks
    let comparison = compare(run, inputs, &desired.gathered, dry_runs, state);
    let compared = match comparison.instrument(debug_span!("compare")).await {
        Ok(compared) => compared,
        Err(error) => {
            let message = format!("the cluster cannot be read: {error}");
            run.conditions.add(ConditionType::ComparisonError, message);
            write_unknown(run, inputs.application, state).await;
            return RunEnd::Unknown;
        }
    };
    // client: what the last process synced, once after a start and only if something is out of sync
    let compared = match restore::after_restart(run, inputs, compared, dry_runs, state).await {
        Ok(compared) => compared,
        Err(end) => return end,
    };
    // pure: the status
    let status = roll_up(run, inputs, &compared, desired.age.decides_nothing());
    // client: the steps of a sync; compares again if something was written
    let synced = sync(run, inputs, Assessment { compared, status }, &desired, state);
    let mut after = synced.instrument(debug_span!("sync")).await;
    if desired.age.is_outdated() {
        after.status = roll_up(run, inputs, &after.compared, true);
    }
    if let Some(ended) = state.operation.ended.as_ref().filter(|ended| ended.settles_soon(&after.status)) {
        let trigger = Trigger::live(TriggerReason::Settled);
        run.engine.queue.push_after(run.id().clone(), trigger, ended.may_wait());
        return RunEnd::Settling;
    }
    // pure: conditions, pauses, findings
    note(run, inputs, &after, state);
    // client: one request each for the status and the report, none if nothing changed
    write_all(run, inputs, &after, state).instrument(debug_span!("write")).await;
    RunEnd::Written
}

/// Reads the kinds of the app's cluster again, and lists the objects of those that the app uses.
async fn read_again(inputs: AppInputs<'_>, desired: &Desired) {
    let set = desired.gathered.desired.get();
    let hooks = set.hooks.iter().map(|hook| hook.manifest.gvk().group_kind());
    let recorded = inputs.recorded();
    let kinds = set.objects.keys().chain(recorded.keys()).map(ObjectKey::group_kind).chain(hooks);
    inputs.context.cluster.store.read_again(&kinds.collect(), READ_WITHIN).await;
}

/// A comparison and the status that follows from it.
struct Assessment {
    compared: Compared,
    status: AppStatus,
}

/// Moves the operation along: one under way, one that a user requested, or one that starts by itself.
async fn sync(
    run: &mut AppRun<'_>,
    inputs: AppInputs<'_>,
    assessed: Assessment,
    desired: &Desired,
    state: &mut AppState,
) -> Assessment {
    // The end of an operation that is not written yet is written before anything else is decided.
    if state.operation.ended.is_some() {
        return assessed;
    }
    let Assessment { compared, status } = &assessed;
    let mut operation = current_operation(run, inputs.application, &mut state.operation);
    if operation.is_none() {
        // client: only after a failure, and only schemas that changed
        let kinds = match &state.operation.failed_with {
            Some(_) => present_kinds(&inputs.context.cluster, kinds_of(&compared.gathered)).await,
            None => PlannedKinds::default(),
        };
        let (judge, slot) = (&mut state.judge, &mut state.operation);
        operation = start_by_itself(run, inputs, compared, status, judge, slot, &kinds);
    }
    let Some(mut active) = operation else { return assessed };
    if !active.record.phase.is_completed() {
        operate(run, inputs, compared, &mut active, state).await;
    }
    let has_written = active.state.is_some();
    if active.record.phase == OperationPhase::Succeeded {
        state.git.note_synced();
    }
    if active.record.phase.is_completed() {
        let has_failed = active.record.phase != OperationPhase::Succeeded;
        state.operation.failed_with = active.kinds.clone().filter(|_| has_failed);
        state.operation.ended = Some(EndedOperation::new(active, Timestamp::now()));
    } else {
        state.operation.active = Some(active);
    }
    if !has_written {
        return assessed;
    }
    // The store has what was applied already: this comparison shows its effect.
    match compare(run, inputs, &desired.gathered, DryRunPolicy::Ask, state).await {
        Ok(compared) => {
            let status = roll_up(run, inputs, &compared, desired.age.decides_nothing());
            Assessment { compared, status }
        }
        Err(_) => assessed,
    }
}

/// Notes what the run found for later runs, and requests those that time alone makes necessary.
fn note(run: &mut AppRun<'_>, inputs: AppInputs<'_>, assessed: &Assessment, state: &mut AppState) {
    let compared = &assessed.compared;
    add_warnings(run, inputs, compared);
    let pauses = pauses(run, inputs, compared);
    let pause_ends = pauses.iter().filter_map(|(_, pause)| pause.until).min();
    if let Some(until) = pause_ends.filter(|_| pause_ends != state.report.pause_ends) {
        run.run_at(Trigger::live(TriggerReason::PauseEnded), until);
    }
    state.report.pause_ends = pause_ends;
    // A fight with another writer is over once the object is in sync: the next one is counted from the start.
    let in_sync = compared.verdicts.values().filter(|verdict| verdict.status == VerdictStatus::Synced);
    let ledger = std::mem::take(&mut state.judge.ledger);
    state.judge.ledger = ledger.settled(in_sync.map(|verdict| &verdict.key));
    let found = compared.verdicts.iter().filter(|(_, verdict)| !verdict.findings.is_empty());
    state.judge.findings = found.map(|(key, verdict)| (key.clone(), verdict.findings.clone())).collect();
    let findings = state.judge.findings.values().flat_map(|found| found.iter());
    run.engine.records.set_findings(run.id(), findings);
    if !compared.live.complete {
        run.engine.run_when_listed(run.id(), &inputs.context.cluster);
    }
}

/// Writes the status and the report, and settles the app if nothing is left to do.
async fn write_all(run: &mut AppRun<'_>, inputs: AppInputs<'_>, assessed: &Assessment, state: &mut AppState) {
    let ended = state.operation.ended.take();
    let is_idle =
        ended.is_none() && state.operation.active.is_none() && inputs.application.operation.is_none();
    let is_clean = assessed.status.sync == SyncCode::Synced && run.conditions.lets_settle();
    let draft = StatusDraft {
        inputs,
        compared: &assessed.compared,
        status: &assessed.status,
        ended: ended.as_ref().map(|ended| &ended.operation),
    };
    let is_written = write(run, draft, state).await;
    state.is_settled = is_idle && is_clean && is_written;
    if !is_written {
        // It is written next time, the end of an operation before all else.
        state.operation.ended = ended;
    } else if ended.is_some() {
        // The next decision: something may still be out of sync, or a new commit may wait.
        run.engine.queue.push(run.id().clone(), Trigger::live(TriggerReason::OperationEnded));
    }
    if state.is_settled {
        state.git.note_in_sync();
        state.shrink();
    }
}

/// If a sync writes every difference anyway, the API server need not be asked for dry runs.
fn dry_run_policy(run: &AppRun<'_>, inputs: AppInputs<'_>, desired: &Desired) -> DryRunPolicy {
    let AppInputs { application, app, context } = inputs;
    let is_held = inputs.pause(run.now).is_some() || context.window(app, run.now).is_some();
    let follows = plumb_core::automation::sync_follows(
        app.sync_policy.automated.is_some(),
        application.operation.is_some(),
        is_held,
        crate::sync::automation::last_operation(application, app).as_ref(),
        &desired.gathered.revisions,
    );
    if follows { DryRunPolicy::SyncFollows } else { DryRunPolicy::Ask }
}
