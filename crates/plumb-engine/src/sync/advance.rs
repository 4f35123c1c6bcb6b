//! Moves an operation along: plans it, carries out its steps, and stops where only an event can help.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use plumb_core::object::ObjectKey;
use plumb_core::plan::{Plan, row_of};
use plumb_core::plan::{approval, approval_of};
use plumb_core::project::SyncTrigger;
use plumb_core::status::After;
use plumb_core::sync::{
    self, Observation, Observed, OperationPhase, StepOutcome, SyncLimits, SyncState, must_be_recorded,
    newer_revision, retry_policy,
};
use plumb_crd::Application;
use tracing::info;

use super::carry_out::{Work, carry_out, repaired};
use super::history::{last_synced, replaced_history};
use super::kinds::{kinds_of, present_kinds};
use super::observe::observations;
use super::plan::plan;
use super::sibling_apps::waits_for_siblings;
use crate::app_run::compare::compare;
use crate::app_run::{AppInputs, AppRun};
use crate::cluster::destination::Cluster;
use crate::compare::judge::DryRunPolicy;
use crate::compare::run::Compared;
use crate::operation::active::ActiveOperation;
use crate::queue::{RefreshDepth, Trigger, TriggerReason};
use crate::sources::gather::OperationSources;
use crate::sources::gathered::Gathered;
use crate::sources::slow_servers::{Answered, NotGathered, Patience};
use crate::state::app_state::AppState;
use crate::state::retries::Subject;
use crate::status::write::write_progress;

/// How long a sync that prunes waits for kinds that appeared a moment ago to be listed.
const LISTED_WITHIN: Duration = Duration::from_secs(2);

/// Goes on until the operation has ended or waits for something.
pub(crate) async fn operate(
    run: &mut AppRun<'_>,
    inputs: AppInputs<'_>,
    compared: &Compared,
    active: &mut ActiveOperation,
    state: &mut AppState,
) {
    let is_terminated = is_terminated(inputs.application, active);
    let cluster = &inputs.context.cluster;
    if let Some(at) = active.retry_at {
        // A kind that changed is a reason not to wait any longer.
        let at = if is_revived(cluster, active).await { run.now.min(at) } else { at };
        if !begin_retry(run, compared, active, at, is_terminated) {
            return;
        }
    }
    if let Err(message) = &inputs.context.impersonation {
        return fail(run, active, message);
    }
    let current = Arc::clone(&compared.gathered);
    let own;
    let compared = match compared_for(run, inputs, compared, active, state).await {
        Ok(None) => compared,
        Ok(Some(other)) => {
            own = other;
            &own
        }
        Err(_) if is_terminated => return terminate(run, active),
        Err(NotCompared::Failed(message)) => return fail(run, active, &message),
        Err(NotCompared::Waiting(answered)) => {
            let message = "waiting for the sources of the operation to be fetched and rendered";
            message.clone_into(&mut active.record.message);
            let trigger = Trigger::live(TriggerReason::Operation);
            return run.engine.run_when_answered(answered, run.id(), trigger);
        }
    };
    if !is_terminated && waits_for_siblings(run, inputs, compared, active) {
        return;
    }
    if active.state.is_none() && !make_plan(run, inputs, compared, active, is_terminated).await {
        return;
    }
    let newer = superseded_by(active, &current);
    advance(run, inputs, compared, active, newer.as_deref(), state).await;
    finish(compared, active, state);
}

/// Plans the attempt. Returns whether there is a plan; if not, the operation has ended or is tried again later.
async fn make_plan(
    run: &AppRun<'_>,
    inputs: AppInputs<'_>,
    compared: &Compared,
    active: &mut ActiveOperation,
    is_terminated: bool,
) -> bool {
    // client: the mirror, where something would be pruned
    let last = active.synced_before.get_or_insert_with(|| last_synced(inputs.application)).clone();
    let replaced = replaced_history(run, inputs, compared, (active, &last)).await;
    active.kinds = Some(present_kinds(&inputs.context.cluster, kinds_of(&compared.gathered)).await);
    let planned = match &replaced {
        Ok(replaced) => plan(run, inputs, compared, (active, &last), replaced.as_ref()),
        Err(message) => {
            end_without_plan(run, active, message, is_terminated);
            return false;
        }
    };
    match planned {
        Ok(plan) => {
            info!(steps = plan.steps().count(), retry = active.record.retries, "sync planned");
            let recorded = active.record.results.clone();
            active.state = Some(SyncState::resume(Arc::new(plan), limits(inputs), recorded));
            return true;
        }
        Err(_) if is_terminated => terminate(run, active),
        Err(refusal) => {
            let policy = retry_policy(Some(&active.asked.retry), active.is_automated());
            let (record, after) = active.record.refused(&refusal, &policy, run.now);
            active.record = record;
            follow(run, active, &after);
        }
    }
    false
}

