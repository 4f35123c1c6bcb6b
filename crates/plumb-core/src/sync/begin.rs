//! Starting the steps of a group: which can start, and what the others wait for.

use jiff::SignedDuration;

use super::message::{self, Wait};
use super::next::Turn;
use super::state::Progress;
use super::{Command, Observation, OperationPhase, ResourceResult, ResultCode, Verb};
use crate::desired::DeletePolicy;
use crate::health::HealthStatus;
use crate::plan::{Action, Group, Hook, HowToApply, PruneGuard, Skip, Stage, Step, approves};

/// What came of trying to begin the pending steps of a group.
#[derive(Default)]
pub(super) struct Begun<'p> {
    /// Something was recorded without a command: look again.
    pub(super) recorded: bool,
    /// What holds pending steps up.
    pub(super) waits: Vec<Wait<'p>>,
    /// A timer holds pending steps up.
    pub(super) timer: bool,
}

impl Turn<'_, '_> {
    /// Begins every step of the group whose turn has come.
    pub(super) fn begin<'p>(&mut self, group: &'p Group) -> Begun<'p> {
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
    pub(super) fn record_without_command(&mut self, step: &Step) -> bool {
        if self.state.progress(step) != Progress::Pending {
            return false;
        }
        if let Some(skip) = self.held(step) {
            self.state.record(step, status_of(&skip, step), OperationPhase::Succeeded, skip.to_string());
            return true;
        }
        let (status, phase, text) = match &step.action {
            Action::Skip(skip) => (status_of(skip, step), OperationPhase::Succeeded, skip.to_string()),
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
            Action::Prune { .. } if self.observation(step) == Some(&Observation::Gone) => {
                (Some(ResultCode::Pruned), OperationPhase::Succeeded, "pruned".to_owned())
            }
            Action::Apply { .. } | Action::CreateNamespace { .. } | Action::RunHook(_)
                if self.state.plan.dry_run && !step.can_be_tried =>
            {
                let name = message::kubectl_name(&step.id.key);
                let text =
                    format!("{name} not validated: its kind or namespace does not exist yet (dry run)");
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

    /// Was the object paused after the plan was made? Then it is skipped, as the plan would have done.
    fn held(&self, step: &Step) -> Option<Skip> {
        match &step.action {
            Action::Apply { .. } | Action::Prune { .. } => {}
            Action::Unchanged | Action::CreateNamespace { .. } | Action::RunHook(_) | Action::Skip(_) => {
                return None;
            }
        }
        match self.observation(step) {
            Some(Observation::Live(live)) => live.held.clone().map(|why| Skip::Paused { why }),
            Some(Observation::Gone | Observation::Collected) | None => None,
        }
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
            Action::Apply { how, strict, migrate, .. } => match self.observation(step) {
                Some(Observation::Live(live)) if live.terminating => Some(Wait::Deletion(step)),
                Some(Observation::Live(_) | Observation::Gone | Observation::Collected) | None => {
                    let verb = Verb::Apply { how: *how, strict: *strict, migrate: *migrate, dry_run: false };
                    self.send(step, verb);
                    None
                }
            },
            Action::CreateNamespace { manifest } => match self.observation(step) {
                // Nothing can be created in a terminating namespace; it can be recreated once it is gone.
                Some(Observation::Live(live)) if live.terminating => Some(Wait::Deletion(step)),
                Some(Observation::Live(_) | Observation::Gone | Observation::Collected) | None => {
                    let how = HowToApply::ServerSide;
                    let manifest = manifest.clone();
                    self.send(step, Verb::ApplyManifest { manifest, how, strict: false, dry_run: false });
                    None
                }
            },
            Action::RunHook(hook) => self.begin_hook(step, hook),
            Action::Unchanged | Action::Skip(_) => None,
        }
    }

    fn begin_hook<'p>(&mut self, step: &'p Step, hook: &Hook) -> Option<Wait<'p>> {
        match self.observation(step) {
            // Not known yet: it may be there and ours.
            None => Some(Wait::Hook(step)),
            Some(Observation::Live(live)) if live.terminating => {
                if live.has_hook_finalizer && self.state.freed.insert(step.id.clone()) {
                    self.state.cleaning.insert(step.id.clone());
                    self.commands.push(Command { id: step.id.clone(), verb: Verb::ReleaseHook });
                }
                Some(Wait::Deletion(step))
            }
            Some(Observation::Live(live)) if hook.is_deleted(DeletePolicy::BeforeHookCreation) => {
                let uid = live.uid.clone();
                self.delete_old(step, uid);
                None
            }
            Some(Observation::Live(_) | Observation::Gone | Observation::Collected) => {
                let manifest = hook.manifest.clone();
                let verb =
                    Verb::ApplyManifest { manifest, how: hook.how, strict: hook.strict, dry_run: false };
                self.send(step, verb);
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
            if let Some(Observation::Live(live)) = self.observation(step)
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

    pub(super) fn send(&mut self, step: &Step, verb: Verb) {
        // A hook of several phases is one object: what one phase left is about to be overwritten or deleted.
        let is_other_phase = |result: &ResourceResult| result.id.key == step.id.key && result.id != step.id;
        if step.hook().is_some() && self.state.results().iter().any(is_other_phase) {
            self.record_first = true;
        }
        self.state.in_flight.insert(step.id.clone());
        self.commands.push(Command { id: step.id.clone(), verb });
    }

    pub(super) fn observation(&self, step: &Step) -> Option<&Observation> {
        self.observed.observations.get(&step.id.key)
    }

    fn is_confirmed(&self, guard: &PruneGuard) -> bool {
        match guard {
            PruneGuard::Free | PruneGuard::Confirm { approved: true, .. } => true,
            PruneGuard::Confirm { approved: false, .. } => {
                approves(self.observed.approved_at, self.state.plan.mark.started_at)
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
                self.next_check = Some(self.next_check.map_or(until, |at| at.min(until)));
            }
        }
        unserved
    }

    fn is_well(&self, step: &Step) -> bool {
        match self.observation(step) {
            Some(Observation::Live(live)) => {
                live.health.as_ref().is_none_or(|health| health.status == HealthStatus::Healthy)
            }
            Some(Observation::Gone | Observation::Collected) | None => false,
        }
    }
}

/// The result of a step that is left out.
fn status_of(skip: &Skip, step: &Step) -> Option<ResultCode> {
    match skip {
        Skip::AlreadyTerminating => Some(ResultCode::Pruned),
        Skip::Collected => Some(ResultCode::Synced),
        Skip::PruneNotRequested
        | Skip::PruneForbidden
        | Skip::PruneUnproven(_)
        | Skip::HandedOver { .. }
        | Skip::AskedFor
        | Skip::NeverDeleted { .. } => Some(ResultCode::PruneSkipped),
        Skip::Paused { .. } if step.stage == Stage::Prunes => Some(ResultCode::PruneSkipped),
        Skip::OwnedBy { .. } | Skip::Paused { .. } => None,
    }
}
