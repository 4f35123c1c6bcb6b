//! The state machine.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::message::{self, Wait};
use super::state::Progress;
use super::{Command, Observed, OperationPhase, ResourceResult, ResultCode, Sight, SyncState, Verb};
use crate::desired::DeletePolicy;
use crate::health::HealthStatus;
use crate::plan::{Action, Group, Hook, PruneGuard, Stage, Step};

/// What to do now, and how the operation stands.
#[derive(Clone, Debug)]
pub struct Transition {
    /// Where the sync stands; give it to the next call.
    pub state: SyncState,
    /// To be started now, all at the same time.
    pub commands: Vec<Command>,
    /// Write the results to the cluster *before* carrying out the commands: they remove the traces from
    /// which a restarted engine would know that a hook has run.
    pub record_first: bool,
    /// `Running`, `Terminating`, or how it ended.
    pub phase: OperationPhase,
    /// For `operationState.message`.
    pub message: String,
    /// Call again at this time if nothing happens before.
    pub wake_at: Option<Timestamp>,
    /// May a failed try be repeated? Not if it was stopped or superseded.
    pub may_retry: bool,
}

/// Decides what to do next. Call it whenever something happened; calling it without a reason does no harm.
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
        state.stopping = Some("Operation terminated: the sync timeout is over".to_owned());
    }
    let mut run = Run { state, observed, now, commands: Vec::new(), record_first: false, wake_at: deadline };
    let verdict = run.advance();
    let (phase, message, may_retry) = match verdict {
        Verdict::Running(message) => (OperationPhase::Running, message, true),
        Verdict::Stopping(message) => (OperationPhase::Terminating, message, false),
        Verdict::Succeeded(message) => (OperationPhase::Succeeded, message, false),
        Verdict::Failed(message) => (OperationPhase::Failed, message, true),
        Verdict::Stopped(message) => (OperationPhase::Failed, message, false),
    };
    let wake_at = if phase.is_completed() { None } else { run.wake_at };
    Transition {
        state: run.state,
        commands: run.commands,
        record_first: run.record_first,
        phase,
        message,
        wake_at,
        may_retry,
    }
}

enum Verdict {
    Running(String),
    Stopping(String),
    Succeeded(String),
    Failed(String),
    Stopped(String),
}

/// One call of [`next`] at work.
struct Run<'a, 'o> {
    state: SyncState,
    observed: &'a Observed<'o>,
    now: Timestamp,
    commands: Vec<Command>,
    record_first: bool,
    wake_at: Option<Timestamp>,
}

/// Which hooks lose their finalizer now.
#[derive(Clone, Copy)]
enum Release {
    /// Those that ended, but not those that the operation's end deletes anyway.
    NotIfDeletedSoon,
    /// All that ended.
    All,
}

/// What came of trying to begin the pending steps of a group.
#[derive(Default)]
struct Begun<'p> {
    /// Something was recorded without a command: look again.
    recorded: bool,
    /// What holds pending steps up.
    waits: Vec<Wait<'p>>,
    /// A timer holds pending steps up.
    timer: bool,
}

impl Run<'_, '_> {
    fn advance(&mut self) -> Verdict {
        let plan = Arc::clone(&self.state.plan);
        // Each turn of the loop records at least one result that was not there, so it ends.
        loop {
            self.state.look(self.observed);
            if self.state.stopping.is_some() {
                return self.stop();
            }
            self.release_finished_hooks(Release::NotIfDeletedSoon);
            let verdict =
                if plan.dry_run { Some(self.try_all(&plan.groups)) } else { self.walk(&plan.groups) };
            if let Some(verdict) = verdict {
                return verdict;
            }
        }
    }

    /// Goes through the groups up to the first that is not done. `None`: look again.
    fn walk(&mut self, groups: &[Group]) -> Option<Verdict> {
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
    /// comes before all else), its hooks are seen to their end, then the failure branch runs.
    fn walk_failed(&mut self, group: &Group) -> Option<Verdict> {
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
                return Some(Verdict::Running(message::waiting(&begun.waits, self.observed)));
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

    /// Begins every step of the group whose turn has come.
    fn begin<'p>(&mut self, group: &'p Group) -> Begun<'p> {
        let mut begun = Begun::default();
        for step in &group.steps {
            begun.recorded |= self.record_without_command(step);
        }
        if begun.recorded || self.observed.hold.is_some() {
            return begun;
        }
        let mut prunes = group.steps.iter().filter(|step| step.stage == Stage::Prunes);
        if prunes.all(|step| self.state.progress(step) == Progress::Succeeded) {
            self.make_room(group);
        }
        let mut stages: Vec<Stage> = group.steps.iter().map(|step| step.stage).collect();
        stages.dedup();
        for stage in stages {
            let steps: Vec<&Step> = group.steps.iter().filter(|step| step.stage == stage).collect();
            for step in &steps {
                if self.state.progress(step) == Progress::Pending {
                    begun.waits.extend(self.begin_step(step));
                }
            }
            let is_over = steps.iter().all(|step| match self.state.progress(step) {
                Progress::Pending | Progress::InFlight => false,
                Progress::Running | Progress::Succeeded => true,
                Progress::Failed => stage != Stage::Prunes,
            });
            if !is_over {
                return begun;
            }
            if stage == Stage::Foundations && self.new_kinds_are_unserved(&steps) {
                begun
                    .waits
                    .extend(steps.iter().copied().filter(|step| !self.is_well(step)).map(Wait::Health));
                begun.timer = true;
                return begun;
            }
        }
        begun
    }

