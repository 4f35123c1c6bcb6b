//! The state machine, told as stories: lines of facts, lines of events, and what the machine did.

#![expect(clippy::needless_raw_string_hashes, reason = "expect-test writes them this way")]

use std::fmt::Write as _;

use expect_test::{Expect, expect};

use super::world::{World, describe};
use super::*;
use crate::health::HealthStatus;
use crate::object::ObjectKey;
use crate::plan::fixture::{key, time};

/// Plays the events and prints after each line what the machine sent and how the operation stands.
///
/// Events: `run` (carry out and answer everything until nothing is left), `one` (answer the first command),
/// `Kind/name Healthy` (or another health), `Kind/name gone|deleting|stuck`, `fail Kind/name`, `slow Kind/name`,
/// `crash`, `lost` (crash before the status was written), `terminate`, `approve`, `hold`, `free`, `newer`, `wait N`.
fn check(facts: &str, events: &str, expected: &Expect) {
    expected.assert_eq(&play(&mut World::new(facts), events));
}

fn play(world: &mut World, events: &str) -> String {
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

fn act(world: &mut World, out: &mut String) {
    let (phase, message) = (world.phase, world.message.clone());
    let transition = world.step();
    for command in &transition.commands {
        writeln!(out, "  > {}", describe(command)).expect("a string takes all");
    }
    if (phase, message) != (world.phase, world.message.clone()) {
        writeln!(out, "  {}: {}", transition.phase, transition.message).expect("a string takes all");
    }
}

#[test]
fn one_wave_is_sent_and_left_to_itself() {
    check(
        "
        git Deployment web
        git ConfigMap conf
        git Secret s
        ",
        "
        run
        ",
        &expect![[r#"
              > apply Sync Secret/s
              > apply Sync ConfigMap/conf
              Running: one or more tasks are running
            * run
              > apply Sync Deployment/web
              Succeeded: successfully synced (all tasks run)
        "#]],
    );
}

#[test]
fn a_wave_waits_for_the_health_of_the_one_before() {
    check(
        "
        git Job migrate wave=1
        git ConfigMap first
        git ConfigMap after wave=2
        ",
        "
        run
        Job/migrate Healthy
        run
        ",
        &expect![[r#"
              > apply Sync ConfigMap/first
              Running: one or more tasks are running
            * run
              > apply Sync Job/migrate
              Running: waiting for healthy state of batch/Job/migrate: Progressing
            * Job/migrate Healthy
              > apply Sync ConfigMap/after
              Running: one or more tasks are running
            * run
              Succeeded: successfully synced (all tasks run)
        "#]],
    );
}

#[test]
fn no_health_means_no_waiting() {
    let facts: Vec<String> = (0..10).map(|wave| format!("git ConfigMap w{wave} wave={wave}")).collect();
    let mut world = World::new(&facts.join("\n"));
    let mut out = String::new();
    world.boot();
    let mut rounds = 0;
    while world.phase == OperationPhase::Running {
        act(&mut world, &mut out);
        while !world.sent.is_empty() {
            world.execute(0);
        }
        rounds += 1;
        assert!(rounds < 20, "{out}");
    }
    assert_eq!(world.phase, OperationPhase::Succeeded);
    assert_eq!(rounds, 11, "one round trip a wave and one to end");
}

#[test]
fn a_suspended_or_unknown_object_in_an_early_wave_is_waited_for() {
    check(
        "
        git Deployment web
        git ConfigMap after wave=1
        ",
        "
        run
        Deployment/web Suspended
        Deployment/web Unknown
        Deployment/web stuck
        Deployment/web Healthy
        run
        ",
        &expect![[r#"
              > apply Sync Deployment/web
              Running: one or more tasks are running
            * run
              Running: waiting for healthy state of apps/Deployment/web: Progressing
            * Deployment/web Suspended
              Running: waiting for healthy state of apps/Deployment/web: Suspended
            * Deployment/web Unknown
              Running: waiting for healthy state of apps/Deployment/web: Unknown
            * Deployment/web stuck
              Running: waiting for healthy state of apps/Deployment/web: pod web-x2x: ImagePullBackOff (since 2026-11-15T11:58:00Z)
            * Deployment/web Healthy
              > apply Sync ConfigMap/after
              Running: one or more tasks are running
            * run
              Succeeded: successfully synced (all tasks run)
        "#]],
    );
}

#[test]
fn a_degraded_object_fails_an_early_wave_and_nothing_follows() {
    check(
        "
        git Deployment web
        git Deployment slow
        git ConfigMap after wave=1
        ",
        "
        run
        Deployment/web stuck
        Deployment/web Degraded
        ",
        &expect![[r#"
              > apply Sync Deployment/slow
              > apply Sync Deployment/web
              Running: one or more tasks are running
            * run
              Running: waiting for healthy state of apps/Deployment/slow and 1 more resources: Progressing
            * Deployment/web stuck
              Running: waiting for healthy state of apps/Deployment/web and 1 more resources: pod web-x2x: ImagePullBackOff (since 2026-11-15T11:58:00Z)
            * Deployment/web Degraded
              Failed: one or more synchronization tasks completed unsuccessfully, reason: apps/Deployment prod/web: pod web-x2x: ImagePullBackOff (since 2026-11-15T11:58:00Z)
        "#]],
    );
}

#[test]
fn the_only_wave_may_be_degraded() {
    check(
        "both Deployment web\ndrift ConfigMap conf",
        "
        Deployment/web Degraded
        run
        ",
        &expect![[r#"
              > apply Sync ConfigMap/conf
              Running: one or more tasks are running
            * Deployment/web Degraded
            * run
              Succeeded: successfully synced (all tasks run)
        "#]],
    );
}

#[test]
fn one_failure_does_not_stop_later_kinds_of_the_group() {
    check(
        "
        git ConfigMap conf
        git Deployment web
        git ConfigMap after wave=1
        ",
        "
        fail ConfigMap/conf
        run
        ",
        &expect![[r#"
              > apply Sync ConfigMap/conf
              Running: one or more tasks are running
            * fail ConfigMap/conf
            * run
              > apply Sync Deployment/web
              Failed: one or more objects failed to apply, reason: ConfigMap prod/conf: the server said no
        "#]],
    );
}

#[test]
fn a_failed_prune_stops_its_group_before_any_apply() {
    check(
        "
        sync prune
        live ConfigMap old
        git ConfigMap new
        ",
        "
        fail ConfigMap/old
        run
        ",
        &expect![[r#"
              > prune Sync ConfigMap/old
              Running: one or more tasks are running
            * fail ConfigMap/old
            * run
              Failed: one or more objects failed to apply, reason: ConfigMap prod/old: the server said no
        "#]],
    );
}

#[test]
fn an_unconfirmed_prune_holds_its_group() {
    check(
        "
        sync prune
        live ConfigMap old options=Prune=confirm
        git ConfigMap new
        ",
        "
        run
        approve
        run
        ",
        &expect![[r#"
              Running: waiting for pruning confirmation of /ConfigMap/old: Prune=confirm
            * run
            * approve
              > prune Sync ConfigMap/old
              Running: one or more tasks are running
            * run
              > apply Sync ConfigMap/new
              Succeeded: successfully synced (all tasks run)
        "#]],
    );
}

#[test]
fn deletions_are_waited_for_before_the_next_wave() {
    check(
        "
        sync prune
        live ConfigMap old
        git ConfigMap after wave=1
        ",
        "
        slow ConfigMap/old
        run
        ConfigMap/old gone
        run
        ",
        &expect![[r#"
              > prune Sync ConfigMap/old
              Running: one or more tasks are running
            * slow ConfigMap/old
            * run
              Running: waiting for deletion of /ConfigMap/old: it is being deleted (since 2026-11-15T11:59:00Z)
            * ConfigMap/old gone
              > apply Sync ConfigMap/after
              Running: one or more tasks are running
            * run
              Succeeded: successfully synced (all tasks run)
        "#]],
    );
}

#[test]
fn hooks_run_before_and_after() {
    check(
        "
        git Job pre hook=PreSync policy=HookSucceeded
        git Job post hook=PostSync
        git ConfigMap conf
        ",
        "
        run
        Job/pre Healthy
        run
        Job/post Healthy
        run
        ",
        &expect![[r#"
              > apply PreSync Job/pre
              Running: one or more tasks are running
            * run
              Running: waiting for completion of hook batch/Job/pre: Progressing
            * Job/pre Healthy
              > apply Sync ConfigMap/conf
              Running: one or more tasks are running
            * run
              > apply PostSync Job/post
              Running: waiting for completion of hook batch/Job/post: Progressing
            * Job/post Healthy
              > release PostSync Job/post
              > delete hook PreSync Job/pre
              Running: one or more tasks are running
            * run
              Succeeded: successfully synced (no more tasks)
        "#]],
    );
}

#[test]
fn an_old_hook_goes_before_the_new_one_comes() {
    check(
        "
        both Job pre hook=PreSync
        git ConfigMap conf
        ",
        "
        slow Job/pre
        run
        Job/pre gone
        run
        Job/pre Healthy
        run
        ",
        &expect![[r#"
              > delete hook PreSync Job/pre
              Running: one or more tasks are running
            * slow Job/pre
            * run
              Running: waiting for deletion of batch/Job/pre: it is being deleted (since 2026-11-15T11:59:00Z)
            * Job/pre gone
              > apply PreSync Job/pre
              Running: one or more tasks are running
            * run
              Running: waiting for completion of hook batch/Job/pre: Progressing
            * Job/pre Healthy
              > release PreSync Job/pre
              > apply Sync ConfigMap/conf
              Running: one or more tasks are running
            * run
              Succeeded: successfully synced (all tasks run)
        "#]],
    );
}

#[test]
fn a_hook_without_before_hook_creation_is_applied_over_the_old_one() {
    check(
        "
        both Job pre hook=PreSync policy=HookFailed
        git ConfigMap conf
        ",
        "
        run
        ",
        &expect![[r#"
              > apply PreSync Job/pre
              Running: one or more tasks are running
            * run
              > release PreSync Job/pre
              > apply Sync ConfigMap/conf
              Succeeded: successfully synced (all tasks run)
        "#]],
    );
}

#[test]
fn a_failed_hook_stops_the_sync_runs_sync_fail_hooks_and_goes() {
    check(
        "
        git Job good hook=PreSync wave=-1
        git Job bad hook=PreSync policy=HookFailed
        git Job tell hook=SyncFail
        git ConfigMap conf
        ",
        "
        run
        Job/good Healthy
        run
        Job/bad Degraded
        run
        Job/tell Healthy
        run
        ",
        &expect![[r#"
              > apply PreSync Job/good
              Running: one or more tasks are running
            * run
              Running: waiting for completion of hook batch/Job/good: Progressing
            * Job/good Healthy
              > release PreSync Job/good
              > apply PreSync Job/bad
              Running: one or more tasks are running
            * run
              Running: waiting for completion of hook batch/Job/bad: Progressing
            * Job/bad Degraded
              > delete hook PreSync Job/bad
              > apply SyncFail Job/tell
              Running: one or more tasks are running
            * run
              Running: waiting for completion of hook batch/Job/tell: Progressing
            * Job/tell Healthy
              > release SyncFail Job/tell
              Running: one or more tasks are running
            * run
              Failed: one or more synchronization tasks completed unsuccessfully, reason: batch/Job prod/bad: Degraded
        "#]],
    );
}

#[test]
fn a_hook_in_unknown_fails_while_an_object_in_unknown_waits() {
    check(
        "
        git Job pre hook=PreSync
        git ConfigMap conf
        ",
        "
        run
        Job/pre Unknown
        run
        ",
        &expect![[r#"
              > apply PreSync Job/pre
              Running: one or more tasks are running
            * run
              Running: waiting for completion of hook batch/Job/pre: Progressing
            * Job/pre Unknown
              > release PreSync Job/pre
              Running: one or more tasks are running
            * run
              Failed: one or more synchronization tasks completed unsuccessfully, reason: batch/Job prod/pre: Unknown
        "#]],
    );
}

#[test]
fn a_hook_that_is_gone_is_named() {
    check(
        "
        git Job pre hook=PreSync
        git ConfigMap conf
        ",
        "
        run
        Job/pre gone
        ",
        &expect![[r#"
              > apply PreSync Job/pre
              Running: one or more tasks are running
            * run
              Running: waiting for completion of hook batch/Job/pre: Progressing
            * Job/pre gone
              Failed: one or more synchronization tasks completed unsuccessfully, reason: batch/Job prod/pre: it is gone: it was deleted before its end was seen
        "#]],
    );
}

#[test]
fn a_hook_that_somebody_deletes_ends_the_sync_and_is_let_go() {
    check(
        "
        git Job pre hook=PreSync
        git ConfigMap conf
        ",
        "
        run
        Job/pre deleted
        run
        ",
        &expect![[r#"
              > apply PreSync Job/pre
              Running: one or more tasks are running
            * run
              Running: waiting for completion of hook batch/Job/pre: Progressing
            * Job/pre deleted
              > release PreSync Job/pre
              Running: one or more tasks are running
            * run
              Failed: one or more synchronization tasks completed unsuccessfully, reason: batch/Job prod/pre: somebody deleted it before it ended (at 2026-11-15T11:59:00Z)
        "#]],
    );
    // One that ended before it was collected did its work.
    check(
        "
        git Job pre hook=PreSync
        git ConfigMap conf
        ",
        "
        run
        Job/pre Healthy
        Job/pre deleted
        run
        ",
        &expect![[r#"
              > apply PreSync Job/pre
              Running: one or more tasks are running
            * run
              Running: waiting for completion of hook batch/Job/pre: Progressing
            * Job/pre Healthy
              > release PreSync Job/pre
              > apply Sync ConfigMap/conf
              Running: one or more tasks are running
            * Job/pre deleted
            * run
              Succeeded: successfully synced (all tasks run)
        "#]],
    );
}

#[test]
fn what_is_on_its_way_out_already_is_waited_for_and_named() {
    check(
        "
        sync prune
        live ConfigMap old terminating
        git ConfigMap after wave=1
        ",
        "
        ConfigMap/old held
        crash
        ConfigMap/old gone
        run
        ",
        &expect![[r#"
              Running: waiting for deletion of /ConfigMap/old: it is being deleted (since 2026-11-15T11:59:00Z)
            * ConfigMap/old held
              Running: waiting for deletion of /ConfigMap/old: held by example.com/backup (since 2026-11-15T11:59:00Z)
            * crash
            * ConfigMap/old gone
              > apply Sync ConfigMap/after
              Running: one or more tasks are running
            * run
              Succeeded: successfully synced (all tasks run)
        "#]],
    );
}

#[test]
fn a_restarted_engine_knows_the_hook_it_started() {
    check(
        "
        git Job pre hook=PreSync
        git ConfigMap conf
        ",
        "
        one
        lost
        Job/pre Healthy
        crash
        run
        ",
        &expect![[r#"
              > apply PreSync Job/pre
              Running: one or more tasks are running
            * one
              Running: waiting for completion of hook batch/Job/pre: Progressing
            * lost
            * Job/pre Healthy
              > release PreSync Job/pre
              > apply Sync ConfigMap/conf
              Running: one or more tasks are running
            * crash
              > release PreSync Job/pre
              > apply Sync ConfigMap/conf
            * run
              Succeeded: successfully synced (all tasks run)
        "#]],
    );
}

#[test]
fn a_hook_of_two_phases_runs_in_both() {
    check(
        "
        git Job check hook=PreSync,PostSync
        git ConfigMap conf
        ",
        "
        run
        Job/check Healthy
        run
        lost
        run
        Job/check Healthy
        run
        ",
        &expect![[r#"
              > apply PreSync Job/check
              Running: one or more tasks are running
            * run
              Running: waiting for completion of hook batch/Job/check: Progressing
            * Job/check Healthy
              > release PreSync Job/check
              > apply Sync ConfigMap/conf
              Running: one or more tasks are running
            * run
              > delete hook PostSync Job/check
              > apply PostSync Job/check
              Running: waiting for completion of hook batch/Job/check: Progressing
            * lost
            * run
            * Job/check Healthy
              > release PostSync Job/check
              Running: one or more tasks are running
            * run
              Succeeded: successfully synced (no more tasks)
        "#]],
    );
}

#[test]
fn a_new_kind_is_given_a_moment_to_be_served() {
    check(
        "
        unserved Widget
        git CustomResourceDefinition widgets.example.com defines=example.com/Widget
        git Widget w
        ",
        "
        run
        CustomResourceDefinition/widgets.example.com Healthy
        run
        ",
        &expect![[r#"
              > apply Sync CustomResourceDefinition/widgets.example.com
              Running: one or more tasks are running
            * run
              Running: waiting for healthy state of apiextensions.k8s.io/CustomResourceDefinition/widgets.example.com: Progressing
            * CustomResourceDefinition/widgets.example.com Healthy
              > apply Sync Widget/w
              Running: one or more tasks are running
            * run
              Succeeded: successfully synced (all tasks run)
        "#]],
    );
    check(
        "
        unserved Widget
        git CustomResourceDefinition widgets.example.com defines=example.com/Widget
        git Widget w
        ",
        "
        run
        wait 3
        run
        ",
        &expect![[r#"
              > apply Sync CustomResourceDefinition/widgets.example.com
              Running: one or more tasks are running
            * run
              Running: waiting for healthy state of apiextensions.k8s.io/CustomResourceDefinition/widgets.example.com: Progressing
            * wait 3
              > apply Sync Widget/w
              Running: one or more tasks are running
            * run
              Succeeded: successfully synced (all tasks run)
        "#]],
    );
}

#[test]
fn stopping_deletes_running_hooks_and_leaves_the_rest() {
    check(
        "
        git Job pre hook=PreSync
        git ConfigMap conf
        ",
        "
        terminate
        run
        ",
        &expect![[r#"
              > apply PreSync Job/pre
              Running: one or more tasks are running
            * terminate
              Terminating: Operation terminated
            * run
              > delete hook PreSync Job/pre
              Failed: Operation terminated
        "#]],
    );
}

#[test]
fn a_timeout_stops_the_sync() {
    let mut world = World::new("git Deployment web\ngit ConfigMap after wave=1");
    world.limits.timeout = Some(std::time::Duration::from_mins(1));
    let out = play(&mut world, "run\nwait 59\nwait 1\n");
    expect![[r#"
          > apply Sync Deployment/web
          Running: one or more tasks are running
        * run
          Running: waiting for healthy state of apps/Deployment/web: Progressing
        * wait 59
        * wait 1
          Failed: Operation terminated: the sync timeout is over
    "#]]
    .assert_eq(&out);
}

#[test]
fn a_newer_revision_takes_over_from_one_that_is_stuck() {
    let facts = "
        sync automated
        git Deployment web
        git ConfigMap after wave=1";
    check(
        facts,
        "
        run
        newer
        Deployment/web stuck
        ",
        &expect![[r#"
              > apply Sync Deployment/web
              Running: one or more tasks are running
            * run
              Running: waiting for healthy state of apps/Deployment/web: Progressing
            * newer
            * Deployment/web stuck
              Failed: superseded by fedcba9, because this one was waiting for healthy state of apps/Deployment/web: pod web-x2x: ImagePullBackOff (since 2026-11-15T11:58:00Z)
        "#]],
    );
    check(
        facts.trim().trim_start_matches("sync automated"),
        "
        run
        newer
        Deployment/web stuck
        ",
        &expect![[r#"
              > apply Sync Deployment/web
              Running: one or more tasks are running
            * run
              Running: waiting for healthy state of apps/Deployment/web: Progressing
            * newer
            * Deployment/web stuck
              Running: waiting for healthy state of apps/Deployment/web: pod web-x2x: ImagePullBackOff (since 2026-11-15T11:58:00Z)
        "#]],
    );
}

#[test]
fn a_hook_at_work_is_not_cut_off_by_a_newer_revision() {
    check(
        "
        sync automated
        git Job migrate hook=PreSync
        git ConfigMap conf
        ",
        "
        run
        newer
        Job/migrate Healthy
        run
        ",
        &expect![[r#"
              > apply PreSync Job/migrate
              Running: one or more tasks are running
            * run
              Running: waiting for completion of hook batch/Job/migrate: Progressing
            * newer
            * Job/migrate Healthy
              > release PreSync Job/migrate
              > apply Sync ConfigMap/conf
              Running: one or more tasks are running
            * run
              Succeeded: successfully synced (all tasks run)
        "#]],
    );
}

#[test]
fn nothing_starts_outside_the_window() {
    check(
        "git ConfigMap a\ngit ConfigMap b wave=1",
        "
        hold
        run
        free
        run
        ",
        &expect![[r#"
              > apply Sync ConfigMap/a
              Running: one or more tasks are running
            * hold
            * run
              Running: Sync operation blocked by sync window
            * free
              > apply Sync ConfigMap/b
              Running: one or more tasks are running
            * run
              Succeeded: successfully synced (all tasks run)
        "#]],
    );
}

#[test]
fn a_dry_run_tries_everything_at_once() {
    check(
        "
        sync dry-run prune
        git Job pre hook=PreSync
        git ConfigMap a
        git ConfigMap b wave=1
        both ConfigMap c
        live ConfigMap old
        unserved Widget
        git CustomResourceDefinition widgets.example.com defines=example.com/Widget
        git Widget w
        ",
        "
        run
        ",
        &expect![[r#"
              > try PreSync Job/pre
              > try Sync CustomResourceDefinition/widgets.example.com
              > try Sync ConfigMap/a
              > try Sync ConfigMap/b
              Running: one or more tasks are running
            * run
              Succeeded: successfully synced (all tasks run)
        "#]],
    );
    check(
        "sync dry-run\ngit ConfigMap a",
        "fail ConfigMap/a\nrun",
        &expect![[r#"
          > try Sync ConfigMap/a
          Running: one or more tasks are running
        * fail ConfigMap/a
        * run
          Failed: one or more objects failed to apply (dry run), reason: ConfigMap prod/a: the server said no
    "#]],
    );
}

#[test]
fn results_have_the_words_of_the_contract() {
    let mut world = World::new(
        "
        sync prune
        live ConfigMap old
        live ConfigMap guarded options=Prune=false
        both ConfigMap same
        git Deployment web
        drift ConfigMap theirs owner=other:shop
        git Job post hook=PostSync
        ",
    );
    play(&mut world, "run\nDeployment/web Healthy\nrun\nJob/post Healthy\nrun");
    let lines: Vec<String> = world
        .results()
        .iter()
        .map(|result| {
            let status = result.status.map(ResultCode::name).unwrap_or_default();
            format!("{} [{status}] {} {}\n", result.id, result.phase, result.message)
        })
        .collect();
    expect![[r#"
        Sync ConfigMap prod/guarded [PruneSkipped] Succeeded ignored (no prune)
        Sync ConfigMap prod/same [Synced] Succeeded configmap/same unchanged
        Sync ConfigMap prod/theirs [] Succeeded not applied: app shop owns it and renders it too
        Sync ConfigMap prod/old [Pruned] Succeeded pruned
        Sync apps/Deployment prod/web [Synced] Succeeded deployment/web ok
        PostSync batch/Job prod/post [Synced] Succeeded job/post ok
    "#]]
    .assert_eq(&lines.concat());
}

#[test]
fn the_announced_wait_is_kept() {
    use crate::app::{Backoff, RetryPolicy};
    let policy = RetryPolicy { limit: Some(2), backoff: Backoff::default(), refresh: true };
    let ended_at = time("2026-11-15T12:59:58Z");
    let last = |retries| Try {
        phase: OperationPhase::Failed,
        message: "one or more objects failed to apply",
        retries,
        may_retry: true,
        ended_at,
    };
    let tries = [
        after_failure(&last(0), &policy),
        after_failure(&last(1), &policy),
        after_failure(&last(2), &policy),
    ];
    expect![[r#"
        [
            Retry {
                at: 2026-11-15T13:00:03Z,
                retries: 1,
                message: "one or more objects failed to apply. Retrying attempt #1 at 1:00PM.",
                refresh: true,
            },
            Retry {
                at: 2026-11-15T13:00:08Z,
                retries: 2,
                message: "one or more objects failed to apply. Retrying attempt #2 at 1:00PM.",
                refresh: true,
            },
            Ended {
                phase: Failed,
                message: "one or more objects failed to apply (retried 2 times).",
            },
        ]
    "#]]
    .assert_debug_eq(&tries);
    let stopped = Try { may_retry: false, ..last(0) };
    assert!(matches!(after_failure(&stopped, &policy), AfterFailure::Ended { .. }));
    assert_eq!(retry_policy(None, true).limit, Some(5));
    assert_eq!(retry_policy(None, false).limit, Some(0));
}
