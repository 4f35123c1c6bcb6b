//! The state machine.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::finish::Release;
use super::message::{self, Wait};
use super::state::Progress;
use super::{Command, Observation, Observed, OperationPhase, ResultCode, SyncState};
use crate::health::HealthStatus;
use crate::plan::{Action, Group, Skip, Stage, Step};

/// What to do now, and the phase of the operation.
#[derive(Clone, Debug)]
pub struct Transition {
    /// The new state; pass it to the next call.
    pub state: SyncState,
    /// To be started now, all at the same time.
    pub commands: Vec<Command>,
    /// Write the results to the cluster *before* carrying out the commands: they remove the objects from
    /// which a restarted engine would know that a hook has run.
    pub record_first: bool,
    /// `Running`, `Terminating`, or how it ended.
    pub phase: OperationPhase,
    /// For `operationState.message`.
    pub message: String,
    /// Call again at this time if nothing happens before.
    pub next_check: Option<Timestamp>,
    /// May a failed try be repeated? Not if it was stopped or superseded.
    pub may_retry: bool,
}

/// Decides what to do next. Call it after every event; extra calls are harmless.
pub fn next(state: SyncState, observed: &Observed<'_>, now: Timestamp) -> Transition {
    let mut state = state.with_outcomes(observed.outcomes, now);
    let deadline = state.limits.timeout.and_then(|timeout| {
        let timeout = SignedDuration::try_from(timeout).ok()?;
        state.plan.mark.started_at.checked_add(timeout).ok()
    });
    if observed.terminate && state.stopping.is_none() {
        state.stopping = Some("Operation terminated".to_owned());
    }
    if deadline.is_some_and(|deadline| now >= deadline) && state.stopping.is_none() {
        state.stopping = Some("Operation terminated: sync timeout exceeded".to_owned());
    }
    let mut turn =
        Turn { state, observed, now, commands: Vec::new(), record_first: false, next_check: deadline };
    let conclusion = turn.advance();
    let (phase, message, may_retry) = match conclusion {
        Conclusion::Running(message) => (OperationPhase::Running, message, true),
        Conclusion::Stopping(message) => (OperationPhase::Terminating, message, false),
        Conclusion::Succeeded(message) => (OperationPhase::Succeeded, message, false),
        Conclusion::Failed(message) => (OperationPhase::Failed, message, true),
        Conclusion::Stopped(message) => (OperationPhase::Failed, message, false),
    };
    let next_check = if phase.is_completed() { None } else { turn.next_check };
    Transition {
        state: turn.state,
        commands: turn.commands,
        record_first: turn.record_first,
        phase,
        message,
        next_check,
        may_retry,
    }
}

pub(super) enum Conclusion {
    Running(String),
    Stopping(String),
    Succeeded(String),
    Failed(String),
    Stopped(String),
}

/// One call of [`next`].
pub(super) struct Turn<'a, 'o> {
    pub(super) state: SyncState,
    pub(super) observed: &'a Observed<'o>,
    pub(super) now: Timestamp,
    pub(super) commands: Vec<Command>,
    pub(super) record_first: bool,
    pub(super) next_check: Option<Timestamp>,
}

impl Turn<'_, '_> {
    fn advance(&mut self) -> Conclusion {
        let plan = Arc::clone(&self.state.plan);
        // Each iteration records at least one new result, so the loop ends.
        loop {
            self.state.look(self.observed);
            if self.state.stopping.is_some() {
                return self.stop();
            }
            self.release_finished_hooks(Release::NotIfDeletedSoon);
            let conclusion =
                if plan.dry_run { Some(self.try_all(&plan.groups)) } else { self.walk(&plan.groups) };
            if let Some(conclusion) = conclusion {
                return conclusion;
            }
        }
    }

    /// Goes through the groups up to the first that is not done. `None`: look again.
    fn walk(&mut self, groups: &[Group]) -> Option<Conclusion> {
        let is_multi_step = groups.len() > 1;
        for (index, group) in groups.iter().enumerate() {
            let is_last = index.saturating_add(1) == groups.len();
            if self.state.any(group, Progress::Failed) {
                return self.walk_failed(group);
            }
            if self.state.any(group, Progress::Pending) || self.state.any(group, Progress::InFlight) {
                let begun = self.begin(group);
                if begun.recorded {
                    return None;
                }
                return Some(self.wait(&begun.waits));
            }
            let has_hooks = group.steps.iter().any(|step| step.hook().is_some());
            if is_last && !has_hooks {
                return Some(self.succeed("successfully synced (all tasks run)"));
            }
            let waits = self.waits_of(group, is_multi_step);
            if !waits.is_empty() {
                return Some(self.wait(&waits));
            }
        }
        Some(self.succeed("successfully synced (no more tasks)"))
    }