    /// Steps that make no request.
    fn record_without_command(&mut self, step: &Step) -> bool {
        if self.state.progress(step) != Progress::Pending {
            return false;
        }
        let (status, phase, text) = match &step.action {
            Action::Skip(skip) => {
                use crate::plan::Skip;
                let status = match skip {
                    Skip::AlreadyTerminating => Some(ResultCode::Pruned),
                    Skip::PruneNotRequested | Skip::PruneForbidden | Skip::PruneUnproven(_) => {
                        Some(ResultCode::PruneSkipped)
                    }
                    Skip::HandedOver { .. } => Some(ResultCode::PruneSkipped),
                    Skip::Paused { .. } if step.stage == Stage::Prunes => Some(ResultCode::PruneSkipped),
                    Skip::OwnedBy { .. } | Skip::Paused { .. } => None,
                };
                (status, OperationPhase::Succeeded, skip.to_string())
            }
            Action::Unchanged => {
                let phase =
                    if self.state.plan.dry_run { OperationPhase::Succeeded } else { OperationPhase::Running };
                (
                    Some(ResultCode::Synced),
                    phase,
                    format!("{} unchanged", message::kubectl_name(&step.id.key)),
                )
            }
            Action::Prune { .. } if self.state.plan.dry_run => {
                (Some(ResultCode::Pruned), OperationPhase::Succeeded, "pruned (dry run)".to_owned())
            }
            Action::Prune { .. } if self.sight(step) == Some(&Sight::Gone) => {
                (Some(ResultCode::Pruned), OperationPhase::Succeeded, "pruned".to_owned())
            }
            Action::Apply { .. } | Action::CreateNamespace { .. } | Action::RunHook(_)
                if self.state.plan.dry_run && !step.can_be_tried =>
            {
                let name = message::kubectl_name(&step.id.key);
                let text = format!("{name} not tried: its kind or namespace does not exist yet (dry run)");
                (Some(ResultCode::Synced), OperationPhase::Succeeded, text)
            }
            Action::Apply { .. }
            | Action::CreateNamespace { .. }
            | Action::RunHook(_)
            | Action::Prune { .. } => {
                return false;
            }
        };
        self.state.record(step, status, phase, text);
        true
    }

