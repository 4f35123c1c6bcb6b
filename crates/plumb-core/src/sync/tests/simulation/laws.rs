//! What must hold at every moment of a sync, whatever happens when.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::super::world::World;
use crate::desired::Wave;
use crate::health::HealthStatus;
use crate::object::ObjectKey;
use crate::plan::{Action, StepId, SyncPhase};
use crate::sync::*;

/// What must hold at every moment, kept beside the world.
pub(super) struct Watcher {
    /// How often each hook was made, by mark.
    hooks: BTreeMap<String, usize>,
    /// Objects that were well (or have no health) at some time after they were as Git asks.
    well: BTreeSet<ObjectKey>,
    /// Hooks that ended well, by phase and key.
    ended: BTreeSet<(SyncPhase, ObjectKey)>,
    /// Commands sent in this life of the engine.
    sent: BTreeSet<String>,
    /// How often each object was recreated.
    recreated: BTreeMap<ObjectKey, usize>,
}

impl Watcher {
    pub(super) fn new() -> Self {
        Self {
            hooks: BTreeMap::new(),
            well: BTreeSet::new(),
            ended: BTreeSet::new(),
            sent: BTreeSet::new(),
            recreated: BTreeMap::new(),
        }
    }

    /// Looks at the world as it is now.
    pub(super) fn look(&mut self, world: &World) {
        for (key, object) in &world.objects {
            let is_well = object.health.is_none_or(|health| health == HealthStatus::Healthy);
            if object.in_sync && is_well && !object.terminating {
                self.well.insert(key.clone());
            }
            if let Some(mark) = &object.mark
                && is_well
            {
                for phase in [SyncPhase::PreSync, SyncPhase::Sync, SyncPhase::PostSync] {
                    if *mark == world.fixture.mark.text(phase, key) {
                        self.ended.insert((phase, key.clone()));
                    }
                }
            }
        }
    }

    /// A command is about to be carried out.
    pub(super) fn judge(&mut self, world: &World, command: &Command) -> Result<(), TestCaseError> {
        let key = &command.id.key;
        match &command.verb {
            Verb::Prune { .. } => {
                prop_assert!(!world.fixture.desired.objects.contains_key(key), "prunes what Git has: {key}");
                prop_assert!(world.fixture.request.prune && world.fixture.deletions.is_ok());
            }
            Verb::Apply { .. } | Verb::ApplyManifest { .. } => self.judge_order(world, command)?,
            Verb::DeleteHook { .. } | Verb::ReleaseHook => {}
        }
        if let Verb::ApplyManifest { .. } = command.verb
            && key.kind == "Job"
            && !world.objects.contains_key(key)
        {
            let mark = format!("{} {}", key, world.fixture.mark.text(command.id.phase, key));
            let times = self.hooks.entry(mark.clone()).or_default();
            *times += 1;
            prop_assert_eq!(*times, 1, "hook made twice: {}", mark);
        }
        if let Verb::Apply { how: crate::plan::HowToApply::Recreate, .. } = command.verb {
            let times = self.recreated.entry(key.clone()).or_default();
            *times += 1;
            prop_assert_eq!(*times, 1, "recreated twice: {}", key);
        }
        Ok(())
    }

    /// Nothing is written while something of a lower wave is not well.
    fn judge_order(&self, world: &World, command: &Command) -> Result<(), TestCaseError> {
        let state = world.state.as_ref().expect("a running engine");
        let Some(place) = place_of(state, &command.id) else { return Ok(()) };
        if place.0 == SyncPhase::SyncFail {
            return Ok(());
        }
        for (group, step) in state.plan().placed_steps() {
            if (group.phase, group.wave) >= place || is_left_out(state, &step.id) {
                continue;
            }
            let key = &step.id.key;
            match &step.action {
                Action::Apply { .. } | Action::Unchanged | Action::CreateNamespace { .. } => {
                    prop_assert!(self.well.contains(key), "{} before {} was well", command.id, step.id);
                }
                Action::RunHook(_) => {
                    let ended = self.ended.contains(&(step.id.phase, key.clone()));
                    prop_assert!(ended, "{} before hook {} ended", command.id, step.id);
                }
                Action::Prune { .. } => {
                    prop_assert!(
                        !world.objects.contains_key(key),
                        "{} before {} was gone",
                        command.id,
                        step.id
                    );
                }
                Action::Skip(_) => {}
            }
        }
        Ok(())
    }