    /// A group in which something failed: the rest of it is still begun (unless a deletion failed, which
    /// comes before all else), its hooks run to completion, then the failure branch runs.
    fn walk_failed(&mut self, group: &Group) -> Option<Conclusion> {
        let prune_failed = group
            .steps
            .iter()
            .any(|step| step.stage == Stage::Prunes && self.state.progress(step) == Progress::Failed);
        if !prune_failed && self.state.any(group, Progress::Pending) {
            let begun = self.begin(group);
            if begun.recorded {
                return None;
            }
            if begun.timer {
                return Some(Conclusion::Running(message::waiting(&begun.waits, self.observed)));
            }
        }
        if !self.state.in_flight.is_empty() {
            return Some(Self::running_tasks());
        }
        let hooks: Vec<Wait<'_>> = group
            .steps
            .iter()
            .filter(|step| step.hook().is_some() && self.state.progress(step) == Progress::Running)
            .map(Wait::Hook)
            .collect();
        if !hooks.is_empty() {
            return Some(self.wait(&hooks));
        }
        self.fail()
    }

    /// What a group that was begun still waits for.
    pub(super) fn waits_of<'p>(&self, group: &'p Group, is_multi_step: bool) -> Vec<Wait<'p>> {
        let mut waits = Vec::new();
        for step in &group.steps {
            match (self.state.progress(step), &step.action) {
                (Progress::Running, Action::RunHook(_)) => waits.push(Wait::Hook(step)),
                (Progress::Running, _) if is_multi_step => waits.push(Wait::Health(step)),
                (Progress::Succeeded, Action::Prune { uid, .. }) if self.was_pruned(step) => {
                    match self.observation(step) {
                        Some(Observation::Live(live)) if uid.is_none() || live.uid == *uid => {
                            waits.push(Wait::Deletion(step));
                        }
                        None => waits.push(Wait::Deletion(step)),
                        Some(Observation::Live(_) | Observation::Gone | Observation::Collected) => {}
                    }
                }
                (Progress::Succeeded, Action::Skip(Skip::AlreadyTerminating)) => {
                    if matches!(self.observation(step), Some(Observation::Live(live)) if live.terminating) {
                        waits.push(Wait::Deletion(step));
                    }
                }
                (
                    Progress::Pending
                    | Progress::InFlight
                    | Progress::Running
                    | Progress::Succeeded
                    | Progress::Failed,
                    _,
                ) => {}
            }
        }
        waits
    }

    /// Was it deleted? A paused object was skipped.
    fn was_pruned(&self, step: &Step) -> bool {
        self.state.results.get(&step.id).is_some_and(|result| result.status == Some(ResultCode::Pruned))
    }

    /// Keeps waiting, unless a newer revision is available and this one is stuck.
    pub(super) fn wait(&mut self, waits: &[Wait<'_>]) -> Conclusion {
        if !self.state.in_flight.is_empty() {
            return Self::running_tasks();
        }
        if let Some(hold) = self.observed.hold
            && waits.is_empty()
        {
            return Conclusion::Running(hold.to_owned());
        }
        let text = message::waiting(waits, self.observed);
        if let Some(newer) = self.observed.newer_revision
            && self.state.plan.automated
            && waits.iter().any(|wait| is_stuck(wait, self.observed))
            && !self.a_hook_works()
        {
            self.state.stopping = Some(format!("superseded by {newer}, because this one was {text}"));
            return self.stop();
        }
        Conclusion::Running(text)
    }

    /// Is a hook running? A running hook is never interrupted.
    fn a_hook_works(&self) -> bool {
        let mut hooks = self.state.plan.steps().filter(|step| step.hook().is_some());
        hooks.any(|step| {
            self.state.progress(step) == Progress::Running && !is_stuck(&Wait::Hook(step), self.observed)
        })
    }

    pub(super) fn running_tasks() -> Conclusion {
        Conclusion::Running("one or more tasks are running".to_owned())
    }
}

/// Does the wait need a change from outside to end?
fn is_stuck(wait: &Wait<'_>, observed: &Observed<'_>) -> bool {
    match wait {
        Wait::Confirmation(_) => true,
        Wait::Health(_) | Wait::Hook(_) | Wait::Deletion(_) => wait.live(observed).is_some_and(|live| {
            live.trouble.is_some()
                || live.health.as_ref().is_some_and(|health| match health.status {
                    HealthStatus::Suspended
                    | HealthStatus::Missing
                    | HealthStatus::Unknown
                    | HealthStatus::Degraded => true,
                    HealthStatus::Healthy | HealthStatus::Progressing => false,
                })
        }),
    }
}
