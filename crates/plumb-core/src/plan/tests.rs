#![expect(clippy::needless_raw_string_hashes, reason = "expect-test writes them this way")]

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::fixture::{Fixture, key, time};
use super::*;
use crate::app::AppId;
use crate::desired::{Complete, DesiredProblem, DesiredSet};
use crate::live::LiveSet;
use crate::object::Manifest;
use crate::tracking::{Claim, TRACKING_ANNOTATION, TrackingSettings, claim};

fn check(facts: &str, expected: &Expect) {
    expected.assert_eq(&Fixture::parse(facts).print());
}

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
            Sync 0: skip ConfigMap prod/old (left Git, ignored (requires pruning)) -> -
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
    assert_eq!(
        manifest.value().get("metadata"),
        Some(&json!({
            "name": "run-0123456-presync-1794744000",
            "namespace": "prod",
            "annotations": {"argocd.argoproj.io/hook": "PreSync", "plumb.dev/operation": "1794744000-0-presync"},
            "finalizers": ["argocd.argoproj.io/hook-finalizer"],
        }))
    );
}

#[test]
fn a_generated_name_stands_in_the_tracking_mark_too() {
    let hook = json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"generateName": "run-", "annotations": {TRACKING_ANNOTATION: "web:batch/Job:prod/"}},
    });
    let mark = Fixture::parse("").mark;
    let stamped = mark.stamp(&Manifest::new(hook).expect("an object"), Some("prod"), SyncPhase::PreSync);
    assert_eq!(claim(&stamped, "web", &TrackingSettings::default()), Claim::Ours, "{:?}", stamped.value());
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
            Sync -1: prune ConfigMap prod/c (left Git) -> deletion
            Sync 0: prune ConfigMap prod/b (left Git) -> deletion
            Sync 1: keep ConfigMap prod/keep (in sync) -> health
            Sync 5: prune ConfigMap prod/a (left Git) -> -
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
            Sync 3: prune ConfigMap prod/old (left Git) -> deletion
            Sync 3: prune ConfigMap prod/older (left Git) -> deletion
            PostSync 9: run hook batch/Job prod/after (hook, deleted BeforeHookCreation) -> completion
        "#]],
    );
    check(
        &format!("sync prune {facts}"),
        &expect![[r#"
            Sync 1: prune ConfigMap prod/old (left Git) -> deletion
            Sync 2: apply ConfigMap prod/new (missing) -> health
            Sync 3: prune ConfigMap prod/older (left Git) -> deletion
            PostSync 9: run hook batch/Job prod/after (hook, deleted BeforeHookCreation) -> completion
        "#]],
    );
    check(
        "sync prune option=PruneLast=true
         git ConfigMap new wave=-2
         live ConfigMap old",
        &expect![[r#"
            Sync -2: apply ConfigMap prod/new (missing) -> health
            Sync 1: prune ConfigMap prod/old (left Git) -> -
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
    let wanted = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "prod", "labels": {"team": "a"}}});
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

#[test]
fn what_left_git_is_pruned_only_if_asked_and_allowed() {
    check(
        "
        sync prune
        live ConfigMap plain
        live ConfigMap guarded options=Prune=false
        live ConfigMap confirm options=Prune=confirm
        live ConfigMap going terminating
        live ConfigMap moved also=shop
        live ConfigMap theirs owner=other:shop
        live ConfigMap nobodys owner=nobody
        live ConfigMap copy copied
        live ConfigMap held paused
        live Job hook hook=PostSync
        live ConfigMap kept helm-policy=keep
        ",
        &expect![[r#"
            Sync 0: prune ConfigMap prod/confirm (left Git, waits for confirmation: Prune=confirm) -> -
            Sync 0: skip ConfigMap prod/going (left Git, pruned) -> -
            Sync 0: skip ConfigMap prod/guarded (left Git, ignored (no prune)) -> -
            Sync 0: skip ConfigMap prod/held (left Git, not applied: paused until 13:00: migration) -> -
            Sync 0: prune ConfigMap prod/kept (left Git) -> -
            Sync 0: skip ConfigMap prod/moved (left Git, ignored (no prune): app shop renders it and takes it over) -> -
            Sync 0: prune ConfigMap prod/plain (left Git) -> -
        "#]],
    );
}

#[test]
fn an_objects_word_on_pruning_goes_before_the_apps() {
    check(
        "
        sync prune option=Prune=false
        live ConfigMap a
        live ConfigMap b options=Prune=true
        live ConfigMap c options=Prune=confirm
        approved 2026-11-15T12:00:00Z
        ",
        &expect![[r#"
            Sync 0: skip ConfigMap prod/a (left Git, ignored (no prune)) -> -
            Sync 0: prune ConfigMap prod/b (left Git) -> -
            Sync 0: prune ConfigMap prod/c (left Git, confirmed: Prune=confirm) -> -
        "#]],
    );
}

#[test]
fn an_approval_before_the_operation_does_not_count() {
    check(
        "
        sync prune
        live ConfigMap c options=Prune=confirm
        approved 2026-11-15T11:59:59Z
        ",
        &expect![[r#"
            Sync 0: prune ConfigMap prod/c (left Git, waits for confirmation: Prune=confirm) -> -
        "#]],
    );
}

#[test]
fn confirmation_is_not_waited_for_where_pruning_was_not_asked() {
    check(
        "live ConfigMap c options=Prune=confirm",
        &expect![[r#"
            Sync 0: skip ConfigMap prod/c (left Git, ignored (requires pruning)) -> -
        "#]],
    );
}

#[test]
fn nothing_is_pruned_without_proof() {
    check(
        "
        sync prune
        unproven
        live ConfigMap old
        ",
        &expect![[r#"
            Sync 0: skip ConfigMap prod/old (left Git, ignored (requires pruning): the cluster has not been listed completely yet) -> -
        "#]],
    );
    let live = LiveSet { complete: true, ..LiveSet::default() };
    let lost = DesiredProblem::NameMissing { kind: "ConfigMap".to_owned(), origin: None };
    let desired = DesiredSet { problems: vec![lost], ..DesiredSet::default() };
    let proof = DeletionProof::new(&Complete::rendered_without_error(desired), &live);
    assert_eq!(proof, Err(NoProof::ManifestLost));
    let incomplete = LiveSet::default();
    let proof = DeletionProof::new(&Complete::rendered_without_error(DesiredSet::default()), &incomplete);
    assert_eq!(proof, Err(NoProof::LiveIncomplete));
}

#[test]
fn a_proof_about_another_set_proves_nothing() {
    let mut fixture = Fixture::parse("sync prune\ngit ConfigMap a\nlive ConfigMap b");
    let other = Fixture::parse("git ConfigMap b");
    fixture.deletions = other.deletions;
    expect![[r#"
        Sync 0: skip ConfigMap prod/b (left Git, ignored (requires pruning): what Git asks is not fully known (the set changed while the plan was made)) -> -
        Sync 0: apply ConfigMap prod/a (missing) -> -
    "#]]
    .assert_eq(&fixture.print());
}

#[test]
fn an_object_that_became_a_hook_is_not_pruned() {
    let mut fixture = Fixture::parse("sync prune\ngit Job migrate hook=PreSync");
    let was_plain = Fixture::parse("live Job migrate");
    fixture.facts = was_plain.facts;
    expect![[r#"
        PreSync 0: run hook batch/Job prod/migrate (hook, deleted BeforeHookCreation) -> completion
    "#]]
    .assert_eq(&fixture.print());
}

fn many(n_old: usize, n_kept: usize) -> String {
    let old = (0..n_old).map(|n| format!("live ConfigMap old{n}"));
    let kept = (0..n_kept).map(|n| format!("both ConfigMap kept{n} wave=2"));
    old.chain(kept).collect::<Vec<_>>().join("\n")
}

#[test]
fn an_automated_sync_asks_before_it_deletes_most_of_an_app() {
    let held = |facts: &str| Fixture::parse(facts).print().matches("waits for confirmation").count();
    assert_eq!(held(&format!("sync prune automated\n{}", many(6, 5))), 6);
    assert_eq!(held(&format!("sync prune automated\n{}", many(6, 6))), 0, "half is not more than half");
    assert_eq!(held(&format!("sync prune automated\n{}", many(5, 0))), 0, "five are not more than five");
    assert_eq!(held(&format!("sync prune\n{}", many(6, 5))), 0, "a person asked for it");
    assert_eq!(held(&format!("budget off\nsync prune automated\n{}", many(6, 5))), 0);
    let held_back = Fixture::parse(&format!("sync prune automated\n{}", many(6, 1))).print();
    expect![[r#"
        Sync 2: keep ConfigMap prod/kept0 (in sync) -> health
        Sync 3: prune ConfigMap prod/old0 (left Git, waits for confirmation: 6 of 7 objects would be deleted at once) -> -
        Sync 3: prune ConfigMap prod/old1 (left Git, waits for confirmation: 6 of 7 objects would be deleted at once) -> -
        Sync 3: prune ConfigMap prod/old2 (left Git, waits for confirmation: 6 of 7 objects would be deleted at once) -> -
        Sync 3: prune ConfigMap prod/old3 (left Git, waits for confirmation: 6 of 7 objects would be deleted at once) -> -
        Sync 3: prune ConfigMap prod/old4 (left Git, waits for confirmation: 6 of 7 objects would be deleted at once) -> -
        Sync 3: prune ConfigMap prod/old5 (left Git, waits for confirmation: 6 of 7 objects would be deleted at once) -> -
    "#]]
    .assert_eq(&held_back);
}

#[test]
fn an_automated_sync_asks_before_it_deletes_data() {
    let facts = "
        live PersistentVolumeClaim data
        live Namespace old data=claims
        live CustomResourceDefinition widgets.example.com data=instances
        live ConfigMap plain
        both ConfigMap keep";
    check(
        &format!("sync prune automated {facts}"),
        &expect![[r#"
            Sync 0: prune ConfigMap prod/plain (left Git) -> deletion
            Sync 0: keep ConfigMap prod/keep (in sync) -> health
            Sync 1: prune Namespace old (left Git, waits for confirmation: it holds data (claims)) -> -
            Sync 1: prune PersistentVolumeClaim prod/data (left Git, waits for confirmation: it holds data (a volume)) -> -
            Sync 1: prune apiextensions.k8s.io/CustomResourceDefinition widgets.example.com (left Git, waits for confirmation: it holds data (instances)) -> -
        "#]],
    );
    assert!(!Fixture::parse(&format!("sync prune {facts}")).print().contains("waits for confirmation"));
}

#[test]
fn another_apps_object_is_left_alone_until_that_app_lets_go() {
    check(
        "
        drift ConfigMap theirs owner=other:shop
        both ConfigMap twin owner=other:shop
        drift ConfigMap moved owner=gone:shop
        both ConfigMap moved-same owner=gone:shop
        drift ConfigMap found owner=nobody
        ",
        &expect![[r#"
            Sync 0: apply ConfigMap prod/found (exists, adopted) -> -
            Sync 0: apply ConfigMap prod/moved (moves to this app, from app shop) -> -
            Sync 0: apply ConfigMap prod/moved-same (moves to this app, from app shop) -> -
            Sync 0: skip ConfigMap prod/theirs (shared, not applied: app shop owns it and renders it too) -> -
            Sync 0: skip ConfigMap prod/twin (shared, not applied: app shop owns it and renders it too) -> -
        "#]],
    );
}

#[test]
fn fail_on_shared_resource_refuses_the_whole_sync() {
    check(
        "
        sync option=FailOnSharedResource=true
        git ConfigMap mine
        drift ConfigMap theirs owner=other:shop
        ",
        &expect![[r#"
            refused: Shared resource found: ConfigMap prod/theirs is part of application shop too
              Sync ConfigMap prod/theirs: ConfigMap prod/theirs is part of application shop too
        "#]],
    );
}

#[test]
fn how_an_object_is_written() {
    check(
        "
        drift ConfigMap a
        drift ConfigMap b options=Replace=true
        drift ConfigMap c options=Force=true
        drift ConfigMap d options=Force=true,Replace=true
        git ConfigMap e options=Force=true,Replace=true
        drift Namespace f options=Force=true,Replace=true
        drift Namespace g options=Force=true
        ",
        &expect![[r#"
            Sync 0: replace Namespace f (out of sync) -> -
            Sync 0: apply Namespace g (out of sync) -> -
            Sync 0: apply ConfigMap prod/a (out of sync) -> -
            Sync 0: replace ConfigMap prod/b (out of sync) -> -
            Sync 0: apply or recreate ConfigMap prod/c (out of sync) -> -
            Sync 0: recreate ConfigMap prod/d (out of sync) -> -
            Sync 0: create ConfigMap prod/e (missing) -> -
        "#]],
    );
    check(
        "
        sync force option=Replace=true
        drift ConfigMap a
        ",
        &expect![[r#"
            Sync 0: recreate ConfigMap prod/a (out of sync) -> -
        "#]],
    );
}

#[test]
fn what_is_in_sync_is_not_written_unless_an_option_asks() {
    check(
        "
        both ConfigMap a
        both ConfigMap b options=Replace=true
        both ConfigMap c options=Force=true
        both Job d options=Force=true,Replace=true created=2026-11-15T11:00:00Z
        both Job e options=Force=true,Replace=true created=2026-11-15T12:00:01Z
        both ConfigMap f terminating
        git Job g collected
        git Job h collected options=Replace=true
        ",
        &expect![[r#"
            Sync 0: keep ConfigMap prod/a (in sync) -> -
            Sync 0: replace ConfigMap prod/b (written on each sync) -> -
            Sync 0: keep ConfigMap prod/c (in sync) -> -
            Sync 0: apply ConfigMap prod/f (is being deleted) -> -
            Sync 0: recreate batch/Job prod/d (written on each sync) -> -
            Sync 0: keep batch/Job prod/e (in sync) -> -
            Sync 0: skip batch/Job prod/g (in sync, ran and was collected as it asked) -> -
            Sync 0: create batch/Job prod/h (missing) -> -
        "#]],
    );
    check(
        "
        sync option=ApplyOutOfSyncOnly=true
        both ConfigMap a
        drift ConfigMap b
        git Job hook hook=PreSync
        ",
        &expect![[r#"
            PreSync 0: run hook batch/Job prod/hook (hook, deleted BeforeHookCreation) -> completion
            Sync 0: apply ConfigMap prod/b (out of sync) -> -
        "#]],
    );
}

#[test]
fn one_invalid_object_stops_everything() {
    let facts = "
        git ConfigMap a
        git Widget w
        unserved Widget";
    check(
        facts,
        &expect![[r#"
            refused: one or more synchronization tasks are not valid, reason: The Kubernetes API could not find example.com/Widget for requested resource prod/w. Make sure the "Widget" CRD is installed on the destination cluster
              Sync example.com/Widget prod/w: The Kubernetes API could not find example.com/Widget for requested resource prod/w. Make sure the "Widget" CRD is installed on the destination cluster.
        "#]],
    );
    for lenient in [
        "sync option=SkipDryRunOnMissingResource=true",
        "git CustomResourceDefinition widgets.example.com defines=example.com/Widget",
    ] {
        assert!(Fixture::parse(&format!("{lenient}{facts}")).build().is_ok(), "{lenient}");
    }
    let on_object = "git Widget w options=SkipDryRunOnMissingResource=true\nunserved Widget";
    assert!(Fixture::parse(on_object).build().is_ok());
    check(
        "
        git ConfigMap a
        denied ConfigMap
        git Secret b
        ",
        &expect![[r#"
            refused: one or more synchronization tasks are not valid, reason: ConfigMap is not permitted in project p
              Sync ConfigMap prod/a: ConfigMap is not permitted in project p
        "#]],
    );
}

#[test]
fn a_step_that_needs_an_earlier_one_cannot_be_tried_alone() {
    let plan = Fixture::parse(
        "sync option=CreateNamespace=true
         namespace prod missing
         git ConfigMap inside
         git ConfigMap outside ns=other
         git CustomResourceDefinition widgets.example.com defines=example.com/Widget
         git Widget w ns=other
         unserved Widget",
    )
    .plan();
    let untried: Vec<String> =
        plan.steps().filter(|step| !step.can_be_tried).map(|step| step.id.key.to_string()).collect();
    assert_eq!(untried, ["ConfigMap prod/inside", "example.com/Widget other/w"]);
}

#[test]
fn a_serialised_plan_holds_no_manifest() {
    let plan = Fixture::parse("git Secret s hook=PreSync\ngit ConfigMap c").plan();
    let text = serde_json::to_string(&*plan).expect("a plan is serialisable") + &format!("{plan:?}");
    assert!(text.contains("\"manifest\":\"s\""), "{text}");
    assert!(!text.contains("finalizers"), "{text}");
}

#[test]
fn a_tombstone_brings_back_what_the_server_does_not_set() {
    let live = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": "a", "namespace": "prod", "uid": "1", "resourceVersion": "2", "generation": 3,
            "creationTimestamp": "2026-11-15T12:00:00Z", "deletionTimestamp": "2026-11-15T12:00:00Z",
            "managedFields": [], "labels": {"a": "b"}, "annotations": {"c": "d"},
            "ownerReferences": [{"kind": "Widget"}],
        },
        "data": {"k": "v"}, "status": {"x": 1},
    });
    let tombstone = tombstone(live);
    let wanted = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": "a", "namespace": "prod", "labels": {"a": "b"}, "annotations": {"c": "d"},
            "ownerReferences": [{"kind": "Widget"}],
        },
        "data": {"k": "v"},
    });
    assert_eq!(tombstone.restorable().value(), &wanted);
    assert_eq!(tombstone.lost(), None);
    assert_eq!(tombstone.restorable_elsewhere(), None);
    let claim = Tombstone { key: key("PersistentVolumeClaim", "a"), ..tombstone };
    assert!(claim.lost().is_some());
}

/// A tombstone of this live object.
fn tombstone(live: Value) -> Tombstone {
    let live = Manifest::new(live).expect("an object");
    Tombstone {
        app: AppId { namespace: "argocd".to_owned(), name: "shop".to_owned() },
        server: "https://kubernetes.default.svc".to_owned(),
        key: live.key().expect("a name"),
        live: std::sync::Arc::new(live),
        deleted_at: time(fixture::STARTED),
        reason: TombstoneReason::Pruned,
        revision: None,
    }
}

#[test]
fn what_the_cluster_made_of_an_object_does_not_keep_it_from_coming_back() {
    // A Job's selector is made from its uid: another one's is refused.
    let job = tombstone(json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": "once", "labels": {"team": "a", "controller-uid": "1"}},
        "spec": {
            "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "1"}},
            "template": {"metadata": {"labels": {
                "app": "once", "job-name": "once", "batch.kubernetes.io/controller-uid": "1",
                "batch.kubernetes.io/job-name": "once", "controller-uid": "1",
            }}},
        },
    }));
    let restorable = job.restorable();
    assert_eq!(restorable.value()["metadata"]["labels"], json!({"team": "a"}));
    assert_eq!(restorable.value()["spec"], json!({"template": {"metadata": {"labels": {"app": "once"}}}}));
    let mut by_hand = job.live.value().clone();
    by_hand["spec"]["manualSelector"] = json!(true);
    assert!(tombstone(by_hand.clone()).restorable().value()["spec"]["selector"].is_object());

    let claim = tombstone(json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "annotations": {"pv.kubernetes.io/bind-completed": "yes", "a": "b"}},
        "spec": {"volumeName": "pv-1", "accessModes": ["ReadWriteOnce"]},
    }));
    assert_eq!(claim.volume(), Some("pv-1"));
    assert_eq!(claim.restorable().value()["metadata"]["annotations"], json!({"a": "b"}));
    assert_eq!(claim.restorable().value()["spec"]["volumeName"], "pv-1");
    let elsewhere = claim.restorable_elsewhere().expect("another volume will do");
    assert_eq!(elsewhere.value()["spec"], json!({"accessModes": ["ReadWriteOnce"]}));

    let service = |address: &str| {
        tombstone(json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "front"},
            "spec": {"type": "LoadBalancer", "clusterIP": address, "clusterIPs": [address],
                "ports": [{"port": 80, "nodePort": 30_000}]},
        }))
    };
    let elsewhere = service("10.0.0.7").restorable_elsewhere().expect("another address will do");
    assert_eq!(elsewhere.value()["spec"], json!({"type": "LoadBalancer", "ports": [{"port": 80}]}));
    assert_eq!(service("None").restorable_elsewhere(), None);
    assert!(service("10.0.0.7").lost().is_some_and(|lost| lost.contains("address")));
}
