//! How objects are written.

#![expect(clippy::needless_raw_string_hashes, reason = "expect-test writes them this way")]

use expect_test::expect;

use super::fixture::{Fixture, check};

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
            Sync 0: skip batch/Job prod/g (in sync, completed and was removed by its TTL) -> -
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
    for (served, expected) in [
        ("example.com v2", "Version \"v2\" of example.com/Widget is installed"),
        ("example.com v2 v1beta1", "Versions \"v2\", \"v1beta1\" of example.com/Widget are installed"),
        ("wrong.group v1", "Version \"v1\" of wrong.group/Widget is installed"),
    ] {
        let plan = Fixture::parse(&format!("{facts}\nserved Widget {served}")).print();
        let start = "could not find version \"v1\" of example.com/Widget for requested resource prod/w. ";
        assert!(plan.contains(&format!("{start}{expected} on the destination cluster")), "{served}: {plan}");
    }
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
