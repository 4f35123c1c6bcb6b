//! What is pruned, and what prevents it.

#![expect(clippy::needless_raw_string_hashes, reason = "expect-test writes them this way")]

use expect_test::expect;

use super::fixture::{Fixture, check};
use crate::desired::{DesiredProblem, DesiredSet};
use crate::live::LiveSet;
use crate::plan::*;

#[test]
fn an_object_removed_from_git_is_pruned_only_if_requested_and_allowed() {
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
        live ConfigMap held paused
        live Job hook hook=PostSync
        live ConfigMap kept helm-policy=keep
        ",
        &expect![[r#"
            Sync 0: prune ConfigMap prod/confirm (removed from Git, waits for confirmation: Prune=confirm) -> -
            Sync 0: skip ConfigMap prod/going (removed from Git, pruned) -> -
            Sync 0: skip ConfigMap prod/guarded (removed from Git, ignored (no prune)) -> -
            Sync 0: skip ConfigMap prod/held (removed from Git, not applied: paused until 13:00: migration) -> -
            Sync 0: prune ConfigMap prod/kept (removed from Git) -> -
            Sync 0: skip ConfigMap prod/moved (removed from Git, ignored (no prune): app shop renders it and takes ownership) -> -
            Sync 0: prune ConfigMap prod/plain (removed from Git) -> -
        "#]],
    );
}

/// The namespace left Git, and an option of the app or of the operation still asks for it: deleting it would delete all that
/// is in it, and the next sync would make it again, empty.
#[test]
fn the_destination_namespace_is_not_pruned_while_an_option_asks_for_it() {
    let kept = "skip Namespace prod (removed from Git, ignored (no prune): the app's options ask for its destination namespace)";
    let written = "apply Namespace prod (namespace metadata)";
    let pruned = "prune Namespace prod (removed from Git)";
    for (sync, namespace, expected) in [
        ("sync prune option=CreateNamespace=true", "namespace prod", kept),
        ("sync prune automated option=CreateNamespace=true", "namespace prod asked", kept),
        // The operation does not repeat the options of the spec.
        ("sync prune", "namespace prod asked", kept),
        ("sync prune", "namespace prod label=team:a", kept),
        // It is written in this sync.
        ("sync prune option=CreateNamespace=true", "namespace prod asked label=team:a", written),
        (
            "sync prune option=CreateNamespace=true option=PruneLast=true",
            "namespace prod asked label=team:a",
            written,
        ),
        // No option asks for it, or for this one.
        ("sync prune", "namespace prod", pruned),
        ("sync prune option=CreateNamespace=true", "namespace other asked label=team:a", pruned),
    ] {
        let plan =
            Fixture::parse(&format!("{sync}\n{namespace}\nlive Namespace prod\nboth ConfigMap a")).print();
        let rows: Vec<&str> = plan.lines().filter(|row| row.contains("Namespace prod")).collect();
        assert!(rows.len() == 1 && rows[0].contains(expected), "{sync}, {namespace}: {plan}");
    }
}

#[test]
fn a_namespace_with_objects_of_other_apps_goes_only_if_a_user_confirms_it() {
    let facts = "
        live Namespace team others=3_objects_of_shop
        live Namespace argocd never-deleted
        both ConfigMap a";
    for sync in ["sync prune", "sync prune automated", "budget off\nsync prune"] {
        check(
            &format!("{sync} {facts}"),
            &expect![[r#"
                Sync 0: skip Namespace argocd (removed from Git, ignored (no prune): plumb itself runs in the namespace) -> -
                Sync 0: keep ConfigMap prod/a (in sync) -> health
                Sync 1: prune Namespace team (removed from Git, waits for confirmation: other apps would lose what is in it (3_objects_of_shop)) -> -
            "#]],
        );
    }
}

#[test]
fn a_user_decides_about_an_object_in_the_status_of_an_app_that_cannot_be_rendered() {
    let facts = |sync: &str| format!("{sync}\nboth ConfigMap other\nlive ConfigMap shared listed=shop");
    check(
        &facts("sync prune automated"),
        &expect![[r#"
            Sync 0: keep ConfigMap prod/other (in sync) -> health
            Sync 1: prune ConfigMap prod/shared (removed from Git, waits for confirmation: the status of app shop lists it, and that app cannot be rendered) -> -
        "#]],
    );
    check(
        &facts("sync prune"),
        &expect![[r#"
            Sync 0: prune ConfigMap prod/shared (removed from Git) -> -
            Sync 0: keep ConfigMap prod/other (in sync) -> -
        "#]],
    );
}

#[test]
fn prune_options_of_an_object_override_those_of_the_app() {
    check(
        "
        sync prune option=Prune=false
        live ConfigMap a
        live ConfigMap b options=Prune=true
        live ConfigMap c options=Prune=confirm
        approved 2026-11-15T12:00:00Z
        ",
        &expect![[r#"
            Sync 0: skip ConfigMap prod/a (removed from Git, ignored (no prune)) -> -
            Sync 0: prune ConfigMap prod/b (removed from Git) -> -
            Sync 0: prune ConfigMap prod/c (removed from Git, confirmed: Prune=confirm) -> -
        "#]],
    );
}

#[test]
fn a_tracking_mark_alone_is_no_right_to_delete() {
    for (request, n_waiting) in [("sync prune", 0), ("sync prune automated", 2)] {
        let plan = Fixture::parse(&format!(
            "{request}\nlive ConfigMap forged provenance=never-written\nlive ConfigMap unlisted provenance=not-recorded\nlive ConfigMap ours\nboth ConfigMap a"
        ))
        .print();
        let waits = plan.lines().filter(|line| line.contains("waits for confirmation")).count();
        assert_eq!(waits, n_waiting, "{request}: {plan}");
        assert!(plan.contains("prune ConfigMap prod/ours (removed from Git) ->"), "{request}: {plan}");
        assert_eq!(plan.contains("but plumb never wrote it"), n_waiting > 0, "{request}: {plan}");
    }
}

#[test]
fn an_approval_before_the_operation_does_not_count() {
    check(
        "
        sync prune
        live ConfigMap c options=Prune=confirm
        approved 2026-11-15T11:59:58Z
        ",
        &expect![[r#"
            Sync 0: prune ConfigMap prod/c (removed from Git, waits for confirmation: Prune=confirm) -> -
        "#]],
    );
}

#[test]
fn confirmation_is_not_waited_for_where_pruning_was_not_asked() {
    check(
        "live ConfigMap c options=Prune=confirm",
        &expect![[r#"
            Sync 0: skip ConfigMap prod/c (removed from Git, ignored (requires pruning)) -> -
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
            Sync 0: skip ConfigMap prod/old (removed from Git, ignored (requires pruning): the cluster has not been listed completely yet) -> -
        "#]],
    );
    // A manifest without identity could be any object: such a set is not complete, and so proves nothing.
    let lost = DesiredProblem::NameMissing { kind: "ConfigMap".to_owned(), origin: None };
    let desired = DesiredSet { problems: vec![lost], ..DesiredSet::default() };
    assert!(desired.complete().is_err());
    let incomplete = LiveSet::default();
    let proof = DeletionProof::new(&DesiredSet::default().complete().unwrap(), &incomplete);
    assert_eq!(proof, Err(NoProof::LiveIncomplete));
}

#[test]
fn a_proof_about_another_set_proves_nothing() {
    let mut fixture = Fixture::parse("sync prune\ngit ConfigMap a\nlive ConfigMap b");
    let other = Fixture::parse("git ConfigMap b");
    fixture.deletions = other.deletions;
    expect![[r#"
        Sync 0: skip ConfigMap prod/b (removed from Git, ignored (requires pruning): the desired state is not fully known (the desired set changed while planning)) -> -
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
    assert_eq!(held(&format!("sync prune\n{}", many(6, 5))), 0, "a user requested it");
    assert_eq!(held(&format!("budget off\nsync prune automated\n{}", many(6, 5))), 0);
    let held_back = Fixture::parse(&format!("sync prune automated\n{}", many(6, 1))).print();
    expect![[r#"
        Sync 2: keep ConfigMap prod/kept0 (in sync) -> health
        Sync 3: prune ConfigMap prod/old0 (removed from Git, waits for confirmation: 6 of 7 objects would be deleted at once) -> -
        Sync 3: prune ConfigMap prod/old1 (removed from Git, waits for confirmation: 6 of 7 objects would be deleted at once) -> -
        Sync 3: prune ConfigMap prod/old2 (removed from Git, waits for confirmation: 6 of 7 objects would be deleted at once) -> -
        Sync 3: prune ConfigMap prod/old3 (removed from Git, waits for confirmation: 6 of 7 objects would be deleted at once) -> -
        Sync 3: prune ConfigMap prod/old4 (removed from Git, waits for confirmation: 6 of 7 objects would be deleted at once) -> -
        Sync 3: prune ConfigMap prod/old5 (removed from Git, waits for confirmation: 6 of 7 objects would be deleted at once) -> -
    "#]]
    .assert_eq(&held_back);
}

/// `old` leave Git. Of the others, `before` were there at the last sync and `new` come with the commit that removes the old ones.
#[test]
fn objects_of_the_same_change_do_not_make_the_share_smaller() {
    let row = |kind: &str, name: &str, n: usize, at: &str| -> String {
        let rows = (0..n).map(|n| format!("{kind} ConfigMap {name}{n} created=2026-11-15T{at}Z\n"));
        rows.collect::<Vec<_>>().concat()
    };
    let (first, second, synced, later) = ("10:00:00", "10:00:04", "10:00:05", "11:00:00");
    let synced_then = format!("synced 2026-11-15T{synced}Z\n");
    for (facts, n_waiting) in [
        // All names change. The first plan: the new objects do not exist yet.
        (synced_then.clone() + &row("live", "old", 10, first), 10),
        // They exist: the next commit, a retry or a restart plans again.
        (synced_then.clone() + &row("live", "old", 10, first) + &row("both", "new", 10, later), 10),
        (synced_then.clone() + &row("live", "old", 10, first) + &row("drift", "new", 90, later), 10),
        // The same before any sync has succeeded.
        (row("live", "old", 10, first) + &row("both", "new", 10, later), 10),
        // Confirmed.
        (
            "approved 2026-11-15T12:00:00Z\n".to_owned()
                + &synced_then
                + &row("live", "old", 10, first)
                + &row("both", "new", 10, later),
            0,
        ),
        // Most are asked for again.
        (
            synced_then.clone()
                + &row("live", "old", 5, first)
                + &row("both", "back", 5, first)
                + &row("both", "new", 10, later),
            0,
        ),
        // Objects that were there at the last sync count, whenever they came.
        (synced_then.clone() + &row("live", "old", 10, first) + &row("both", "kept", 10, second), 0),
        (synced_then.clone() + &row("live", "old", 10, first) + &row("both", "kept", 9, second), 10),
        // The next commit came in the same second.
        (synced_then.clone() + &row("live", "old", 10, first) + &row("both", "new", 10, synced), 10),
        // So do those that are older than an object that goes, although no sync has succeeded since.
        (synced_then + &row("live", "old", 10, later) + &row("both", "kept", 10, later), 0),
        (row("live", "old", 10, first) + &row("both", "kept", 10, first), 0),
    ] {
        let plan = Fixture::parse(&format!("sync prune automated\n{facts}")).print();
        assert_eq!(plan.matches("waits for confirmation").count(), n_waiting, "{facts}{plan}");
    }
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
            Sync 0: prune ConfigMap prod/plain (removed from Git) -> deletion
            Sync 0: keep ConfigMap prod/keep (in sync) -> health
            Sync 1: prune Namespace old (removed from Git, waits for confirmation: it holds data (claims)) -> -
            Sync 1: prune PersistentVolumeClaim prod/data (removed from Git, waits for confirmation: it holds data (a volume)) -> -
            Sync 1: prune apiextensions.k8s.io/CustomResourceDefinition widgets.example.com (removed from Git, waits for confirmation: it holds data (instances)) -> -
        "#]],
    );
    assert!(!Fixture::parse(&format!("sync prune {facts}")).print().contains("waits for confirmation"));
}

#[test]
fn another_apps_object_is_kept_until_that_app_stops_rendering_it() {
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
fn a_prune_after_the_history_was_replaced_asks_whatever_the_count() {
    let facts = "live ConfigMap old\nboth ConfigMap a\nboth ConfigMap b\nboth ConfigMap c";
    for (request, history, expected) in [
        ("sync prune automated", "", "(removed from Git) ->"),
        (
            "sync prune automated",
            "history gone",
            "waits for confirmation: commit 1111111, which was synced last, is gone from https://h/repo",
        ),
        (
            "sync prune automated",
            "history replaced",
            "waits for confirmation: commit 2222222 of https://h/repo has no ancestor in common with 1111111",
        ),
        ("sync prune automated", "history gone\napproved 2026-11-15T12:00:00Z", "confirmed: commit 1111111"),
        ("sync prune automated", "history gone\nbudget off", "(removed from Git) ->"),
        // A user who asks for a prune has seen the list.
        ("sync prune", "history gone", "(removed from Git) ->"),
    ] {
        let plan = Fixture::parse(&format!("{request}\n{facts}\n{history}")).print();
        assert!(plan.contains(expected), "{request} {history}: {plan}");
    }
}

#[test]
fn a_replaced_history_holds_prunes_alone() {
    let plan =
        Fixture::parse("sync prune automated\nlive ConfigMap old\ngit ConfigMap new\nhistory gone").print();
    let waiting: Vec<&str> = plan.lines().filter(|line| line.contains("waits for confirmation")).collect();
    assert_eq!(waiting.len(), 1, "{plan}");
    assert!(plan.lines().next().is_some_and(|line| line.contains("ConfigMap prod/new")), "{plan}");
}
