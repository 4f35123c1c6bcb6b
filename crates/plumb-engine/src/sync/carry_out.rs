//! Carries out the steps of an operation and records what was sent.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use plumb_core::drift::ApplyAdvice;
use plumb_core::normalize::without_sensitive_values;
use plumb_core::object::{Manifest, ObjectKey};
use plumb_core::plan::Owner;
use plumb_core::sync::{Command, StepOutcome, Success, Verb};
use plumb_core::tracking::{TrackedBy, tracked_by};
use plumb_core::writes::AttemptResult;
use plumb_kube::ApiError;
use tracing::warn;

use super::executor::step::{Executor, StepContext, StepError, WritesUnderWay};
use super::observe::live_of;
use super::sibling_apps::claimed_by;
use super::slow_writes::tell_of_slow_writes;
use crate::app_run::compare::compare;
use crate::app_run::{AppInputs, AppRun};
use crate::cluster::destination::Cluster;
use crate::compare::judge::{DryRunPolicy, failure};
use crate::compare::run::Compared;
use crate::operation::active::ActiveOperation;
use crate::state::app_state::AppState;
use crate::state::retries::Subject;

/// An operation and the comparison that it works on.
pub(super) struct Work<'w> {
    pub(super) compared: &'w Compared,
    pub(super) active: &'w ActiveOperation,
}

/// Carries out these commands at the same time.
pub(super) async fn carry_out(
    run: &AppRun<'_>,
    inputs: AppInputs<'_>,
    work: &Work<'_>,
    commands: &[Command],
    state: &mut AppState,
) -> Vec<StepOutcome> {
    let AppInputs { app, context, .. } = inputs;
    let Work { compared, active } = work;
    let live = live_of(&context.cluster.store, commands.iter().map(|command| &command.id.key)).await;
    let desired = &compared.gathered.desired.get().objects;
    // A user may sync a paused app by hand.
    let app_pause = inputs.pause(run.now).filter(|_| !active.is_by_user());
    let step_context = |key: &ObjectKey| {
        let live = live.get(key).cloned().flatten();
        let owner = compared.owners.get(key).cloned();
        StepContext {
            owner: owner.unwrap_or_else(|| hook_owner(live.as_deref(), inputs)),
            advice: advice(compared, active, key),
            denied: run.engine.denies_now(app, context, key),
            claimed_by: if desired.contains_key(key) { None } else { claimed_by(run, inputs, key) },
            paused: app_pause.map(|pause| pause.reason.clone()),
            held: live.as_deref().and_then(|live| Some(inputs.pause_of(key, live, run.now)?.reason)),
            live,
        }
    };
    // Without the right service account nothing is sent, and never with plumb's own permissions instead.
    let Ok(impersonation) = context.impersonation.clone() else { return Vec::new() };
    let revisions = active.revisions();
    let respects_ignore = active.state.as_ref().is_some_and(|state| state.plan().respect_ignore_differences);
    let under_way = WritesUnderWay::default();
    let executor = Executor {
        app: &app.id,
        project: context.project.name(),
        tombstones: (&run.engine.tombstones, context.settings.tombstone_limits),
        control_plane_namespace: &run.engine.options.namespace,
        home: &run.engine.home,
        cluster: &context.cluster,
        desired: Some(&compared.gathered.desired),
        schemas: &compared.schemas,
        rules: &context.rules.rules,
        respect_ignore: respects_ignore,
        asks_server_side: active.request().options.server_side_apply,
        allow_empty: active.is_by_user()
            || app.sync_policy.automated.is_some_and(|automation| automation.allow_empty),
        revision: revisions.first().map(String::as_str),
        impersonation,
        step_context: &step_context,
        written: &state.operation.written,
        under_way: &under_way,
    };
    let results = tokio::select! {
        results = executor.carry_out(commands) => results,
        never = tell_of_slow_writes(run, inputs, active, &under_way) => match never {},
    };
    look_at_kinds(&context.cluster, &results).await;
    let outcomes = outcomes(commands, results, compared, &live, state);
    log_failures(run, &outcomes);
    outcomes
}

/// What the judge advises for a write of the object. Only a self-heal, which writes selected objects, leaves the fields alone
/// that another writer changes back each time: who asks for a sync, or for a new revision, asks for Git's values.
fn advice(compared: &Compared, active: &ActiveOperation, key: &ObjectKey) -> ApplyAdvice {
    let advice =
        compared.verdicts.get(key).map_or_else(ApplyAdvice::default, |verdict| verdict.advice.clone());
    let is_heal = active.is_automated() && active.asked.selected.is_some();
    if is_heal { advice } else { advice.with_contested_restored() }
}

/// The outcomes of commands. What they did is noted for later comparisons.
fn outcomes(
    commands: &[Command],
    results: Vec<Result<Success, StepError>>,
    compared: &Compared,
    live: &BTreeMap<ObjectKey, Option<Arc<Manifest>>>,
    state: &mut AppState,
) -> Vec<StepOutcome> {
    let outcomes = commands.iter().zip(results).map(|(command, result)| {
        note(compared, command, result.as_ref().err(), state);
        let (key, live) = (&command.id.key, live.get(&command.id.key).and_then(Option::as_deref));
        let result = result.map_err(|error| shown_error(compared, key, live, &error));
        StepOutcome { id: command.id.clone(), result }
    });
    outcomes.collect()
}

