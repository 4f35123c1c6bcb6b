//! What a set writes, where plumb is more careful than Argo CD. The rest is compared with recorded answers.

#![expect(clippy::expect_used, reason = "a test says what it expects")]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use expect_test::{Expect, expect};
use jiff::Timestamp;
use plumb_appset::reconcile::{Decision, Destinations, Rules, Situation, Write, conclude, decide};
use plumb_crd::ApplicationSet;
use plumb_crd::wire::Wire as _;
use serde_json::{Value, json};

const NOW: &str = "2026-11-18T12:00:00Z";

/// A set whose Applications are those in `names`.
struct Scene {
    set: Value,
    names: Vec<String>,
    existing: Vec<Value>,
    others: BTreeMap<String, BTreeSet<String>>,
    unreadable: BTreeSet<String>,
}

fn spec() -> Value {
    json!({
        "project": "default",
        "source": {"repoURL": "https://git.test/r", "path": "."},
        "destination": {"server": "https://kubernetes.default.svc", "namespace": "x"},
    })
}

fn live(name: &str) -> Value {
    json!({
        "metadata": {
            "name": name, "namespace": "argocd", "uid": name,
            "ownerReferences": [{
                "apiVersion": "argoproj.io/v1alpha1", "blockOwnerDeletion": true, "controller": true,
                "kind": "ApplicationSet", "name": "set", "uid": "u",
            }],
        },
        "spec": spec(),
    })
}

fn names(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("a{n}")).collect()
}

impl Scene {
    /// A set with this generator that generates the first `kept` of `before` Applications.
    fn new(generator: &str, before: usize, kept: usize) -> Self {
        let set = json!({
            "metadata": {"name": "set", "namespace": "argocd", "uid": "u"},
            "spec": {
                "generators": [{generator: {"repoURL": "https://git.test/r", "elements": []}}],
                "template": {"metadata": {"name": "x"}, "spec": spec()},
            },
        });
        let existing = names(before).iter().map(|name| live(name)).collect();
        Self { set, names: names(kept), existing, others: BTreeMap::new(), unreadable: BTreeSet::new() }
    }

    fn annotated(mut self, key: &str, value: &str) -> Self {
        self.set["metadata"]["annotations"][key] = json!(value);
        self
    }

    fn decide(&self) -> Decision {
        let set = ApplicationSet::from_json(&self.set).expect("a set");
        let generated: Vec<Value> = self
            .names
            .iter()
            .map(|name| json!({"metadata": {"name": name, "namespace": "argocd"}, "spec": spec()}))
            .collect();
        decide(&Situation {
            set: &set,
            generated: Ok(&generated),
            existing: &self.existing,
            unreadable: &self.unreadable,
            destinations: &Destinations::new([], true),
            project_exists: &|_| true,
            also_generated_by: &self.others,
            rules: &Rules::default(),
            git_every: Duration::from_mins(3),
            now: NOW.parse().expect("a time"),
        })
    }

    /// The same after the status of this decision was written.
    fn concluded(mut self) -> Self {
        let set = ApplicationSet::from_json(&self.set).expect("a set");
        let now: Timestamp = NOW.parse().expect("a time");
        self.set["status"] = conclude(&set, &self.decide(), None, &[], 5000, now).write();
        self
    }
}

/// How many are deleted, and what waits.
fn check(scene: &Scene, expected: &Expect) {
    let decision = scene.decide();
    let deleted = decision.writes.iter().filter(|write| matches!(write, Write::Delete { .. })).count();
    let held = decision.held.as_deref().map(|held| held.split(". ").next().unwrap_or_default());
    expected.assert_eq(&format!("{deleted} deleted; {}", held.unwrap_or("nothing waits")));
}

#[test]
fn an_application_that_cannot_be_read_is_left_alone() {
    let mut scene = Scene::new("list", 0, 2);
    scene.unreadable.insert("a0".to_owned());
    let decision = scene.decide();
    let names: Vec<&str> = decision.writes.iter().map(Write::name).collect();
    assert_eq!(names, ["a1"]);
    let failure = decision.failure.expect("the set says so");
    assert!(failure.message.starts_with("cannot write Application a0: "), "{}", failure.message);
    assert!(decision.retries);
}