/// Ends an operation that cannot be planned.
fn end_without_plan(run: &AppRun<'_>, active: &mut ActiveOperation, message: &str, is_terminated: bool) {
    if is_terminated { terminate(run, active) } else { fail(run, active, message) }
}

/// Begins the next attempt of an operation that failed, if its time has come. Returns whether the operation goes on now.
fn begin_retry(
    run: &AppRun<'_>,
    compared: &Compared,
    active: &mut ActiveOperation,
    at: Timestamp,
    is_terminated: bool,
) -> bool {
    if is_terminated {
        terminate(run, active);
        return false;
    }
    if let Some(newer) = superseded_by(active, &compared.gathered) {
        let (record, after) = active.record.superseded(&newer, run.now);
        active.record = record;
        follow(run, active, &after);
        return false;
    }
    if run.now < at {
        run.run_at(Trigger::live(TriggerReason::Retry), at);
        return false;
    }
    active.retry();
    true
}

/// Why the objects cannot be judged against what an operation syncs.
enum NotCompared {
    Failed(String),
    /// Servers or renderings take long.
    Waiting(Answered),
}

impl From<NotGathered> for NotCompared {
    fn from(why: NotGathered) -> Self {
        match why {
            NotGathered::Failed(error) => Self::Failed(error.message()),
            NotGathered::Waiting(answered) => Self::Waiting(answered),
        }
    }
}

/// The objects judged against what this operation syncs. `None` if that is what the run has compared already.
async fn compared_for(
    run: &AppRun<'_>,
    inputs: AppInputs<'_>,
    compared: &Compared,
    active: &mut ActiveOperation,
    state: &mut AppState,
) -> Result<Option<Compared>, NotCompared> {
    let context = inputs.context;
    if let Some(why) = active.asked.manifests.as_ref().and_then(|_| context.project.refuses_local_manifests())
    {
        return Err(NotCompared::Failed(why));
    }
    // The project, the app's project or a kind's scope may have changed since the operation was planned.
    let is_valid = |gathered: &Arc<Gathered>| {
        gathered.is_permitted(&context.project) && gathered.fits(&context.cluster.scopes())
    };
    let mut known = active.load().filter(is_valid);
    if has_outdated_kinds(&context.cluster, active).await {
        known = None;
    }
    if active.gathered.is_some() && known.is_none() {
        active.plan_again();
    }
    let gathered = match known {
        Some(gathered) => gathered,
        None => gather_for(run, inputs, &compared.gathered, active).await?,
    };
    active.gathered = Some(gathered.stored());
    // An object of a kind that is not listed yet cannot be told from one that left Git.
    let store = &inputs.context.cluster.store;
    let lists_in_time = active.state.is_none()
        && active.asked.prune
        && !compared.live.complete
        && store.unlisted().iter().all(|(_, trouble)| trouble.is_none())
        && store.is_complete_within(LISTED_WITHIN).await;
    if gathered.is_same(&compared.gathered) && !lists_in_time {
        return Ok(None);
    }
    let other = compare(run, inputs, &gathered, DryRunPolicy::Ask, state).await;
    other.map(Some).map_err(|error| NotCompared::Failed(error.to_string()))
}

/// What the operation syncs.
async fn gather_for(
    run: &AppRun<'_>,
    inputs: AppInputs<'_>,
    current: &Arc<Gathered>,
    active: &mut ActiveOperation,
) -> Result<Arc<Gathered>, NotGathered> {
    let asked = &active.asked;
    let revisions = match (active.pinned.is_empty(), active.follows_git) {
        (false, _) => active.pinned.clone(),
        (true, false) => asked.revisions.clone(),
        (true, true) => Vec::new(),
    };
    let is_current = asked.sources.is_none()
        && asked.manifests.is_none()
        && (revisions.is_empty() || revisions == current.revisions);
    if is_current {
        return Ok(Arc::clone(current));
    }
    let AppInputs { application, app, context } = inputs;
    let since = *active.asked_at.get_or_insert_with(Instant::now);
    let asked = OperationSources { operation: asked, written: &active.wire, revisions: &revisions };
    let (sources, patience) = (&run.engine.sources, (since, Patience::Short));
    sources.gather_for_operation(application, app, context, asked, patience, &mut active.parked).await
}