/// Discovers the kinds again if one of them may have changed: whether the plan still holds is decided by that.
async fn look_at_kinds(cluster: &Cluster, results: &[Result<Success, StepError>]) {
    if results.iter().any(|result| result.as_ref().is_err_and(is_about_kind)) {
        let _ = cluster.client.discover().await;
    }
}

/// True if a change of the object's kind may be the cause.
fn is_about_kind(error: &StepError) -> bool {
    error.api().is_some_and(|error| {
        error.is_not_found()
            || matches!(error, ApiError::UnknownKind { .. } | ApiError::OtherScope { .. })
            || error.status().is_some_and(plumb_kube::Status::is_schema_violation)
    })
}

/// One line for all steps that failed together. What fails again at every retry is logged at growing intervals.
fn log_failures(run: &AppRun<'_>, outcomes: &[StepOutcome]) {
    let failed =
        || outcomes.iter().filter_map(|outcome| Some((&outcome.id.key, outcome.result.as_ref().err()?)));
    let Some((object, error)) = failed().next() else { return };
    if let Some(times) = run.engine.retries.told(run.id(), Subject::Step, Instant::now()) {
        warn!(%object, error, steps = failed().count(), times, "step failed");
    }
}

/// Notes what a command did, for later comparisons.
fn note(compared: &Compared, command: &Command, error: Option<&StepError>, state: &mut AppState) {
    let key = &command.id.key;
    match &command.verb {
        Verb::Apply { dry_run: false, .. } => record(compared, key, error, state),
        // If Git asks for the same object again, that is a change: it is not what was sent last.
        Verb::Prune { .. } if error.is_none() => state.judge.writes.forget(key),
        Verb::Apply { .. }
        | Verb::ApplyManifest { .. }
        | Verb::Prune { .. }
        | Verb::DeleteHook { .. }
        | Verb::ReleaseHook => {}
    }
}

/// The error of a step, without the values of sensitive fields that the API server quotes.
fn shown_error(compared: &Compared, key: &ObjectKey, live: Option<&Manifest>, error: &StepError) -> String {
    let sent = compared.gathered.desired.get().written_as(key);
    without_sensitive_values(&error.to_string(), sent.chain(live), &compared.schemas)
}

/// Records what was sent for one object, and how it ended.
fn record(compared: &Compared, key: &ObjectKey, error: Option<&StepError>, state: &mut AppState) {
    let Some(desired) = compared.gathered.set.fingerprint(key) else { return };
    let result = match error {
        None => AttemptResult::Applied,
        Some(error) => {
            let refusal = error.api().and_then(failure);
            refusal.map_or(AttemptResult::Failed, |refusal| AttemptResult::Refused(Box::new(refusal)))
        }
    };
    if error.is_none() {
        state.git.note_applied(key);
    }
    state.judge.writes.record(key, desired, compared.gathered.rendering, result);
}

/// Sends what the API server refused once more, where knowing the refusal helps: a default that belongs to Git's former
/// value stands in the way of the new one. Such objects are judged again with the refusal as evidence.
pub(super) async fn repaired(
    run: &AppRun<'_>,
    inputs: AppInputs<'_>,
    work: &Work<'_>,
    commands: &[Command],
    mut outcomes: Vec<StepOutcome>,
    state: &mut AppState,
) -> Vec<StepOutcome> {
    let compared = work.compared;
    let is_refused = |command: &&Command| {
        let attempt = state.judge.writes.attempt(&command.id.key);
        matches!(command.verb, Verb::Apply { dry_run: false, .. })
            && attempt.is_some_and(|attempt| matches!(attempt.result, AttemptResult::Refused(_)))
            && outcomes.iter().any(|outcome| outcome.id == command.id && outcome.result.is_err())
    };
    let refused: Vec<&Command> = commands.iter().filter(is_refused).collect();
    if refused.is_empty() {
        return outcomes;
    }
    let Ok(again) = compare(run, inputs, &compared.gathered, DryRunPolicy::Ask, state).await else {
        return outcomes;
    };
    let helps = |key: &ObjectKey| {
        let before = compared.verdicts.get(key).and_then(|verdict| verdict.advice.managed_fields.as_ref());
        again.verdicts.get(key).is_some_and(|verdict| {
            let now = verdict.advice.managed_fields.as_ref();
            now.is_some() && now != before && !verdict.advice.blocked
        })
    };
    let repairs: Vec<Command> =
        refused.into_iter().filter(|command| helps(&command.id.key)).cloned().collect();
    if repairs.is_empty() {
        return outcomes;
    }
    let work = Work { compared: &again, active: work.active };
    for outcome in carry_out(run, inputs, &work, &repairs, state).await {
        if let Some(first) = outcomes.iter_mut().find(|first| first.id == outcome.id) {
            *first = outcome;
        }
    }
    outcomes
}

/// Whose a hook's object is. Hooks are not compared, so no comparison has told.
fn hook_owner(live: Option<&Manifest>, inputs: AppInputs<'_>) -> Owner {
    let context = inputs.context;
    match live.map(|live| tracked_by(live, &context.instance, &context.settings.tracking)) {
        Some(TrackedBy::Other { app }) => Owner::Other { app, renders: true },
        Some(TrackedBy::Ours | TrackedBy::AppliedCrd) => Owner::ThisApp,
        Some(TrackedBy::Copied { .. } | TrackedBy::NoApp) | None => Owner::NoApp,
    }
}