#[test]
fn a_dry_run_writes_nothing_and_says_so() {
    let dry = |scene: &Scene| {
        let decision = scene.decide().into_dry_run();
        assert!(decision.writes.is_empty() && !decision.adds_finalizer);
        decision.failure.map(|failure| failure.message)
    };
    let would = dry(&Scene::new("list", 1, 3)).expect("two are missing");
    assert!(would.starts_with("cannot write 2 Applications: "), "{would}");
    assert_eq!(dry(&Scene::new("list", 2, 2)), None);
}

#[test]
fn many_deletions_wait() {
    check(&Scene::new("list", 10, 5), &expect!["5 deleted; nothing waits"]);
    check(
        &Scene::new("list", 10, 4),
        &expect![
            "0 deleted; 6 of 10 Applications are no longer generated, and this exceeds the deletion budget"
        ],
    );
    // More than 5, but less than half.
    check(&Scene::new("list", 20, 13), &expect!["7 deleted; nothing waits"]);
    // Few, but an empty list is what a user wrote.
    check(&Scene::new("list", 2, 0), &expect!["2 deleted; nothing waits"]);
}

#[test]
fn an_empty_answer_of_a_server_deletes_nothing() {
    check(
        &Scene::new("git", 2, 0),
        &expect![
            "0 deleted; 2 of 2 Applications are no longer generated, and the generators returned nothing"
        ],
    );
    check(&Scene::new("git", 2, 1), &expect!["1 deleted; nothing waits"]);
    check(
        &Scene::new("unheardOf", 1, 0),
        &expect![
            "0 deleted; 1 of 1 Applications are no longer generated, and the generators returned nothing"
        ],
    );
    // That the last pull request is closed is usual.
    check(&Scene::new("pullRequest", 2, 0), &expect!["2 deleted; nothing waits"]);
}

#[test]
fn a_set_can_have_its_own_budget() {
    let budget = |text: &str, kept: usize| Scene::new("git", 10, kept).annotated("plumb.appset.budget", text);
    check(&budget("off", 0), &expect!["10 deleted; nothing waits"]);
    check(&budget("3", 7), &expect!["3 deleted; nothing waits"]);
    check(
        &budget("3", 6),
        &expect![
            "0 deleted; 4 of 10 Applications are no longer generated, and this exceeds the deletion budget"
        ],
    );
    check(&budget("20%", 8), &expect!["2 deleted; nothing waits"]);
    check(
        &budget("20%", 7),
        &expect![
            "0 deleted; 3 of 10 Applications are no longer generated, and this exceeds the deletion budget"
        ],
    );
    // A typo changes nothing.
    check(
        &budget("offf", 2),
        &expect![
            "0 deleted; 8 of 10 Applications are no longer generated, and this exceeds the deletion budget"
        ],
    );
}

#[test]
fn an_approval_counts_for_what_waits_and_for_nothing_else() {
    let approval = "argocd.argoproj.io/deletion-approved";
    let waiting = || Scene::new("list", 10, 2).concluded();
    check(&waiting().annotated(approval, NOW), &expect!["8 deleted; nothing waits"]);
    let held = expect![
        "0 deleted; 8 of 10 Applications are no longer generated, and this exceeds the deletion budget"
    ];
    check(&waiting(), &held);
    check(&waiting().annotated(approval, "2026-11-18T11:59:59Z"), &held);
    // An approval in the future would count for whatever comes.
    check(&waiting().annotated(approval, "2027-01-01T00:00:00Z"), &held);
    // Nothing waited yet when it was given.
    check(&Scene::new("list", 10, 2).annotated(approval, NOW), &held);
    // Other Applications than those that were approved.
    let mut other = waiting().annotated(approval, NOW);
    other.names.pop();
    check(
        &other,
        &expect![
            "0 deleted; 9 of 10 Applications are no longer generated, and this exceeds the deletion budget"
        ],
    );
}

#[test]
fn a_name_that_two_sets_generate_is_told() {
    let mut scene = Scene::new("list", 1, 1);
    scene.others.insert("a0".to_owned(), BTreeSet::from(["other".to_owned()]));
    let told = scene.decide().shared_names.expect("it is told");
    assert!(told.starts_with("Application a0 is also generated by ApplicationSet other"), "{told}");
}

#[test]
fn an_application_that_is_being_deleted_gets_no_new_finalizers() {
    let mut scene = Scene::new("list", 1, 1);
    scene.existing[0]["metadata"]["deletionTimestamp"] = json!(NOW);
    scene.existing[0]["metadata"]["finalizers"] = json!(["post-delete-finalizer.argocd.argoproj.io"]);
    assert_eq!(scene.decide().writes, Vec::new());
}
