//! The order of steps, hooks and namespaces.

#![expect(clippy::needless_raw_string_hashes, reason = "expect-test writes them this way")]

use expect_test::expect;
use serde_json::json;

use super::fixture::{Fixture, check, key};
use crate::object::Manifest;
use crate::plan::*;
use crate::tracking::{TRACKING_ANNOTATION, TrackedBy, TrackingSettings, tracked_by};

#[test]
fn kinds_and_waves_are_in_order() {
    check(
        "
        git Deployment web
        git ConfigMap conf
        git ServiceAccount acc
        git RoleBinding bind
        git Role role
        git Service svc wave=-1
        git Widget w
        git Ingress in
        ",
        &expect![[r#"
            Sync -1: apply Service prod/svc (missing) -> health
            Sync 0: apply ServiceAccount prod/acc (missing) -> -
            Sync 0: apply ConfigMap prod/conf (missing) -> -
            Sync 0: apply rbac.authorization.k8s.io/Role prod/role (missing) -> -
            Sync 0: apply rbac.authorization.k8s.io/RoleBinding prod/bind (missing) -> -
            Sync 0: apply apps/Deployment prod/web (missing) -> -
            Sync 0: apply Ingress prod/in (missing) -> -
            Sync 0: apply example.com/Widget prod/w (missing) -> -
        "#]],
    );
}

#[test]
fn hooks_run_in_each_of_their_phases() {
    check(
        "
        git Job migrate hook=PreSync,PostSync
        git Job never hook=NoSuchPhase
        git Job gone hook=PostDelete
        git Job fail hook=SyncFail policy=HookSucceeded,HookFailed
        git Job run- generate hook=Sync wave=2
        git ConfigMap skipped hook=Skip
        git ConfigMap conf
        ",
        &expect![[r#"
            PreSync 0: run hook batch/Job prod/migrate (hook, deleted BeforeHookCreation) -> completion
            Sync 0: apply ConfigMap prod/conf (missing) -> health
            Sync 2: run hook batch/Job prod/run-0123456-sync-1794744000 (hook, deleted BeforeHookCreation) -> completion
            PostSync 0: run hook batch/Job prod/migrate (hook, deleted BeforeHookCreation) -> completion
            SyncFail 0: run hook batch/Job prod/fail (hook, deleted HookSucceeded, HookFailed) -> completion
        "#]],
    );
}

#[test]
fn a_selective_sync_and_the_apply_strategy_leave_hooks_out() {
    let facts = "
        git Job migrate hook=PreSync
        git ConfigMap a
        git ConfigMap b
        git Secret a
        live ConfigMap old";
    check(
        &format!("sync prune only=ConfigMap/a {facts}"),
        &expect![[r#"
            Sync 0: apply ConfigMap prod/a (missing) -> -
        "#]],
    );
    check(
        &format!("sync no-hooks {facts}"),
        &expect![[r#"
            Sync 0: skip ConfigMap prod/old (removed from Git, ignored (requires pruning)) -> -
            Sync 0: apply Secret prod/a (missing) -> -
            Sync 0: apply ConfigMap prod/a (missing) -> -
            Sync 0: apply ConfigMap prod/b (missing) -> -
        "#]],
    );
}

#[test]
fn a_hook_has_its_mark_and_finalizer() {
    let plan = Fixture::parse("git Job run- generate hook=PreSync").plan();
    let hook = plan.steps().find_map(Step::hook).expect("a hook");
    let Payload(manifest) = &hook.manifest;
    let mark = plan.mark.text(SyncPhase::PreSync, &key("Job", "run-0123456-presync-1794744000"));
    assert!(mark.starts_with("1794744000-0-presync-"), "{mark}");
    assert_eq!(
        manifest.value().get("metadata"),
        Some(&json!({
            "name": "run-0123456-presync-1794744000",
            "namespace": "prod",
            "annotations": {"argocd.argoproj.io/hook": "PreSync", "plumb.dev/operation": mark},
            "finalizers": ["argocd.argoproj.io/hook-finalizer"],
        }))
    );
}

#[test]
fn the_mark_of_a_hook_cannot_be_made_up_or_copied() {
    let mark = Fixture::parse("").mark;
    let text = mark.text(SyncPhase::PreSync, &key("Job", "a"));
    let other_app = OperationMark { app_uid: "77aa".to_owned(), ..mark.clone() };
    assert_ne!(other_app.text(SyncPhase::PreSync, &key("Job", "a")), text);
    assert_ne!(mark.text(SyncPhase::PreSync, &key("Job", "b")), text);
    assert_ne!(mark.text(SyncPhase::PostSync, &key("Job", "a")), text);
    assert_eq!(mark.text(SyncPhase::PreSync, &key("Job", "a")), text);
}

#[test]
fn the_tracking_mark_has_the_generated_name() {
    let hook = json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"generateName": "run-", "annotations": {TRACKING_ANNOTATION: "web:batch/Job:prod/"}},
    });
    let mark = Fixture::parse("").mark;
    let stamped = mark.stamp(&Manifest::new(hook).expect("an object"), Some("prod"), SyncPhase::PreSync);
    assert_eq!(
        tracked_by(&stamped, "web", &TrackingSettings::default()),
        TrackedBy::Ours,
        "{:?}",
        stamped.value()
    );
}

#[test]
fn a_short_revision_is_whole_in_a_generated_name() {
    let mut fixture = Fixture::parse("git Job run- generate hook=PreSync");
    fixture.mark.revision = "1.2.3".to_owned();
    expect![[r#"
        PreSync 0: run hook batch/Job prod/run-1.2.3-presync-1794744000 (hook, deleted BeforeHookCreation) -> completion
    "#]]
    .assert_eq(&fixture.print());
}

#[test]
fn a_hook_without_any_name_is_named_after_the_operation() {
    let mut fixture = Fixture::parse("git Job run- generate hook=PreSync,PostSync");
    fixture.mark.revision = "1.2-RC1".to_owned();
    let hook = fixture.desired.hooks.first_mut().expect("a hook");
    hook.manifest = hook.manifest.clone().edit_metadata(|metadata| {
        metadata.remove("generateName");
    });
    expect![[r#"
        PreSync 0: run hook batch/Job prod/1.2-rc1-presync-1794744000 (hook, deleted BeforeHookCreation) -> completion
        PostSync 0: run hook batch/Job prod/1.2-rc1-postsync-1794744000 (hook, deleted BeforeHookCreation) -> completion
    "#]]
    .assert_eq(&fixture.print());
}

#[test]
fn prunes_mirror_their_waves() {
    check(
        "
        sync prune
        live ConfigMap a wave=-1
        live ConfigMap b
        live ConfigMap c wave=5
        both ConfigMap keep wave=1
        ",
        &expect![[r#"
            Sync -1: prune ConfigMap prod/c (removed from Git) -> deletion
            Sync 0: prune ConfigMap prod/b (removed from Git) -> deletion
            Sync 1: keep ConfigMap prod/keep (in sync) -> health
            Sync 5: prune ConfigMap prod/a (removed from Git) -> -
        "#]],
    );
}

#[test]
fn prune_last_comes_after_the_highest_wave_of_the_sync_phase() {
    let facts = "
        git ConfigMap new wave=2
        git Job after hook=PostSync wave=9
        live ConfigMap old wave=-3
        live ConfigMap older wave=1 options=PruneLast=true";
    check(
        &format!("sync prune option=PruneLast=true {facts}"),
        &expect![[r#"
            Sync 2: apply ConfigMap prod/new (missing) -> health
            Sync 3: prune ConfigMap prod/old (removed from Git) -> deletion
            Sync 3: prune ConfigMap prod/older (removed from Git) -> deletion
            PostSync 9: run hook batch/Job prod/after (hook, deleted BeforeHookCreation) -> completion
        "#]],
    );
    check(
        &format!("sync prune {facts}"),
        &expect![[r#"
            Sync 1: prune ConfigMap prod/old (removed from Git) -> deletion
            Sync 2: apply ConfigMap prod/new (missing) -> health
            Sync 3: prune ConfigMap prod/older (removed from Git) -> deletion
            PostSync 9: run hook batch/Job prod/after (hook, deleted BeforeHookCreation) -> completion
        "#]],
    );
    check(
        "sync prune option=PruneLast=true
         git ConfigMap new wave=-2
         live ConfigMap old",
        &expect![[r#"
            Sync -2: apply ConfigMap prod/new (missing) -> health
            Sync 1: prune ConfigMap prod/old (removed from Git) -> -
        "#]],
    );
}

#[test]
fn foundations_move_in_front_of_what_needs_them() {
    check(
        "
        git Namespace prod wave=3
        git CustomResourceDefinition widgets.example.com wave=5 defines=example.com/Widget
        git Job check hook=PreSync wave=-2
        git Widget w wave=1
        unserved Widget
        ",
        &expect![[r#"
            PreSync -2: apply Namespace prod (missing) -> health
            PreSync -2: run hook batch/Job prod/check (hook, deleted BeforeHookCreation) -> completion
            Sync 1: apply apiextensions.k8s.io/CustomResourceDefinition widgets.example.com (missing) -> -
            Sync 1: apply example.com/Widget prod/w (missing) -> -
        "#]],
    );
}

#[test]
fn the_namespace_is_made_when_asked_for() {
    let facts = "namespace prod missing
        git ConfigMap conf";
    check(
        &format!("sync option=CreateNamespace=true \n {facts}"),
        &expect![[r#"
            PreSync 0: apply Namespace prod (namespace missing) -> health
            Sync 0: apply ConfigMap prod/conf (missing) -> -
        "#]],
    );
    check(
        facts,
        &expect![[r#"
            Sync 0: apply ConfigMap prod/conf (missing) -> -
        "#]],
    );
    let plan = Fixture::parse(
        "sync option=CreateNamespace=true
         namespace prod label=team:a",
    )
    .plan();
    let manifest = plan.steps().find_map(|step| match &step.action {
        Action::CreateNamespace { manifest } => Some(manifest.0.value().clone()),
        _ => None,
    });
    let annotations = json!({"argocd.argoproj.io/sync-options": "ServerSideApply=true"});
    let metadata = json!({"name": "prod", "labels": {"team": "a"}, "annotations": annotations});
    let wanted = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata});
    assert_eq!(manifest, Some(wanted));
}

#[test]
fn a_namespace_that_git_has_is_not_made_twice() {
    for line in ["git Namespace prod", "git Namespace prod hook=PreSync"] {
        let plan =
            Fixture::parse(&format!("sync option=CreateNamespace=true\nnamespace prod missing\n{line}"))
                .plan();
        assert_eq!(plan.steps().count(), 1, "{line}");
    }
}

#[test]
fn options_are_exact_strings() {
    let parse = |option: &str| AppOptions::parse(&[crate::app::SyncOption(option.to_owned())]);
    for wrong in
        ["Prune=False", "Prune=false ", " Prune=false", "prune=false", "CreateNamespace=True", "Replace=yes"]
    {
        assert_eq!(parse(wrong), AppOptions::default(), "{wrong:?}");
    }
    assert_eq!(parse("Prune=false").prune, crate::desired::PruneOption::Never);
    assert!(!parse("ClientSideApplyMigration=false").migrate);
    assert!(!parse("Validate=false").validate);
}
