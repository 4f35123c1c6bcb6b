//! What a set writes, where plumb is more careful than Argo CD. The rest is compared with recorded answers.

#![expect(clippy::expect_used, reason = "a test says what it expects")]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use expect_test::{Expect, expect};
use jiff::Timestamp;
use plumb_appset::reconcile::{
    Before, Decision, Destinations, Failure, Rules, Situation, Write, conclude, decide,
};
use plumb_appset::{Generated, GenerationError, Reason};
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
    silent: BTreeSet<usize>,
    before: Before,
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
        let asks = !matches!(generator, "list" | "pullRequest");
        Self {
            set,
            names: names(kept),
            existing,
            others: BTreeMap::new(),
            unreadable: BTreeSet::new(),
            silent: (asks && kept == 0).then_some(0).into_iter().collect(),
            before: Before::default(),
        }
    }

    /// The same with this many Applications that the set has under new names: all of them generated, some of them created.
    fn renamed(mut self, new: usize, created: usize) -> Self {
        let new: Vec<String> = (0..new).map(|n| format!("b{n}")).collect();
        self.existing.extend(new.iter().take(created).map(|name| live(name)));
        self.names.extend(new);
        self
    }

    fn annotated(mut self, key: &str, value: &str) -> Self {
        self.set["metadata"]["annotations"][key] = json!(value);
        self
    }

    fn set(&self) -> ApplicationSet {
        ApplicationSet::from_json(&self.set).expect("a set")
    }

    fn generated(&self) -> Generated {
        let application =
            |name: &String| json!({"metadata": {"name": name, "namespace": "argocd"}, "spec": spec()});
        Generated {
            applications: self.names.iter().map(application).collect(),
            silent: self.silent.clone(),
            ..Generated::default()
        }
    }

    fn decide(&self) -> Decision {
        self.decide_about(Ok(&self.generated()))
    }

    fn decide_about(&self, generated: Result<&Generated, &GenerationError>) -> Decision {
        decide(&Situation {
            set: &self.set(),
            generated,
            existing: &self.existing,
            unreadable: &self.unreadable,
            destinations: &Destinations::new([], true),
            project_exists: &|_| true,
            also_generated_by: &self.others,
            rules: &Rules::default(),
            before: &self.before,
            git_every: Duration::from_mins(3),
            now: now(),
        })
    }

    /// The same after the status of this decision was written.
    fn concluded(self) -> Self {
        let decision = self.decide();
        self.concluded_as(&decision, None)
    }

    fn concluded_as(mut self, decision: &Decision, failure: Option<&Failure>) -> Self {
        self.set["status"] = conclude(&self.set(), decision, failure, &[], 5000, now()).write();
        self
    }

    fn waits(&self) -> bool {
        let mut conditions = self.set["status"]["conditions"].as_array().into_iter().flatten();
        conditions.any(|condition| condition["type"] == "DeletionsWaiting" && condition["status"] == "True")
    }
}

fn now() -> Timestamp {
    NOW.parse().expect("a time")
}

/// How many are deleted, and what waits.
fn shown(scene: &Scene) -> String {
    let decision = scene.decide();
    let deleted = decision.writes.iter().filter(|write| matches!(write, Write::Delete { .. })).count();
    let held = decision.held.as_deref().map(|held| held.split(". ").next().unwrap_or_default());
    format!("{deleted} deleted; {}", held.unwrap_or("nothing waits"))
}

fn check(scene: &Scene, expected: &Expect) {
    expected.assert_eq(&shown(scene));
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
        &expect!["0 deleted; 6 Applications are no longer generated, and this exceeds the deletion budget"],
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
        &expect!["0 deleted; 2 Applications are no longer generated, and a generator returned nothing"],
    );
    check(&Scene::new("git", 2, 1), &expect!["1 deleted; nothing waits"]);
    check(
        &Scene::new("unheardOf", 1, 0),
        &expect!["0 deleted; 1 Application is no longer generated, and a generator returned nothing"],
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
        &expect!["0 deleted; 4 Applications are no longer generated, and this exceeds the deletion budget"],
    );
    check(&budget("20%", 8), &expect!["2 deleted; nothing waits"]);
    check(
        &budget("20%", 7),
        &expect!["0 deleted; 3 Applications are no longer generated, and this exceeds the deletion budget"],
    );
    // A typo changes nothing.
    check(
        &budget("offf", 2),
        &expect!["0 deleted; 8 Applications are no longer generated, and this exceeds the deletion budget"],
    );
}

#[test]
fn an_approval_counts_for_what_waits_and_for_nothing_else() {
    let approval = "argocd.argoproj.io/deletion-approved";
    let waiting = || Scene::new("list", 10, 2).concluded();
    check(&waiting().annotated(approval, NOW), &expect!["8 deleted; nothing waits"]);
    let held =
        expect!["0 deleted; 8 Applications are no longer generated, and this exceeds the deletion budget"];
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
        &expect!["0 deleted; 9 Applications are no longer generated, and this exceeds the deletion budget"],
    );
}

const TEN_WAIT: &str =
    "0 deleted; 10 Applications are no longer generated, and this exceeds the deletion budget";

