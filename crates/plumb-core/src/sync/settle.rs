//! From what was seen to results: outcomes of commands, health of what was applied.

use std::sync::Arc;

use jiff::Timestamp;

use super::state::Progress;
use super::{
    Observation, Observed, ObservedObject, OperationPhase, ResourceResult, ResultCode, StepOutcome,
    SyncState, message,
};
use crate::desired::Wave;
use crate::health::HealthStatus;
use crate::object::images;
use crate::plan::{Action, Plan, Step, SyncPhase, WaitsFor};

impl SyncState {
    /// Records the answers to earlier commands. An answer without a pending command is ignored.
    pub(super) fn with_outcomes(mut self, outcomes: &[StepOutcome], now: Timestamp) -> Self {
        for outcome in outcomes {
            if self.cleaning.remove(&outcome.id) {
                self.note_clean_up(outcome);
                continue;
            }
            if !self.in_flight.remove(&outcome.id) {
                continue;
            }
            let made_room = self.making_room.remove(&outcome.id);
            let plan = Arc::clone(&self.plan);
            let Some(step) = plan.step(&outcome.id) else { continue };
            match &outcome.result {
                Err(error) => {
                    let text = if made_room {
                        format!("cannot delete the previous hook object: {error}")
                    } else {
                        error.clone()
                    };
                    self.record(step, Some(ResultCode::SyncFailed), OperationPhase::Failed, text);
                }
                // The hook itself starts when its old object is seen to be gone.
                Ok(_) if made_room => {}
                Ok(success) => {
                    let (code, phase, text) = match step.action {
                        Action::Prune { .. } => {
                            (ResultCode::Pruned, OperationPhase::Succeeded, "pruned".to_owned())
                        }
                        Action::Apply { .. }
                        | Action::CreateNamespace { .. }
                        | Action::RunHook(_)
                        | Action::Unchanged
                        | Action::Skip(_) => {
                            let is_done = self.plan.dry_run;
                            let phase =
                                if is_done { OperationPhase::Succeeded } else { OperationPhase::Running };
                            (ResultCode::Synced, phase, success.message.clone())
                        }
                    };
                    let mut result = ResourceResult::of(step, Some(code), phase, text);
                    result.images.clone_from(&success.images);
                    self.results.set(result);
                    self.applied_at.insert(step.id.clone(), now);
                }
            }
        }
        self
    }

    /// Cleaning up is tried again a few times. A hook that still could not be cleaned up does not fail the
    /// sync, but its message says so.
    fn note_clean_up(&mut self, outcome: &StepOutcome) {
        const TRIES: u8 = 3;
        let Err(error) = &outcome.result else { return };
        let refused = self.refused.entry(outcome.id.clone()).or_default();
        *refused = refused.saturating_add(1);
        if *refused < TRIES {
            self.released.remove(&outcome.id);
            self.freed.remove(&outcome.id);
            self.cleaned.remove(&outcome.id);
        } else if let Some(known) = self.results.get(&outcome.id) {
            let message = format!("{}; cannot clean up: {error}", known.message);
            let result = ResourceResult { message, ..known.clone() };
            self.results.set(result);
        }
    }

    /// Moves what was applied along by what is seen of it, and finds hooks that this operation made before a
    /// restart.
    pub(super) fn look(&mut self, observed: &Observed<'_>) {
        let plan = Arc::clone(&self.plan);
        if plan.dry_run {
            return;
        }
        let left_to_itself = left_to_itself(&plan);
        for (group, step) in plan.placed_steps() {
            let Some(observation) = observed.observations.get(&step.id.key) else { continue };
            let is_judged = step.hook().is_some() || left_to_itself != Some((group.phase, group.wave));
            match self.progress(step) {
                Progress::Running if is_judged && !is_an_older_hook(&plan, step, observation) => {
                    if let Some((phase, text)) = judge(step, observation) {
                        let known = self.results.get(&step.id);
                        let status = known.and_then(|result| result.status);
                        let images = known.map(|result| result.images.clone()).unwrap_or_default();
                        let text = match (text.is_empty(), known) {
                            (true, Some(known)) => known.message.clone(),
                            (true, None) | (false, _) => text,
                        };
                        let mut result = ResourceResult::of(step, status, phase, text);
                        result.images = images;
                        self.results.set(result);
                    }
                }
                Progress::Running if let Some(other) = other_phase(&plan, step, observation) => {
                    if other > step.id.phase {
                        let (phase, text) = ended_before(other);
                        self.record(step, Some(ResultCode::Synced), phase, text);
                    } else {
                        self.results.remove(&step.id);
                    }
                }
                Progress::Pending if is_our_hook(&plan, step, observation) => {
                    let text = format!("{} created", message::kubectl_name(&step.id.key));
                    self.record(step, Some(ResultCode::Synced), OperationPhase::Running, text);
                    if let Some((phase, text)) = judge(step, observation) {
                        self.record(step, Some(ResultCode::Synced), phase, text);
                    }
                }
                Progress::Pending
                | Progress::InFlight
                | Progress::Running
                | Progress::Succeeded
                | Progress::Failed => {}
            }
        }
    }

