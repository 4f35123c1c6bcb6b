//! Waves: what each waits for, and what a failure stops.

use expect_test::expect;

use super::script::{act, check};
use super::world::World;
use crate::sync::OperationPhase;

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
fn what_a_person_takes_hold_of_on_the_way_is_left_out() {
    check(
        "
        sync prune
        git Deployment web
        drift ConfigMap conf wave=1
        drift ConfigMap other wave=1
        live ConfigMap old
        ",
        "
        ConfigMap/conf paused
        ConfigMap/old paused
        run
        Deployment/web Healthy
        run
        ",
        &expect![[r#"
              > prune Sync ConfigMap/old
              Running: one or more tasks are running
            * ConfigMap/conf paused
            * ConfigMap/old paused
            * run
              > apply Sync Deployment/web
              Running: waiting for healthy state of apps/Deployment/web: Progressing
            * Deployment/web Healthy
              > apply Sync ConfigMap/other
              Running: one or more tasks are running
            * run
              Succeeded: successfully synced (all tasks run)
        "#]],
    );
}

#[test]
fn what_was_applied_is_waited_for_though_a_person_holds_it_since() {
    check(
        "
        git Deployment web
        git ConfigMap after wave=1
        ",
        "
        run
        Deployment/web paused
        crash
        Deployment/web Healthy
        run
        ",
        &expect![[r#"
              > apply Sync Deployment/web
              Running: one or more tasks are running
            * run
              Running: waiting for healthy state of apps/Deployment/web: Progressing
            * Deployment/web paused
            * crash
            * Deployment/web Healthy
              > apply Sync ConfigMap/after
              Running: one or more tasks are running
            * run
              Succeeded: successfully synced (all tasks run)
        "#]],
    );
}

#[test]
fn a_namespace_on_its_way_out_is_made_anew_once_it_is_gone() {
    check(
        "
        sync option=CreateNamespace=true
        namespace prod missing
        git ConfigMap a
        live Namespace prod owner=nobody terminating
        ",
        "
        crash
        Namespace/prod gone
        run
        ",
        &expect![[r#"
              Running: waiting for deletion of /Namespace/prod: it is being deleted (since 2026-11-15T11:59:00Z)
            * crash
            * Namespace/prod gone
              > apply PreSync Namespace/prod
              Running: one or more tasks are running
            * run
              > apply Sync ConfigMap/a
              Succeeded: successfully synced (all tasks run)
        "#]],
    );
}
