//! The end of a sync: success, failure or termination, and the cleanup of its hooks.

use std::sync::Arc;

use super::message;
use super::next::{Conclusion, Turn};
use super::state::Progress;
use super::{Command, Observation, OperationPhase, ResultCode, Verb};
use crate::desired::DeletePolicy;
use crate::plan::{Step, SyncPhase};

/// Which hooks lose their finalizer now.
#[derive(Clone, Copy)]
pub(super) enum Release {
    /// Those that ended, but not those that the operation's end deletes anyway.
    NotIfDeletedSoon,
    /// All that ended.
    All,
}

impl Turn<'_, '_> {
    /// Hooks that have ended, and whose end is in the results, need their finalizer no longer.
    pub(super) fn release_finished_hooks(&mut self, which: Release) {
        let plan = Arc::clone(&self.state.plan);
        for step in plan.steps() {
            let Some(hook) = step.hook() else { continue };
            let has_ended = match (self.state.progress(step), which) {
                (Progress::Succeeded, Release::NotIfDeletedSoon) => {
                    !hook.is_deleted(DeletePolicy::HookSucceeded)
                }
                (Progress::Failed, Release::NotIfDeletedSoon) => !hook.is_deleted(DeletePolicy::HookFailed),
                (Progress::Succeeded | Progress::Failed, Release::All) => true,
                (Progress::Pending | Progress::InFlight | Progress::Running, _) => false,
            };
            let is_held =
                matches!(self.observation(step), Some(Observation::Live(live)) if live.has_hook_finalizer);
            if has_ended
                && is_held
                && !self.state.cleaned.contains(&step.id)
                && self.is_newest(step)
                && self.state.released.insert(step.id.clone())
            {
                self.state.cleaning.insert(step.id.clone());
                self.record_first = true;
                self.commands.push(Command { id: step.id.clone(), verb: Verb::ReleaseHook });
            }
        }
    }

    /// One object may be the hook of several phases; it belongs to the last that ran it.
    fn is_newest(&self, step: &Step) -> bool {
        match self.observation(step) {
            Some(Observation::Live(live)) => live
                .mark
                .as_ref()
                .is_none_or(|mark| *mark == self.state.plan.mark.text(step.id.phase, &step.id.key)),
            Some(Observation::Gone | Observation::Collected) | None => false,
        }
    }

    pub(super) fn succeed(&mut self, text: &str) -> Conclusion {
        self.clean_up(DeletePolicy::HookSucceeded);
        if self.state.is_busy() {
            return Self::running_tasks();
        }
        Conclusion::Succeeded(text.to_owned())
    }

    /// The failure branch: hooks with `HookFailed` are deleted, `SyncFail` hooks run, then the operation ends.
    pub(super) fn fail(&mut self) -> Option<Conclusion> {
        self.clean_up(DeletePolicy::HookFailed);
        self.release_finished_hooks(Release::All);
        let plan = Arc::clone(&self.state.plan);
        for group in &plan.on_failure {
            if self.state.any(group, Progress::Pending) || self.state.any(group, Progress::InFlight) {
                let begun = self.begin(group);
                if begun.recorded {
                    return None;
                }
                return Some(self.wait(&begun.waits));
            }
            let waits = self.waits_of(group, true);
            if !waits.is_empty() {
                return Some(self.wait(&waits));
            }
            if self.state.any(group, Progress::Failed) {
                break;
            }
        }
        if self.state.is_busy() {
            return Some(Self::running_tasks());
        }
        Some(Conclusion::Failed(message::failure(&self.state)))
    }

    /// Deletes the objects of hooks that ended in this operation and ask for it.
    fn clean_up(&mut self, policy: DeletePolicy) {
        let plan = Arc::clone(&self.state.plan);
        for step in plan.steps() {
            let Some(hook) = step.hook() else { continue };
            // A hook of the failure branch that did its work goes as its own success asks.
            let own = match self.state.progress(step) {
                Progress::Succeeded if step.id.phase == SyncPhase::SyncFail => DeletePolicy::HookSucceeded,
                Progress::Succeeded | Progress::Failed => policy,
                Progress::Pending | Progress::InFlight | Progress::Running => continue,
            };
            if hook.is_deleted(own) {
                self.delete_finished(step);
            }
        }
    }

    fn delete_finished(&mut self, step: &Step) {
        let Some(Observation::Live(live)) = self.observation(step) else { return };
        let uid = live.uid.clone();
        if self.state.cleaning.contains(&step.id) || !self.is_newest(step) {
            return;
        }
        if self.state.cleaned.insert(step.id.clone()) {
            self.state.cleaning.insert(step.id.clone());
            self.record_first = true;
            let propagation = self.state.plan.propagation;
            self.commands.push(Command { id: step.id.clone(), verb: Verb::DeleteHook { uid, propagation } });
        }
    }

    /// Stopped by a user, by the timeout or by a newer revision: commands in flight finish, running hooks are
    /// deleted, and applied objects stay.
    pub(super) fn stop(&mut self) -> Conclusion {
        let reason = self.state.stopping.clone().unwrap_or_default();
        if !self.state.in_flight.is_empty() {
            return Conclusion::Stopping(reason);
        }
        let plan = Arc::clone(&self.state.plan);
        for step in plan.steps().filter(|step| step.hook().is_some()) {
            if self.state.progress(step) == Progress::Running {
                self.state.record(
                    step,
                    Some(ResultCode::Synced),
                    OperationPhase::Failed,
                    "Terminated".to_owned(),
                );
                self.delete_finished(step);
            }
        }
        self.release_finished_hooks(Release::All);
        if self.state.is_busy() {
            return Conclusion::Stopping(reason);
        }
        Conclusion::Stopped(reason)
    }
}