/// Takes steps until the operation has ended or waits for something.
async fn advance(
    run: &mut AppRun<'_>,
    inputs: AppInputs<'_>,
    compared: &Compared,
    active: &mut ActiveOperation,
    newer: Option<&str>,
    state: &mut AppState,
) {
    let application = inputs.application;
    let policy = retry_policy(Some(&active.asked.retry), active.is_automated());
    let terminate = is_terminated(application, active);
    let hold = hold(run, inputs, active);
    let mut is_recorded = is_recorded(application, active);
    let mut outcomes: Vec<StepOutcome> = Vec::new();
    while let Some(sync_state) = active.state.take() {
        let plan = Arc::clone(sync_state.plan());
        // client: the objects of the plan
        let observations = observe(inputs, state, &plan).await;
        let now = Timestamp::now();
        let observed = Observed {
            observations: &observations,
            outcomes: &outcomes,
            approved_at: approved_for(application, active, now),
            hold: hold.as_deref(),
            terminate,
            newer_revision: newer,
        };
        // pure: the next steps
        let transition = sync::next(sync_state, &observed, now);
        let (record, after) = active.record.after(&transition, &policy, now);
        active.record = record;
        active.state = Some(transition.state);
        if after != After::GoOn {
            follow(run, active, &after);
            return;
        }
        if transition.commands.is_empty() {
            if let Some(at) = transition.next_check {
                run.run_at(Trigger::live(TriggerReason::Sync), at);
            }
            return;
        }
        if transition.record_first || (!is_recorded && must_be_recorded(&plan, active.is_by_user())) {
            is_recorded = write_progress(run, application, active).await;
            if !is_recorded {
                // After a crash the steps would not be known. The next run plans again from the results.
                active.state = None;
                return;
            }
        }
        // client: the steps
        let work = Work { compared, active };
        outcomes = carry_out(run, inputs, &work, &transition.commands, state).await;
        if is_outdated(&inputs.context.cluster, compared, active, &outcomes).await {
            return plan_again(run, active);
        }
        outcomes = repaired(run, inputs, &work, &transition.commands, outcomes, state).await;
    }
}

/// True if what is left of the plan no longer holds: a kind has another scope, or a step failed and its kind changed.
async fn is_outdated(
    cluster: &Cluster,
    compared: &Compared,
    active: &ActiveOperation,
    outcomes: &[StepOutcome],
) -> bool {
    let has_failed = || outcomes.iter().any(|outcome| outcome.result.is_err());
    !compared.gathered.fits(&cluster.scopes()) || (has_failed() && has_outdated_kinds(cluster, active).await)
}

/// True if a kind changed since the plan was made, so that the plan no longer holds.
async fn has_outdated_kinds(cluster: &Cluster, active: &ActiveOperation) -> bool {
    let Some(planned) = active.kinds.as_ref().filter(|_| active.state.is_some()) else { return false };
    let now = present_kinds(cluster, planned.kinds()).await;
    let change = planned.outdated_by(&now);
    if let Some((kind, change)) = change {
        info!(%kind, change = change.text(), "a kind changed: the sync is planned again");
    }
    change.is_some()
}

/// True if a kind changed since the last attempt was planned, so that the next one may succeed.
async fn is_revived(cluster: &Cluster, active: &ActiveOperation) -> bool {
    let Some(planned) = &active.kinds else { return false };
    let now = present_kinds(cluster, planned.kinds()).await;
    let change = planned.revived_by(&now);
    if let Some((kind, change)) = change {
        info!(%kind, change = change.text(), "a kind changed: the sync is tried again now");
    }
    change.is_some()
}

/// Plans the operation again in the next run: a kind changed, and what is left of the plan is about other objects than it
/// was made for.
fn plan_again(run: &AppRun<'_>, active: &mut ActiveOperation) {
    active.plan_again();
    run.engine.queue.push(run.id().clone(), Trigger::live(TriggerReason::Schema));
}

/// What follows from the end of an operation.
fn finish(compared: &Compared, active: &mut ActiveOperation, state: &mut AppState) {
    if !active.record.phase.is_completed() {
        return;
    }
    if let Some(sync_state) = active.state.as_ref().filter(|state| state.plan().dry_run) {
        // The result of a dry run is the plan: what would happen, why, in which wave, and what it would wait for.
        for result in &mut active.record.results {
            let Some(row) = row_of(sync_state.plan(), &result.id) else { continue };
            let is_refused = result.phase.is_failed();
            let row = if is_refused { row.refused(std::mem::take(&mut result.message)) } else { row };
            result.message = row.text();
        }
    }
    *state.operation.written.lock() = HashMap::new();
    if active.is_by_user() {
        let ledger = std::mem::take(&mut state.judge.ledger);
        state.judge.ledger = ledger.forgotten(compared.verdicts.keys());
    }
}

