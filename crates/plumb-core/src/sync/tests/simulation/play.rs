//! Random syncs in a random world: the health of objects changes at any time, answers and watch events come in
//! any order, people and windows hold things up, Git moves on, and the engine is lost at any moment.

use proptest::prelude::*;

use super::super::world::{World, has_health};
use super::laws::{Watcher, judge_end};
use crate::health::HealthStatus;
use crate::object::ObjectKey;

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
        1 => Just("paused"),
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
        4 => Just("sync prune automated"),
        1 => Just("sync prune option=ApplyOutOfSyncOnly=true"),
        2 => Just("sync prune option=CreateNamespace=true"),
    ];
    let namespace = prop_oneof![
        2 => Just("namespace prod"),
        2 => Just("namespace prod missing"),
        1 => Just("namespace prod missing\nlive Namespace prod owner=nobody terminating"),
    ];
    let proof = prop_oneof![5 => Just(""), 1 => Just("unproven")];
    (sync, objects, hooks, namespace, proof).prop_map(|(sync, objects, hooks, namespace, proof)| {
        format!("{sync}\n{namespace}\n{proof}\n{}\n{}", objects.join("\n"), hooks.join("\n"))
    })
}

/// Plays a world until the operation ends; `choices` decide what happens when. If Git has moved on by then, the next
/// commit is synced to its end too.
fn play(facts: &str, newer: &str, choices: &[u16]) -> Result<(), TestCaseError> {
    let mut world = World::new(facts);
    world.slow = world.objects.keys().filter(|key| key.name.ends_with(['0', '2', '4'])).cloned().collect();
    let mut rest = choices.iter().copied();
    play_operation(&mut world, &mut rest)?;
    if world.newer.is_some() {
        world.next_commit(newer);
        play_operation(&mut world, &mut rest)?;
    }
    Ok(())
}

fn play_operation(
    world: &mut World,
    rest: &mut impl ExactSizeIterator<Item = u16>,
) -> Result<(), TestCaseError> {
    let mut watcher = Watcher::new();
    world.boot();
    for turn in 0.. {
        prop_assert!(turn < 4_000, "never ends: {} {}\n{:#?}", world.phase, world.message, world.log);
        watcher.look(world);
        let transition = world.step();
        watcher.answered(world, &transition)?;
        if transition.phase.is_completed() {
            prop_assert!(transition.commands.is_empty(), "commands after the end");
            world.record();
            return judge_end(world, &watcher);
        }
        // When the choices are used up, everything that helps happens in turn, so that it must end.
        let is_wild = rest.len() > 0;
        let choice = rest.next().unwrap_or_else(|| u16::try_from(turn % 9_973).unwrap_or(0).wrapping_mul(31));
        happen(world, &mut watcher, choice, is_wild)?;
    }
    Ok(())
}

/// One thing happens. As long as the world is wild it may be a bad one.
fn happen(world: &mut World, watcher: &mut Watcher, choice: u16, is_wild: bool) -> Result<(), TestCaseError> {
    let pick = usize::from(choice / 20);
    let keys: Vec<ObjectKey> = world.objects.keys().cloned().collect();
    let chosen = keys.get(pick.checked_rem(keys.len()).unwrap_or(0)).cloned();
    match choice % 20 {
        0..=5 if !world.sent.is_empty() => {
            let index = pick % world.sent.len();
            let command = world.sent.get(index).expect("in range").clone();
            if is_wild && pick.is_multiple_of(29) {
                world.refuse(index);
            } else {
                watcher.judge(world, &command)?;
                world.execute(index);
            }
        }
        6..=8 => {
            if let Some(key) = chosen {
                grow(world, &key, is_wild && pick.is_multiple_of(11));
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
        12 if is_wild => crash(world, watcher, pick)?,
        13 => world.tick(1),
        14 if is_wild && pick.is_multiple_of(97) => world.terminate = true,
        14 => world.approved_at = Some(world.now),
        15 => {
            world.hold = match pick % 3 {
                0 if is_wild => Some("paused: trying a fix".to_owned()),
                1 if is_wild => Some("Sync operation blocked by sync window".to_owned()),
                _ => None,
            };
        }
        16 if is_wild && pick.is_multiple_of(3) => world.newer = Some("fedcba9".to_owned()),
        17 if is_wild => {
            if let Some(key) = chosen {
                suffer(world, &key, pick);
                world.see(&key);
            }
        }
        18 if is_wild => {
            if let Some(object) = chosen.as_ref().and_then(|key| world.objects.get_mut(key)) {
                object.paused = !object.paused;
            }
        }
        _ => {
            // A watch event that comes late.
            if let Some(key) = chosen {
                world.see(&key);
            }
        }
    }
    Ok(())
}

/// The engine crashes. Commands in flight may or may not reach the server.
fn crash(world: &mut World, watcher: &mut Watcher, pick: usize) -> Result<(), TestCaseError> {
    while !world.sent.is_empty() {
        if pick.wrapping_add(world.sent.len()).is_multiple_of(2) {
            let command = world.sent.first().expect("not empty").clone();
            watcher.judge(world, &command)?;
            world.execute(0);
        } else {
            world.sent.remove(0);
        }
    }
    watcher.crashed();
    world.boot();
    Ok(())
}

/// An object becomes healthy or degraded.
fn grow(world: &mut World, key: &ObjectKey, is_ill: bool) {
    let Some(object) = world.objects.get_mut(key) else { return };
    object.trouble = None;
    match object.health {
        Some(HealthStatus::Progressing | HealthStatus::Suspended | HealthStatus::Unknown)
            if has_health(key) =>
        {
            object.health = Some(if is_ill { HealthStatus::Degraded } else { HealthStatus::Healthy });
        }
        _ => {}
    }
}

/// A progressing object gets a problem.
fn suffer(world: &mut World, key: &ObjectKey, pick: usize) {
    let Some(object) = world.objects.get_mut(key) else { return };
    if object.health != Some(HealthStatus::Progressing) {
        return;
    }
    match pick % 3 {
        0 => object.health = Some(HealthStatus::Suspended),
        1 => object.health = Some(HealthStatus::Unknown),
        _ => object.trouble = Some("pod x: ImagePullBackOff".to_owned()),
    }
}

proptest! {
    #[test]
    fn any_order_of_events_ends_well(
        facts in facts(),
        newer in facts(),
        choices in prop::collection::vec(any::<u16>(), 0..300),
    ) {
        play(&facts, &newer, &choices)?;
    }
}
