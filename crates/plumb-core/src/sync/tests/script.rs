//! Scripted tests of the state machine: lines of facts, lines of events, and what the machine did.

use std::fmt::Write as _;

use expect_test::Expect;

use super::world::{World, describe};
use crate::health::HealthStatus;
use crate::object::ObjectKey;
use crate::plan::tests::fixture::key;

/// Plays the events and prints after each line what the machine sent and the phase of the operation.
///
/// Events: `run` (carry out and answer everything until nothing is left), `one` (answer the first command),
/// `Kind/name Healthy` (or another health), `Kind/name gone|deleted|stuck|held|forged|paused|resumed`, `fail Kind/name`, `slow Kind/name`,
/// `crash`, `lost` (crash before the status was written), `terminate`, `approve`, `hold`, `free`, `newer`, `wait N`.
pub(super) fn check(facts: &str, events: &str, expected: &Expect) {
    expected.assert_eq(&play(&mut World::new(facts), events));
}

pub(super) fn play(world: &mut World, events: &str) -> String {
    let mut out = String::new();
    world.boot();
    act(world, &mut out);
    for event in events.lines().map(str::trim).filter(|event| !event.is_empty()) {
        writeln!(out, "* {event}").expect("a string takes all");
        let words: Vec<&str> = event.split_whitespace().collect();
        match words.as_slice() {
            ["run"] => {
                while !world.sent.is_empty() {
                    while !world.sent.is_empty() {
                        world.execute(0);
                    }
                    act(world, &mut out);
                }
                continue;
            }
            ["one"] => world.execute(0),
            ["crash"] => {
                world.record();
                world.boot();
            }
            ["lost"] => world.boot(),
            ["terminate"] => world.terminate = true,
            ["approve"] => world.approved_at = Some(world.now),
            ["hold"] => world.hold = Some("Sync operation blocked by sync window".to_owned()),
            ["free"] => world.hold = None,
            ["newer"] => world.newer = Some("fedcba9".to_owned()),
            ["wait", seconds] => world.tick(seconds.parse().expect("seconds")),
            ["fail", object] => {
                world.fails.insert(object_key(object), "the server said no".to_owned());
            }
            ["slow", object] => {
                world.slow.insert(object_key(object));
            }
            [object, change] => {
                let key = object_key(object);
                change_object(world, &key, change);
                world.see(&key);
            }
            other => panic!("no such event: {other:?}"),
        }
        act(world, &mut out);
    }
    out
}

fn change_object(world: &mut World, key: &ObjectKey, change: &str) {
    match change {
        "gone" => {
            world.objects.remove(key);
        }
        "stuck" => {
            let object = world.objects.get_mut(key).expect("an object");
            object.trouble = Some("pod web-x2x: ImagePullBackOff".to_owned());
        }
        "deleted" => world.objects.get_mut(key).expect("an object").terminating = true,
        "held" => {
            let object = world.objects.get_mut(key).expect("an object");
            object.held_by = Some("example.com/backup".to_owned());
        }
        "forged" => world.forge(key),
        "paused" => world.objects.get_mut(key).expect("an object").paused = true,
        "resumed" => world.objects.get_mut(key).expect("an object").paused = false,
        health => {
            let status = HealthStatus::from_word(health).expect("a health");
            world.objects.get_mut(key).expect("an object").health = Some(status);
        }
    }
}

fn object_key(text: &str) -> ObjectKey {
    let (kind, name) = text.split_once('/').expect("Kind/name");
    key(kind, name)
}

pub(super) fn act(world: &mut World, out: &mut String) {
    let (phase, message) = (world.phase, world.message.clone());
    let transition = world.step();
    for command in &transition.commands {
        writeln!(out, "  > {}", describe(command)).expect("a string takes all");
    }
    if (phase, message) != (world.phase, world.message.clone()) {
        writeln!(out, "  {}: {}", transition.phase, transition.message).expect("a string takes all");
    }
}