    pub(super) fn record(
        &mut self,
        step: &Step,
        status: Option<ResultCode>,
        phase: OperationPhase,
        text: String,
    ) {
        let known = self.results.get(&step.id).map(|known| known.images.clone());
        // After a restart only the plan knows the images of a hook that runs.
        let planned = || step.hook().map(|hook| images(&hook.manifest.0)).unwrap_or_default();
        let mut result = ResourceResult::of(step, status, phase, text);
        result.images = known.filter(|images| !images.is_empty()).unwrap_or_else(planned);
        self.results.set(result);
    }
}

/// Is this the object of a hook that this try of this operation made?
fn is_our_hook(plan: &Plan, step: &Step, observation: &Observation) -> bool {
    let Observation::Live(live) = observation else { return false };
    step.hook().is_some()
        && live.mark.as_deref() == Some(plan.mark.text(step.id.phase, &step.id.key).as_str())
}

/// Is this the object of a hook that another operation, try or phase made? One without a mark may be ours:
/// another engine may have started this operation.
fn is_an_older_hook(plan: &Plan, step: &Step, observation: &Observation) -> bool {
    let Observation::Live(live) = observation else { return false };
    step.hook().is_some() && live.mark.is_some() && !is_our_hook(plan, step, observation)
}

/// The other phase of this try that uses the hook's object now, if one does: the status was lost in a crash. A later phase
/// began after this one had ended. An earlier phase ran again, so this one has yet to run.
fn other_phase(plan: &Plan, step: &Step, observation: &Observation) -> Option<SyncPhase> {
    let Observation::Live(live) = observation else { return None };
    let mark = live.mark.as_deref().filter(|_| step.hook().is_some())?;
    let phases = [SyncPhase::PreSync, SyncPhase::Sync, SyncPhase::PostSync, SyncPhase::SyncFail];
    let mut others = phases.into_iter().filter(|phase| *phase != step.id.phase);
    others.find(|phase| plan.mark.text(*phase, &step.id.key) == mark)
}

/// How a hook ended whose object a later phase uses.
fn ended_before(later: SyncPhase) -> (OperationPhase, String) {
    let text = format!("its object is used by the {} hook of this sync", later.name());
    let phase = if later == SyncPhase::SyncFail { OperationPhase::Error } else { OperationPhase::Succeeded };
    (phase, text)
}

/// The group whose objects are sent and left to themselves: the last one, unless hooks run in it too, and
/// the only one. Its hooks are seen to their end all the same.
fn left_to_itself(plan: &Plan) -> Option<(SyncPhase, Wave)> {
    let last = plan.groups.last()?;
    let has_hooks = last.steps.iter().any(|step| step.hook().is_some());
    (plan.groups.len() == 1 || !has_hooks).then_some((last.phase, last.wave))
}

/// The final phase of an applied object; `None` while it is in progress.
fn judge(step: &Step, observation: &Observation) -> Option<(OperationPhase, String)> {
    let is_hook = match step.waits_for {
        WaitsFor::Completion => true,
        // After a restart the plan may leave out what was applied before it, because it has been paused since:
        // the sync still waits for its health.
        WaitsFor::Health | WaitsFor::Deletion | WaitsFor::Nothing => false,
    };
    match observation {
        Observation::Collected => {
            Some((OperationPhase::Succeeded, "completed and was removed by its TTL".to_owned()))
        }
        Observation::Gone if is_hook => {
            Some((OperationPhase::Error, "deleted before its result was seen".to_owned()))
        }
        Observation::Gone => Some((OperationPhase::Error, "deleted after it was applied".to_owned())),
        Observation::Live(live) if is_hook && is_cut_off(step, live) => {
            let at = live.leaving_since.map(|at| format!(" (at {at})")).unwrap_or_default();
            Some((OperationPhase::Error, format!("deleted before it finished{at}")))
        }
        Observation::Live(live) => judge_live(live, is_hook),
    }
}

/// Was a hook deleted before it ended? Our finalizer still holds its object, but nothing works on it any more.
/// A pod that is terminating may still report its result.
fn is_cut_off(step: &Step, live: &ObservedObject) -> bool {
    let is_unfinished = live.health.as_ref().is_some_and(|health| match health.status {
        HealthStatus::Progressing | HealthStatus::Suspended | HealthStatus::Missing => true,
        HealthStatus::Healthy | HealthStatus::Degraded | HealthStatus::Unknown => false,
    });
    live.terminating && is_unfinished && step.id.key.kind != "Pod"
}

fn judge_live(live: &ObservedObject, is_hook: bool) -> Option<(OperationPhase, String)> {
    let Some(health) = &live.health else { return Some((OperationPhase::Succeeded, String::new())) };
    match (health.status, is_hook) {
        (HealthStatus::Healthy, _) => Some((OperationPhase::Succeeded, health.message.clone())),
        (HealthStatus::Degraded, _) | (HealthStatus::Unknown, true) => {
            Some((OperationPhase::Failed, message::with_trouble(health, live)))
        }
        (HealthStatus::Progressing | HealthStatus::Suspended | HealthStatus::Missing, _)
        | (HealthStatus::Unknown, false) => None,
    }
}
