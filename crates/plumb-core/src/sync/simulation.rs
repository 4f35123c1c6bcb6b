//! Random syncs in a random world: objects get well or ill when they like, answers and watch events come in
//! any order, and the engine is lost at any moment.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::world::{World, has_health};
use super::*;
use crate::desired::Wave;
use crate::health::HealthStatus;
use crate::object::ObjectKey;
use crate::plan::{Action, SyncPhase};

/// One object as a line of facts.
fn object(index: usize) -> impl Strategy<Value = String> {
    let place = prop_oneof![3 => Just("git"), 1 => Just("both"), 2 => Just("drift"), 2 => Just("live")];
    let kind = prop_oneof![
        3 => Just("ConfigMap"),
        3 => Just("Deployment"),
        1 => Just("Job"),
        1 => Just("Secret"),
        1 => Just("RoleBinding"),
        1 => Just("CustomResourceDefinition"),
    ];
    let extra = prop_oneof![
        6 => Just(""),
        1 => Just("options=Prune=confirm"),
        1 => Just("options=Prune=false"),
        1 => Just("options=Replace=true"),
        1 => Just("options=Force=true,Replace=true"),
        1 => Just("options=PruneLast=true"),
        1 => Just("terminating"),
    ];
    (place, kind, -1..3_i32, extra)
        .prop_map(move |(place, kind, wave, extra)| format!("{place} {kind} o{index} wave={wave} {extra}"))
}

fn hook(index: usize) -> impl Strategy<Value = String> {
    let place = prop_oneof![3 => Just("git"), 1 => Just("both")];
    let phase = prop_oneof![
        3 => Just("PreSync"),
        2 => Just("Sync"),
        2 => Just("PostSync"),
        1 => Just("SyncFail"),
        1 => Just("PreSync,PostSync"),
        1 => Just("Sync,SyncFail"),
    ];
    let policy = prop_oneof![
        2 => Just(""),
        1 => Just("policy=HookSucceeded"),
        1 => Just("policy=HookFailed"),
        1 => Just("policy=BeforeHookCreation,HookSucceeded"),
        1 => Just("policy=HookSucceeded,HookFailed"),
    ];
    (place, phase, policy, -1..2_i32).prop_map(move |(place, phase, policy, wave)| {
        format!("{place} Job h{index} hook={phase} {policy} wave={wave}")
    })
}

fn facts() -> impl Strategy<Value = String> {
    let objects = (1..7_usize).prop_flat_map(|n| (0..n).map(object).collect::<Vec<_>>());
    let hooks = (0..4_usize).prop_flat_map(|n| (0..n).map(hook).collect::<Vec<_>>());
    let sync = prop_oneof![
        4 => Just("sync prune"),
        1 => Just("sync"),
        1 => Just("sync prune automated"),
        1 => Just("sync prune option=ApplyOutOfSyncOnly=true"),
        1 => Just("sync prune option=CreateNamespace=true"),
    ];
    (sync, objects, hooks, any::<bool>()).prop_map(|(sync, objects, hooks, missing)| {
        let namespace = if missing { "namespace prod missing" } else { "namespace prod" };
        format!("{sync}\n{namespace}\n{}\n{}", objects.join("\n"), hooks.join("\n"))
    })
}

/// What must hold at every moment, kept beside the world.
struct Watcher {
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
    fn new() -> Self {
        Self {
            hooks: BTreeMap::new(),
            well: BTreeSet::new(),
            ended: BTreeSet::new(),
            sent: BTreeSet::new(),
            recreated: BTreeMap::new(),
        }
    }

    /// Looks at the world as it is now.
    fn look(&mut self, world: &World) {
        for (key, object) in &world.objects {
            let is_well = object.health.is_none_or(|health| health == HealthStatus::Healthy);
            if object.in_sync && is_well && !object.terminating {
                self.well.insert(key.clone());
            }
            if let Some(mark) = &object.mark
                && is_well
            {
                for phase in [SyncPhase::PreSync, SyncPhase::Sync, SyncPhase::PostSync] {
                    if *mark == world.fixture.mark.text(phase) {
                        self.ended.insert((phase, key.clone()));
                    }
                }
            }
        }
    }

