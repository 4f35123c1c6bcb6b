//! Hooks: when they run, and what becomes of them.

use expect_test::expect;

use super::script::check;

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
              Failed: one or more synchronization tasks completed unsuccessfully, reason: batch/Job prod/pre: deleted before its result was seen
        "#]],
    );
}

#[test]
fn a_hook_that_a_user_deletes_ends_the_sync_and_loses_its_finalizer() {
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
              Failed: one or more synchronization tasks completed unsuccessfully, reason: batch/Job prod/pre: deleted before it finished (at 2026-11-15T11:59:00Z)
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
fn an_object_with_a_made_up_mark_is_no_hook_that_ran() {
    check(
        "
        git ConfigMap conf
        git Job migrate hook=PostSync
        ",
        "
        Job/migrate forged
        crash
        run
        ",
        &expect![[r#"
              > apply Sync ConfigMap/conf
              Running: one or more tasks are running
            * Job/migrate forged
            * crash
              > apply Sync ConfigMap/conf
            * run
              > delete hook PostSync Job/migrate
              > apply PostSync Job/migrate
              Running: waiting for completion of hook batch/Job/migrate: Progressing
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
