//! How a sync ends, is held or gives way, and in which words.

use expect_test::expect;

use super::script::{check, play};
use super::world::World;
use crate::plan::tests::fixture::time;
use crate::sync::{AfterFailure, OperationPhase, ResultCode, Try, after_failure, retry_policy};

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
fn a_hook_keeps_its_images_however_it_ends() {
    for events in ["run\nterminate\nrun", "run\ncrash\nterminate\nrun", "run\nlost\nJob/pre Degraded\nrun"] {
        let mut world = World::new("git Job pre hook=PreSync image=busybox:1\ngit ConfigMap conf");
        play(&mut world, events);
        let hook = world.results().iter().find(|result| result.is_hook).expect("a result");
        assert_eq!(hook.images, ["busybox:1"], "{events}");
        assert_eq!(hook.phase, OperationPhase::Failed, "{events}");
        assert_eq!(hook.message == "Terminated", events.contains("terminate"), "{events}: {}", hook.message);
    }
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
          Failed: Operation terminated: sync timeout exceeded
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
fn a_hook_at_work_is_not_cut_off_for_what_waits_beside_it() {
    check(
        "
        sync automated
        git Job migrate hook=Sync
        drift Deployment web terminating
        git ConfigMap after wave=1
        ",
        "
        run
        Deployment/web stuck
        newer
        Job/migrate Healthy
        run
        ",
        &expect![[r#"
              > apply Sync Job/migrate
              Running: one or more tasks are running
            * run
              Running: waiting for deletion of apps/Deployment/web: it is being deleted (since 2026-11-15T11:59:00Z)
            * Deployment/web stuck
              Running: waiting for deletion of apps/Deployment/web: pod web-x2x: ImagePullBackOff (since 2026-11-15T11:58:00Z)
            * newer
            * Job/migrate Healthy
              > release Sync Job/migrate
              Terminating: superseded by fedcba9, because this one was waiting for deletion of apps/Deployment/web: pod web-x2x: ImagePullBackOff (since 2026-11-15T11:58:00Z)
            * run
              Failed: superseded by fedcba9, because this one was waiting for deletion of apps/Deployment/web: pod web-x2x: ImagePullBackOff (since 2026-11-15T11:58:00Z)
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
fn the_announced_wait_is_the_actual_wait() {
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
            },
            Retry {
                at: 2026-11-15T13:00:08Z,
                retries: 2,
                message: "one or more objects failed to apply. Retrying attempt #2 at 1:00PM.",
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