    /// A command is about to be carried out.
    fn judge(&mut self, world: &World, command: &Command) -> Result<(), TestCaseError> {
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
            let mark = format!("{} {}", key, world.fixture.mark.text(command.id.phase));
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
            if (group.phase, group.wave) >= place {
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
    fn sent(&mut self, transition: &Transition) -> Result<(), TestCaseError> {
        for command in &transition.commands {
            let text = format!("{} {:?}", command.id, std::mem::discriminant(&command.verb));
            let is_hook_deletion = matches!(command.verb, Verb::DeleteHook { .. } | Verb::ReleaseHook);
            // A hook's old object and its own may both be deleted.
            prop_assert!(self.sent.insert(text.clone()) || is_hook_deletion, "sent twice: {}", text);
        }
        Ok(())
    }
}

fn place_of(state: &SyncState, id: &crate::plan::StepId) -> Option<(SyncPhase, Wave)> {
    let mut steps = state.plan().placed_steps();
    steps.find(|(_, step)| step.id == *id).map(|(group, _)| (group.phase, group.wave))
}

/// Plays a world until the operation ends; `choices` decide what happens when.
fn play(facts: &str, choices: &[u16]) -> Result<(), TestCaseError> {
    let mut world = World::new(facts);
    world.slow = world.objects.keys().filter(|key| key.name.ends_with(['0', '2', '4'])).cloned().collect();
    let mut watcher = Watcher::new();
    world.boot();
    let mut rest = choices.iter().copied();
    for turn in 0.. {
        prop_assert!(turn < 4_000, "never ends: {} {}\n{facts}", world.phase, world.message);
        watcher.look(&world);
        let transition = world.step();
        watcher.sent(&transition)?;
        if transition.phase.is_completed() {
            prop_assert!(transition.commands.is_empty(), "commands after the end");
            world.record();
            return judge_end(&world, &watcher);
        }
        // When the choices are used up, everything that can happen happens in turn, so that it must end.
        let choice = rest.next().unwrap_or_else(|| u16::try_from(turn % 9_973).unwrap_or(0).wrapping_mul(31));
        let may_crash = rest.len() > 0;
        happen(&mut world, &mut watcher, choice, may_crash)?;
    }
    Ok(())
}

fn happen(
    world: &mut World,
    watcher: &mut Watcher,
    choice: u16,
    may_crash: bool,
) -> Result<(), TestCaseError> {
    let pick = usize::from(choice / 16);
    let keys: Vec<ObjectKey> = world.objects.keys().cloned().collect();
    let chosen = keys.get(pick.checked_rem(keys.len()).unwrap_or(0)).cloned();
    match choice % 16 {
        0..=5 if !world.sent.is_empty() => {
            let index = pick % world.sent.len();
            let command = world.sent.get(index).expect("in range").clone();
            if pick.is_multiple_of(29) {
                world.refuse(index);
            } else {
                watcher.judge(world, &command)?;
                world.execute(index);
            }
        }
        6..=8 => {
            if let Some(key) = chosen {
                grow(world, &key, pick);
                watcher.look(world);
                if pick.is_multiple_of(2) {
                    world.see(&key);
                }
            }
        }
        9 | 10 => {
            if let Some(key) = chosen {
                world.finish_deletion(&key);
                world.see(&key);
            }
        }
        11 => world.record(),
        12 if may_crash => {
            // Commands on their way may or may not reach the server.
            while !world.sent.is_empty() {
                if pick.wrapping_add(world.sent.len()).is_multiple_of(2) {
                    let command = world.sent.first().expect("not empty").clone();
                    watcher.judge(world, &command)?;
                    world.execute(0);
                } else {
                    world.sent.remove(0);
                }
            }
            watcher.sent.clear();
            world.boot();
        }
        13 => world.tick(1),
        14 if pick.is_multiple_of(97) => world.terminate = true,
        14 => world.approved_at = Some(world.now),
        _ => {
            // A watch event that comes late.
            if let Some(key) = chosen {
                world.see(&key);
            }
        }
    }
    Ok(())
}

/// An object gets well; some get ill.
fn grow(world: &mut World, key: &ObjectKey, pick: usize) {
    let Some(object) = world.objects.get_mut(key) else { return };
    if has_health(key) && object.health == Some(HealthStatus::Progressing) {
        let is_ill = pick.is_multiple_of(11);
        object.health = Some(if is_ill { HealthStatus::Degraded } else { HealthStatus::Healthy });
    }
}

fn judge_end(world: &World, watcher: &Watcher) -> Result<(), TestCaseError> {
    if world.phase != OperationPhase::Succeeded {
        return Ok(());
    }
    for key in world.fixture.desired.objects.keys() {
        let object = world.objects.get(key);
        prop_assert!(object.is_some_and(|object| object.in_sync), "{key} is not as Git asks");
    }
    let state = world.state.as_ref().expect("a running engine");
    for step in state.plan().steps() {
        let Some(hook) = step.hook() else { continue };
        if step.id.phase == SyncPhase::SyncFail {
            continue;
        }
        let ended = watcher.ended.contains(&(step.id.phase, step.id.key.clone()));
        prop_assert!(ended, "hook {} did not end", step.id);
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

proptest! {
    #[test]
    fn any_order_of_events_ends_well(facts in facts(), choices in prop::collection::vec(any::<u16>(), 0..250)) {
        play(&facts, &choices)?;
    }
}