/// All names change. The set creates the new Applications, and the old ones are half of all from then on.
#[test]
fn what_waits_still_waits_when_the_new_names_exist() {
    let approval = "argocd.argoproj.io/deletion-approved";
    let first = || Scene::new("list", 10, 0).renamed(10, 0);
    assert_eq!(shown(&first()), TEN_WAIT);
    assert!(first().decide().must_say_first(&first().set()));
    // The next run, whenever it comes; also after a restart, and after a run of which nothing but the status was written.
    let next = |created: usize| {
        let mut scene = first().concluded();
        scene.existing.extend((0..created).map(|n| live(&format!("b{n}"))));
        scene
    };
    for created in [0, 3, 10] {
        assert_eq!(shown(&next(created)), TEN_WAIT, "{created} created");
        assert!(!next(created).decide().must_say_first(&next(created).set()));
        let again = next(created).concluded();
        assert_eq!(shown(&again), TEN_WAIT, "{created} created, in the run after");
        // The approval counts, although there are more Applications than when it was given.
        assert_eq!(shown(&again.annotated(approval, NOW)), "10 deleted; nothing waits");
    }
    // The set has grown since.
    let mut grown = next(10);
    let more: Vec<String> = (10..99).map(|n| format!("b{n}")).collect();
    grown.existing.extend(more.iter().map(|name| live(name)));
    grown.names.extend(more);
    assert_eq!(shown(&grown), TEN_WAIT);
    // Some are asked for again, and the rest is within the number that needs no user.
    let mut back = next(10);
    back.names.extend((0..5).map(|n| format!("a{n}")));
    assert_eq!(shown(&back), "5 deleted; nothing waits");
    // All are asked for again.
    back.names.extend((5..10).map(|n| format!("a{n}")));
    assert_eq!(shown(&back), "0 deleted; nothing waits");
    assert!(back.waits() && !back.concluded().waits());
}

/// The watch may report the new Applications before the status that the run wrote.
#[test]
fn a_status_that_is_not_seen_yet_counts_for_the_next_run() {
    let first = Scene::new("list", 10, 0).renamed(10, 0);
    let mut next = Scene::new("list", 10, 0).renamed(10, 10);
    next.before = Before::default().then(Some(&first.generated()), &first.decide(), true);
    assert_eq!(shown(&next), TEN_WAIT);
    // A set that had 20 Applications, and of which no run created half.
    next.before = Before::default();
    assert_eq!(shown(&next), "10 deleted; nothing waits");
}

#[test]
fn what_waits_still_waits_after_a_failure() {
    // The new names are created, and another write fails.
    let mut failing = Scene::new("list", 10, 0).renamed(10, 0);
    failing.unreadable.insert("b0".to_owned());
    assert_eq!(shown(&failing), TEN_WAIT);
    // The generators fail in the run after it.
    let waiting = Scene::new("list", 10, 0).renamed(10, 10);
    let waiting = Scene { before: Before { waits: Some(true), silent: None }, ..waiting }.concluded();
    let error = GenerationError { reason: Reason::Generation, message: "an outage".to_owned() };
    let failed = waiting.decide_about(Err(&error));
    assert_eq!(waiting.before.then(None, &failed, true), waiting.before);
    let mut waiting = waiting.concluded_as(&failed, None);
    waiting.before = Before::default();
    assert!(waiting.waits());
    assert_eq!(shown(&waiting), TEN_WAIT);
    // A write fails after the approval, so the deletions are not carried out: they need no second approval.
    let approved = waiting.annotated("argocd.argoproj.io/deletion-approved", NOW);
    let decision = approved.decide();
    let failure = Failure { reason: "CreateApplicationError", message: "no".to_owned() };
    let generated = approved.generated();
    assert_eq!(approved.before.then(Some(&generated), &decision, false).waits, Some(true));
    assert_eq!(approved.before.then(Some(&generated), &decision, true).waits, Some(false));
    let failed = approved.concluded_as(&decision, Some(&failure));
    assert_eq!(shown(&failed), "10 deleted; nothing waits");
    let decision = failed.decide();
    assert!(!failed.concluded_as(&decision, None).waits());
}

/// A set with several generators, of which the second one asks a server.
#[test]
fn one_generator_that_falls_silent_deletes_nothing() {
    let silent = |before: Option<&[usize]>| {
        let mut scene = Scene::new("list", 6, 2);
        scene.silent = BTreeSet::from([1]);
        scene.before.silent = before.map(|before| before.iter().copied().collect());
        scene
    };
    let held = "0 deleted; 4 Applications are no longer generated, and a generator returned nothing";
    assert_eq!(shown(&silent(Some(&[]))), held);
    assert_eq!(shown(&silent(Some(&[0]))), held, "another one was silent");
    assert_eq!(shown(&silent(None)), held, "after a start it is not known since when");
    // It goes on: the deletions wait already.
    let mut next = silent(Some(&[])).concluded();
    next.before = next.before.then(Some(&next.generated()), &next.decide(), true);
    assert_eq!(next.before, Before { waits: Some(true), silent: Some(BTreeSet::from([1])) });
    assert_eq!(shown(&next), held);
    // It has been silent for long, and a user deletes others.
    assert_eq!(shown(&silent(Some(&[1]))), "4 deleted; nothing waits");
    assert_eq!(shown(&silent(None).annotated("plumb.appset.budget", "off")), "4 deleted; nothing waits");
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