    /// The machine has just answered.
    pub(super) fn answered(&mut self, world: &World, transition: &Transition) -> Result<(), TestCaseError> {
        for command in &transition.commands {
            let text = format!("{} {:?}", command.id, std::mem::discriminant(&command.verb));
            let is_hook_deletion = matches!(command.verb, Verb::DeleteHook { .. } | Verb::ReleaseHook);
            // A hook's old object and its own may both be deleted.
            prop_assert!(self.sent.insert(text.clone()) || is_hook_deletion, "sent twice: {}", text);
            prop_assert!(world.hold.is_none() || is_hook_deletion, "{} though {:?}", text, world.hold);
            let is_paused = world.cache.get(&command.id.key).is_some_and(|object| object.paused);
            prop_assert!(!is_paused || is_hook_deletion || is_a_hook(command), "{} is held", text);
        }
        judge_words(world, transition)?;
        judge_superseded(world, transition)
    }

    /// The engine was lost: what it sent is forgotten.
    pub(super) fn crashed(&mut self) {
        self.sent.clear();
    }
}

fn is_a_hook(command: &Command) -> bool {
    matches!(command.verb, Verb::ApplyManifest { .. })
}

/// A running operation without commands in flight names what it waits for.
fn judge_words(world: &World, transition: &Transition) -> Result<(), TestCaseError> {
    if transition.phase != OperationPhase::Running || transition.state.is_busy() {
        return Ok(());
    }
    let message = transition.message.as_str();
    let is_said = message.starts_with("waiting for ") || world.hold.as_deref() == Some(message);
    prop_assert!(is_said, "it waits and says only: {message}");
    Ok(())
}

/// Only the automation's own operation gives way, to a newer commit that is there, and no hook that still works is
/// cut off for it.
fn judge_superseded(world: &World, transition: &Transition) -> Result<(), TestCaseError> {
    if !transition.message.starts_with("superseded by") {
        return Ok(());
    }
    let plan = transition.state.plan();
    prop_assert!(plan.automated && world.newer.is_some(), "{}", transition.message);
    prop_assert!(!transition.may_retry, "what was superseded is not tried again");
    for command in &transition.commands {
        let Some(object) = world.cache.get(&command.id.key) else { continue };
        let is_at_work = object.health == Some(HealthStatus::Progressing)
            && object.trouble.is_none()
            && !object.terminating
            && object.mark.as_deref() == Some(plan.mark.text(command.id.phase, &command.id.key).as_str());
        prop_assert!(!is_at_work, "{} was cut off at work: {}", command.id, transition.message);
    }
    Ok(())
}

/// Was a step skipped because its object is paused?
fn is_left_out(state: &SyncState, id: &StepId) -> bool {
    let result = state.results().iter().find(|result| result.id == *id);
    result.is_some_and(|result| result.message.starts_with("not applied: paused"))
}

fn place_of(state: &SyncState, id: &StepId) -> Option<(SyncPhase, Wave)> {
    let mut steps = state.plan().placed_steps();
    steps.find(|(_, step)| step.id == *id).map(|(group, _)| (group.phase, group.wave))
}

/// How an operation may end.
pub(super) fn judge_end(world: &World, watcher: &Watcher) -> Result<(), TestCaseError> {
    if world.phase != OperationPhase::Succeeded {
        return Ok(());
    }
    let state = world.state.as_ref().expect("a running engine");
    for key in world.fixture.desired.objects.keys() {
        let id = StepId { phase: SyncPhase::Sync, key: key.clone() };
        let is_as_asked = world.objects.get(key).is_some_and(|object| object.in_sync);
        prop_assert!(is_as_asked || is_left_out(state, &id), "{key} is not as Git asks");
    }
    for step in state.plan().steps() {
        let Some(hook) = step.hook() else { continue };
        if step.id.phase == SyncPhase::SyncFail {
            continue;
        }
        let ended = watcher.ended.contains(&(step.id.phase, step.id.key.clone()));
        prop_assert!(ended, "hook {} did not end", step.id);
        // If the server refuses it every time, the message says so.
        let mut results = state.results().iter().filter(|result| result.id == step.id);
        if results.any(|result| result.message.contains("cannot clean up: not now")) {
            continue;
        }
        let object = world.objects.get(&step.id.key);
        prop_assert!(
            object.is_none_or(|object| !object.has_finalizer),
            "hook {} keeps its finalizer",
            step.id
        );
        if hook.is_deleted(crate::desired::DeletePolicy::HookSucceeded) {
            prop_assert!(object.is_none_or(|object| object.terminating), "hook {} was not deleted", step.id);
        }
    }
    Ok(())
}