    /// Sends a step's command, or says what it waits for first.
    fn begin_step<'p>(&mut self, step: &'p Step) -> Option<Wait<'p>> {
        match &step.action {
            Action::Prune { guard, uid } => {
                if !self.is_confirmed(guard) {
                    return Some(Wait::Confirmation(step));
                }
                let propagation = self.state.plan.propagation;
                self.send(step, Verb::Prune { uid: uid.clone(), propagation });
                None
            }
            Action::Apply { how, strict, migrate, .. } => match self.sight(step) {
                Some(Sight::Live(live)) if live.terminating => Some(Wait::Deletion(step)),
                Some(Sight::Live(_) | Sight::Gone | Sight::Collected) | None => {
                    let verb = Verb::Apply { how: *how, strict: *strict, migrate: *migrate, dry_run: false };
                    self.send(step, verb);
                    None
                }
            },
            Action::CreateNamespace { manifest } => {
                let how = crate::plan::HowToApply::ServerSide;
                self.send(step, Verb::ApplyManifest { manifest: manifest.clone(), how, dry_run: false });
                None
            }
            Action::RunHook(hook) => self.begin_hook(step, hook),
            Action::Unchanged | Action::Skip(_) => None,
        }
    }

    fn begin_hook<'p>(&mut self, step: &'p Step, hook: &Hook) -> Option<Wait<'p>> {
        match self.sight(step) {
            // Not known yet: it may be there and ours.
            None => Some(Wait::Hook(step)),
            Some(Sight::Live(live)) if live.terminating => {
                if live.has_hook_finalizer && self.state.freed.insert(step.id.clone()) {
                    self.state.cleaning.insert(step.id.clone());
                    self.commands.push(Command { id: step.id.clone(), verb: Verb::ReleaseHook });
                }
                Some(Wait::Deletion(step))
            }
            Some(Sight::Live(live)) if hook.is_deleted(DeletePolicy::BeforeHookCreation) => {
                let uid = live.uid.clone();
                self.delete_old(step, uid);
                None
            }
            Some(Sight::Live(_) | Sight::Gone | Sight::Collected) => {
                let manifest = hook.manifest.clone();
                self.send(step, Verb::ApplyManifest { manifest, how: hook.how, dry_run: false });
                None
            }
        }
    }

    /// Old objects of the group's hooks go while earlier stages run, so that the hooks need not wait.
    fn make_room(&mut self, group: &Group) {
        for step in &group.steps {
            let Some(hook) = step.hook() else { continue };
            if self.state.progress(step) != Progress::Pending
                || !hook.is_deleted(DeletePolicy::BeforeHookCreation)
            {
                continue;
            }
            if let Some(Sight::Live(live)) = self.sight(step)
                && !live.terminating
            {
                let uid = live.uid.clone();
                self.delete_old(step, uid);
            }
        }
    }

    fn delete_old(&mut self, step: &Step, uid: Option<String>) {
        let propagation = self.state.plan.propagation;
        self.state.making_room.insert(step.id.clone());
        self.send(step, Verb::DeleteHook { uid, propagation });
    }

    fn send(&mut self, step: &Step, verb: Verb) {
        // A hook of several phases is one object: what one phase left is about to be overwritten or deleted.
        let is_other_phase = |result: &ResourceResult| result.id.key == step.id.key && result.id != step.id;
        if step.hook().is_some() && self.state.results().iter().any(is_other_phase) {
            self.record_first = true;
        }
        self.state.in_flight.insert(step.id.clone());
        self.commands.push(Command { id: step.id.clone(), verb });
    }

    fn sight(&self, step: &Step) -> Option<&Sight> {
        self.observed.sights.get(&step.id.key)
    }

    fn is_confirmed(&self, guard: &PruneGuard) -> bool {
        match guard {
            PruneGuard::Free | PruneGuard::Confirm { approved: true, .. } => true,
            PruneGuard::Confirm { approved: false, .. } => {
                self.observed.approved_at.is_some_and(|approved| approved >= self.state.plan.mark.started_at)
            }
        }
    }

    /// A CRD that was just applied is served a moment later; its instances would be refused until then.
    fn new_kinds_are_unserved(&mut self, steps: &[&Step]) -> bool {
        let Ok(wait) = SignedDuration::try_from(self.state.limits.crd_wait) else { return false };
        let mut unserved = false;
        for step in steps {
            if step.id.key.kind != "CustomResourceDefinition" || self.is_well(step) {
                continue;
            }
            let applied_at = self.state.applied_at.get(&step.id).copied();
            let Some(until) = applied_at.and_then(|at| at.checked_add(wait).ok()) else { continue };
            if self.now < until {
                unserved = true;
                self.wake_at = Some(self.wake_at.map_or(until, |at| at.min(until)));
            }
        }
        unserved
    }

    fn is_well(&self, step: &Step) -> bool {
        match self.sight(step) {
            Some(Sight::Live(live)) => {
                live.health.as_ref().is_none_or(|health| health.status == HealthStatus::Healthy)
            }
            Some(Sight::Gone | Sight::Collected) | None => false,
        }
    }

    /// What a group that was begun still waits for.
    fn waits_of<'p>(&self, group: &'p Group, is_multi_step: bool) -> Vec<Wait<'p>> {
        let mut waits = Vec::new();
        for step in &group.steps {
            match (self.state.progress(step), &step.action) {
                (Progress::Running, Action::RunHook(_)) => waits.push(Wait::Hook(step)),
                (Progress::Running, _) if is_multi_step => waits.push(Wait::Health(step)),
                (Progress::Succeeded, Action::Prune { uid, .. }) => match self.sight(step) {
                    Some(Sight::Live(live)) if uid.is_none() || live.uid == *uid => {
                        waits.push(Wait::Deletion(step));
                    }
                    None => waits.push(Wait::Deletion(step)),
                    Some(Sight::Live(_) | Sight::Gone | Sight::Collected) => {}
                },
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

    /// Stays, unless a newer revision waits and this one is stuck.
    fn wait(&mut self, waits: &[Wait<'_>]) -> Verdict {
        if !self.state.in_flight.is_empty() {
            return Self::running_tasks();
        }
        if let Some(hold) = self.observed.hold
            && waits.is_empty()
        {
            return Verdict::Running(hold.to_owned());
        }
        let text = message::waiting(waits, self.observed);
        if let Some(newer) = self.observed.newer_revision
            && self.state.plan.automated
            && is_stuck(waits, self.observed)
        {
            self.state.stopping = Some(format!("superseded by {newer}, because this one was {text}"));
            return self.stop();
        }
        Verdict::Running(text)
    }

    fn running_tasks() -> Verdict {
        Verdict::Running("one or more tasks are running".to_owned())
    }

    /// Hooks that have ended, and whose end is in the results, need their finalizer no longer.
    fn release_finished_hooks(&mut self, which: Release) {
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
            let is_held = matches!(self.sight(step), Some(Sight::Live(live)) if live.has_hook_finalizer);
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
        match self.sight(step) {
            Some(Sight::Live(live)) => {
                live.mark.as_ref().is_none_or(|mark| *mark == self.state.plan.mark.text(step.id.phase))
            }
            Some(Sight::Gone | Sight::Collected) | None => false,
        }
    }

    fn succeed(&mut self, text: &str) -> Verdict {
        self.clean_up(DeletePolicy::HookSucceeded);
        if self.state.is_busy() {
            return Self::running_tasks();
        }
        Verdict::Succeeded(text.to_owned())
    }

    /// The failure branch: hooks with `HookFailed` go, `SyncFail` hooks run, then it is over.
    fn fail(&mut self) -> Option<Verdict> {
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
        Some(Verdict::Failed(message::failure(&self.state)))
    }

    /// Deletes the objects of hooks that ended in this operation and ask for it.
    fn clean_up(&mut self, policy: DeletePolicy) {
        let plan = Arc::clone(&self.state.plan);
        for step in plan.steps() {
            let Some(hook) = step.hook() else { continue };
            // A hook of the failure branch that did its work goes as its own success asks.
            let own = match self.state.progress(step) {
                Progress::Succeeded if step.id.phase == crate::plan::SyncPhase::SyncFail => {
                    DeletePolicy::HookSucceeded
                }
                Progress::Succeeded | Progress::Failed => policy,
                Progress::Pending | Progress::InFlight | Progress::Running => continue,
            };
            if hook.is_deleted(own) {
                self.delete_finished(step);
            }
        }
    }

    fn delete_finished(&mut self, step: &Step) {
        let Some(Sight::Live(live)) = self.sight(step) else { return };
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

    /// Stopped by a person, by the timeout or by a newer revision: what is under way ends, running hooks are
    /// deleted, and what was applied stays.
    fn stop(&mut self) -> Verdict {
        let reason = self.state.stopping.clone().unwrap_or_default();
        if !self.state.in_flight.is_empty() {
            return Verdict::Stopping(reason);
        }
        let plan = Arc::clone(&self.state.plan);
        for step in plan.steps().filter(|step| step.hook().is_some()) {
            if self.state.progress(step) == Progress::Running {
                self.state.record(
                    step,
                    Some(ResultCode::Synced),
                    OperationPhase::Failed,
                    "terminated".to_owned(),
                );
                self.delete_finished(step);
            }
        }
        self.release_finished_hooks(Release::All);
        if self.state.is_busy() {
            return Verdict::Stopping(reason);
        }
        Verdict::Stopped(reason)
    }

    /// A dry run: everything is tried at once, in no order.
    fn try_all(&mut self, groups: &[Group]) -> Verdict {
        let steps: Vec<&Step> = groups.iter().flat_map(|group| &group.steps).collect();
        for step in &steps {
            self.record_without_command(step);
        }
        for step in &steps {
            if self.state.progress(step) == Progress::Pending {
                self.try_step(step);
            }
        }
        if !self.state.in_flight.is_empty() {
            return Self::running_tasks();
        }
        if steps.iter().any(|step| self.state.progress(step) == Progress::Failed) {
            return Verdict::Failed(message::failure(&self.state));
        }
        Verdict::Succeeded("successfully synced (all tasks run)".to_owned())
    }

    fn try_step(&mut self, step: &Step) {
        match &step.action {
            Action::Apply { how, strict, migrate, .. } => {
                self.send(step, Verb::Apply { how: *how, strict: *strict, migrate: *migrate, dry_run: true });
            }
            Action::RunHook(hook) => {
                let manifest = hook.manifest.clone();
                self.send(step, Verb::ApplyManifest { manifest, how: hook.how, dry_run: true });
            }
            Action::CreateNamespace { manifest } => {
                let how = crate::plan::HowToApply::ServerSide;
                self.send(step, Verb::ApplyManifest { manifest: manifest.clone(), how, dry_run: true });
            }
            Action::Unchanged | Action::Skip(_) | Action::Prune { .. } => {}
        }
    }
}

/// Can what is waited for not come about by itself? A hook that still works is never cut off.
fn is_stuck(waits: &[Wait<'_>], observed: &Observed<'_>) -> bool {
    let stuck = |wait: &Wait<'_>| match wait {
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
    };
    let works = |wait: &Wait<'_>| matches!(wait, Wait::Hook(_)) && !stuck(wait);
    waits.iter().any(stuck) && !waits.iter().any(works)
}