/// Every object of the plan as the store has it. An object that could not be read is left out, which does not mean that
/// it is gone. Neither is one shown whose state is from before plumb's own last write.
async fn observe(inputs: AppInputs<'_>, state: &AppState, plan: &Plan) -> BTreeMap<ObjectKey, Observation> {
    let store = &inputs.context.cluster.store;
    let keys = plan.steps().map(|step| &step.id.key);
    let mut observations = observations(inputs, &state.health, &state.judge.writes, keys).await;
    let written = state.operation.written.lock();
    observations.retain(|key, _| written.get(key).is_none_or(|version| store.has_caught_up(key, version)));
    observations
}

/// Why an operation may not go on for now: a sync window, or a pause. A user may sync a paused app.
fn hold(run: &AppRun<'_>, inputs: AppInputs<'_>, active: &ActiveOperation) -> Option<String> {
    if let Some(pause) = inputs.pause(run.now).filter(|_| !active.is_by_user()) {
        return Some(format!("paused: {}", pause.reason));
    }
    let trigger = if active.is_automated() { SyncTrigger::Automated } else { SyncTrigger::Manual };
    let started_at = active.record.started_at;
    let window = inputs.context.operation_window(inputs.app, trigger, started_at, run.now);
    window.map(|why| format!("Sync operation blocked by sync window: {why}"))
}

/// Ends an operation that a user terminated.
fn terminate(run: &AppRun<'_>, active: &mut ActiveOperation) {
    let (record, after) = active.record.terminated(run.now);
    active.record = record;
    follow(run, active, &after);
}

/// Ends an attempt with an error.
fn fail(run: &AppRun<'_>, active: &mut ActiveOperation, message: &str) {
    let policy = retry_policy(Some(&active.asked.retry), active.is_automated());
    let (record, after) = active.record.erred(message, &policy, run.now);
    active.record = record;
    follow(run, active, &after);
}

fn follow(run: &AppRun<'_>, active: &mut ActiveOperation, after: &After) {
    match after {
        After::GoOn => {}
        After::RetryAt(at) => {
            active.retry_at = Some(*at);
            let depth = if active.resolves_anew() { RefreshDepth::GitNow } else { RefreshDepth::Live };
            run.run_at(Trigger::new(depth, TriggerReason::Retry), *at);
        }
        After::Ended => {
            if active.record.phase == OperationPhase::Succeeded {
                run.engine.retries.over(run.id(), Subject::Step);
            }
            count_ended(run, active);
            info!(phase = %active.record.phase, message = %active.record.message, "sync ended");
        }
    }
}

/// Counts an operation that ended in the metrics.
pub(crate) fn count_ended(run: &AppRun<'_>, active: &ActiveOperation) {
    let record = &active.record;
    let finished = record.finished_at.unwrap_or(run.now);
    let took = Duration::try_from(finished.duration_since(record.started_at));
    let labels = run.engine.labels_of(&run.snapshot);
    run.engine.metrics.sync_ended(&labels, record.phase, active.asked.dry_run, took.unwrap_or_default());
}

/// True if a user asked to terminate this operation.
fn is_terminated(application: &Application, active: &ActiveOperation) -> bool {
    let state = application.status.operation_state.as_ref();
    state.is_some_and(|state| {
        state.phase() == Some(OperationPhase::Terminating) && state.started_at == active.record.started_at
    })
}

/// True if the cluster knows that this operation has started.
fn is_recorded(application: &Application, active: &ActiveOperation) -> bool {
    let state = application.status.operation_state.as_ref();
    application.operation.as_ref() == Some(&active.wire)
        && state.is_some_and(|state| state.started_at == active.record.started_at)
}

/// The revision that Git has now, if an automated operation syncs something older.
fn superseded_by(active: &ActiveOperation, current: &Gathered) -> Option<String> {
    let synced = active.load().filter(|_| active.is_automated())?;
    newer_revision((&synced.revisions, synced.desired.get()), (&current.revisions, current.desired.get()))
}

/// When a user approved deletions of this operation.
pub(super) fn approved_for(
    application: &Application,
    active: &ActiveOperation,
    now: Timestamp,
) -> Option<Timestamp> {
    approval_of(approved_at(application, now), active.began_at, active.record.started_at)
}

/// When a user approved deletions.
pub(crate) fn approved_at(application: &Application, now: Timestamp) -> Option<Timestamp> {
    approval(application.annotation(plumb_crd::annotations::DELETION_APPROVED)?, now)
}

fn limits(inputs: AppInputs<'_>) -> SyncLimits {
    SyncLimits { timeout: inputs.context.settings.sync_timeout, ..SyncLimits::default() }
}
