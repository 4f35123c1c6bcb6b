#![expect(clippy::needless_raw_string_hashes, reason = "expect-test writes them this way")]

use std::collections::BTreeMap;

use expect_test::{Expect, expect};

use jiff::Timestamp;

use super::*;
use crate::app::SyncOption;
use crate::desired::DesiredHook;
use crate::health::{Health, HealthStatus};
use crate::object::ObjectKey;
use crate::plan::AppOptions;
use crate::plan::tests::fixture::{Fixture, STARTED, key, time};
use crate::sync::{Observation, ObservedObject};

/// An app that is being deleted, played until nothing more happens by itself. Facts are those of a plan;
/// `finalizers` are short names. Events: `Kind/name gone`, `Kind/name Healthy` (or another health), `approve`.
struct Story {
    fixture: Fixture,
    finalizers: Vec<String>,
    options: AppOptions,
    observations: BTreeMap<ObjectKey, Observation>,
    failed_before: BTreeMap<ObjectKey, String>,
    hooks_known: bool,
    is_destination_known: bool,
    live_complete: bool,
    approved_at: Option<Timestamp>,
    asked_namespace: Option<ObjectKey>,
    out: String,
}

impl Story {
    fn new(finalizers: &[&str], facts: &str) -> Self {
        let fixture = Fixture::parse(facts);
        let observations = fixture
            .desired
            .hooks
            .iter()
            .filter_map(DesiredHook::key)
            .map(|key| (key, Observation::Gone))
            .collect();
        Self {
            fixture,
            finalizers: finalizers.iter().map(|finalizer| (*finalizer).to_owned()).collect(),
            options: AppOptions::default(),
            observations,
            failed_before: BTreeMap::new(),
            hooks_known: true,
            is_destination_known: true,
            live_complete: true,
            approved_at: None,
            asked_namespace: None,
            out: String::new(),
        }
    }

    /// Carries out what is asked until only an event can help.
    fn run(&mut self) {
        for _ in 0..20 {
            let itself = key("Application", "itself");
            let step = next(&Deletion {
                finalizers: &self.finalizers,
                mark: &self.fixture.mark,
                hooks: if self.hooks_known { Ok(&self.fixture.desired.hooks) } else { Err("no such branch") },
                objects: &self.fixture.facts,
                live_complete: self.live_complete,
                observations: &self.observations,
                failed_before: &self.failed_before,
                options: &self.options,
                itself: &itself,
                asked_namespace: self.asked_namespace.as_ref(),
                approved_at: self.approved_at,
                is_destination_known: self.is_destination_known,
            });
            self.tell(&step);
            self.failed_before.extend(step.failed_hooks.iter().cloned());
            for command in &step.commands {
                self.carry_out(command);
            }
            self.finalizers.retain(|finalizer| !step.drop_finalizers.contains(&finalizer.as_str()));
            if step.commands.is_empty() && step.drop_finalizers.is_empty() {
                break;
            }
        }
    }

    fn tell(&mut self, step: &DeletionStep) {
        let mut lines: Vec<String> = step
            .commands
            .iter()
            .map(|command| match command {
                DeletionCommand::CreateHook { key, .. } => format!("create hook {key}"),
                DeletionCommand::DeleteHook { key, .. } => format!("delete hook {key}"),
                DeletionCommand::DeleteObject { key, propagation, .. } => {
                    format!("delete {key} {propagation:?}")
                }
            })
            .collect();
        lines.extend(step.kept.iter().map(|(key, why)| format!("keep {key}: {why}")));
        lines.extend(step.drop_finalizers.iter().map(|finalizer| format!("drop {finalizer}")));
        lines.extend(step.unconfirmed.iter().filter_map(|(_, why)| why.clone()));
        lines.extend((!step.message.is_empty()).then(|| step.message.clone()));
        lines.extend(step.error.iter().map(|error| format!("error: {error}")));
        lines.extend(step.earlier_error.iter().map(|error| format!("error, from before: {error}")));
        self.out.push_str(&lines.join("\n"));
        self.out.push_str(if lines.is_empty() { "-\n" } else { "\n-\n" });
    }

    fn carry_out(&mut self, command: &DeletionCommand) {
        match command {
            DeletionCommand::CreateHook { key, .. } => self.set_health(key, HealthStatus::Progressing),
            DeletionCommand::DeleteHook { key, .. } => {
                self.observations.insert(key.clone(), Observation::Gone);
                self.fixture.facts.remove(key);
            }
            DeletionCommand::DeleteObject { key, .. } => {
                self.fixture.facts.remove(key);
            }
        }
    }

    fn set_health(&mut self, key: &ObjectKey, status: HealthStatus) {
        let health = Some(Health { status, message: "exit code 1".to_owned() });
        self.observations
            .insert(key.clone(), Observation::Live(ObservedObject { health, ..ObservedObject::default() }));
    }

    fn check(&self, expected: &Expect) {
        expected.assert_eq(&self.out);
    }
}

#[test]
fn waves_go_from_the_highest_down() {
    let mut story = Story::new(
        &[CASCADE],
        "
        live ConfigMap a
        live ConfigMap b wave=2
        live ConfigMap c wave=-1
        live Deployment d wave=2
        ",
    );
    story.run();
    story.check(&expect![[r#"
        delete ConfigMap prod/b Foreground
        delete apps/Deployment prod/d Foreground
        deleting wave 2, 4 objects left
        -
        delete ConfigMap prod/a Foreground
        deleting wave 0, 2 objects left
        -
        delete ConfigMap prod/c Foreground
        deleting wave -1, 1 objects left
        -
        drop resources-finalizer.argocd.argoproj.io
        -
        -
    "#]]);
}

#[test]
fn a_wave_waits_until_the_one_above_is_gone() {
    let mut story = Story::new(
        &[CASCADE_BACKGROUND],
        "
        live ConfigMap a
        live ConfigMap b wave=2 terminating
        ",
    );
    story.run();
    story.fixture.facts.remove(&key("ConfigMap", "b"));
    story.run();
    story.check(&expect![[r#"
        waiting for deletion of ConfigMap prod/b
        -
        delete ConfigMap prod/a Background
        deleting wave 0, 1 objects left
        -
        drop resources-finalizer.argocd.argoproj.io/background
        -
        -
    "#]]);
}

#[test]
fn some_objects_stay() {
    let mut story = Story::new(
        &[CASCADE],
        "
        live ConfigMap guarded options=Delete=false
        live ConfigMap kept helm-policy=keep
        live ConfigMap moved also=shop
        live ConfigMap theirs owner=other:shop
        live CustomResourceDefinition widgets.example.com
        live Application itself
        live Application child
        live Job hook hook=PreSync
        live Job last hook=PostDelete
        ",
    );
    story.run();
    story.check(&expect![[r#"
        delete argoproj.io/Application prod/child Foreground
        delete batch/Job prod/hook Foreground
        delete hook batch/Job prod/last
        keep ConfigMap prod/guarded: Delete=false
        keep ConfigMap prod/kept: helm.sh/resource-policy: keep
        keep ConfigMap prod/moved: app shop renders it and takes ownership
        keep apiextensions.k8s.io/CustomResourceDefinition widgets.example.com: CRDs are never deleted with an app
        keep argoproj.io/Application prod/itself: it is the app itself
        deleting wave 0, 3 objects left
        -
        keep ConfigMap prod/guarded: Delete=false
        keep ConfigMap prod/kept: helm.sh/resource-policy: keep
        keep ConfigMap prod/moved: app shop renders it and takes ownership
        keep apiextensions.k8s.io/CustomResourceDefinition widgets.example.com: CRDs are never deleted with an app
        keep argoproj.io/Application prod/itself: it is the app itself
        drop resources-finalizer.argocd.argoproj.io
        -
        -
    "#]]);
}

#[test]
fn a_namespace_that_options_ask_for_stays_and_one_that_others_use_asks_first() {
    let mut story = Story::new(
        &[CASCADE],
        "
        live Namespace prod
        live Namespace argocd never-deleted
        live Namespace team others=2_objects_of_shop
        live Namespace own
        ",
    );
    story.asked_namespace = Some(ObjectKey::of_namespace("prod"));
    story.run();
    story.approved_at = Some(time(STARTED));
    story.run();
    story.check(&expect![[r#"
        keep Namespace argocd: plumb itself runs in the namespace
        keep Namespace prod: a sync made it because the app's options ask for it
        other apps would lose what is in it (2_objects_of_shop)
        waiting for deletion confirmation of Namespace team
        -
        delete Namespace own Foreground
        delete Namespace team Foreground
        keep Namespace argocd: plumb itself runs in the namespace
        keep Namespace prod: a sync made it because the app's options ask for it
        deleting wave 0, 2 objects left
        -
        keep Namespace argocd: plumb itself runs in the namespace
        keep Namespace prod: a sync made it because the app's options ask for it
        drop resources-finalizer.argocd.argoproj.io
        -
        -
    "#]]);
}

#[test]
fn a_hook_without_recorded_end_does_not_block_the_deletion() {
    let mut story = Story::new(
        &[CASCADE],
        "
        live Job running hook=PreSync unreleased
        live ConfigMap a
        ",
    );
    story.run();
    story.check(&expect![[r#"
        delete ConfigMap prod/a Foreground
        delete hook batch/Job prod/running
        deleting wave 0, 2 objects left
        -
        drop resources-finalizer.argocd.argoproj.io
        -
        -
    "#]]);
    let mut story = Story::new(
        &[CASCADE],
        "
        live Job leaving hook=PreSync unreleased terminating
        live ConfigMap a
        ",
    );
    story.run();
    story.check(&expect![[r#"
        delete hook batch/Job prod/leaving
        waiting for deletion of batch/Job prod/leaving
        -
        delete ConfigMap prod/a Foreground
        deleting wave 0, 1 objects left
        -
        drop resources-finalizer.argocd.argoproj.io
        -
        -
    "#]]);
}

#[test]
fn a_deletion_hook_that_was_collected_is_not_run_again() {
    let mut story = Story::new(&[PRE_DELETE], "git Job bye hook=PreDelete");
    story.observations.insert(key("Job", "bye"), Observation::Collected);
    story.run();
    story.check(&expect![[r#"
        drop pre-delete-finalizer.argocd.argoproj.io
        -
        -
    "#]]);
}

/// Whatever its policy says: the default one only speaks of the next run, and there is none.
#[test]
fn a_pre_delete_hook_goes_with_the_objects_of_the_app() {
    for (policy, finalizers) in [("", vec![CASCADE]), ("policy=HookFailed", vec![CASCADE_BACKGROUND])] {
        let mut story = Story::new(&finalizers, &format!("live Job bye hook=PreDelete {policy}"));
        story.run();
        assert!(story.out.starts_with("delete hook batch/Job prod/bye\n"), "{policy}: {}", story.out);
        assert!(story.finalizers.is_empty(), "{policy}: {}", story.out);
    }
    // The objects stay, and so does the hook's: as in Argo CD, its policy decides.
    let mut story = Story::new(&[PRE_DELETE, PRE_DELETE_CLEANUP], "git Job bye hook=PreDelete");
    story.set_health(&key("Job", "bye"), HealthStatus::Healthy);
    story.run();
    assert!(story.out.contains("keep batch/Job prod/bye: its delete policy does not apply"), "{}", story.out);
}

#[test]
fn options_of_the_object_override_those_of_the_app() {
    let mut story = Story::new(
        &[CASCADE],
        "
        live ConfigMap a
        live ConfigMap b options=Delete=true
        ",
    );
    story.options = AppOptions::parse(&[SyncOption("Delete=false".to_owned())]);
    story.run();
    story.check(&expect![[r#"
        delete ConfigMap prod/b Foreground
        keep ConfigMap prod/a: Delete=false
        deleting wave 0, 1 objects left
        -
        keep ConfigMap prod/a: Delete=false
        drop resources-finalizer.argocd.argoproj.io
        -
        -
    "#]]);
}

#[test]
fn a_deletion_that_asks_for_confirmation_waits() {
    let mut story = Story::new(
        &[CASCADE],
        "
        live ConfigMap a options=Delete=confirm
        live ConfigMap b wave=3
        ",
    );
    story.approved_at = Some(time("2026-11-15T11:59:58Z"));
    story.run();
    story.approved_at = Some(time(STARTED));
    story.run();
    story.check(&expect![[r#"
        waiting for deletion confirmation of ConfigMap prod/a
        -
        delete ConfigMap prod/b Foreground
        deleting wave 3, 2 objects left
        -
        delete ConfigMap prod/a Foreground
        deleting wave 0, 1 objects left
        -
        drop resources-finalizer.argocd.argoproj.io
        -
        -
    "#]]);
}

#[test]
fn hooks_run_before_and_after() {
    let mut story = Story::new(
        &[CASCADE, PRE_DELETE, PRE_DELETE_CLEANUP, POST_DELETE, POST_DELETE_CLEANUP],
        "
        git Job pre hook=PreDelete policy=HookSucceeded
        git Job pre2 hook=PreDelete wave=1
        git Job post hook=PostDelete policy=HookSucceeded
        git Job sync hook=PreSync
        live ConfigMap a
        ",
    );
    story.run();
    story.set_health(&key("Job", "pre"), HealthStatus::Degraded);
    story.run();
    story.set_health(&key("Job", "pre"), HealthStatus::Healthy);
    story.run();
    story.set_health(&key("Job", "pre2"), HealthStatus::Healthy);
    story.run();
    story.set_health(&key("Job", "post"), HealthStatus::Healthy);
    story.run();
    story.check(&expect![[r#"
        create hook batch/Job prod/pre
        waiting for completion of PreDelete hook batch/Job prod/pre
        -
        waiting for completion of PreDelete hook batch/Job prod/pre
        -
        delete hook batch/Job prod/pre
        waiting for completion of PreDelete hook batch/Job prod/pre
        error: PreDelete hook batch/Job prod/pre failed and will be retried: exit code 1
        -
        create hook batch/Job prod/pre
        waiting for completion of PreDelete hook batch/Job prod/pre
        error, from before: PreDelete hook batch/Job prod/pre failed and will be retried: exit code 1
        -
        waiting for completion of PreDelete hook batch/Job prod/pre
        error, from before: PreDelete hook batch/Job prod/pre failed and will be retried: exit code 1
        -
        create hook batch/Job prod/pre2
        waiting for completion of PreDelete hook batch/Job prod/pre2
        -
        waiting for completion of PreDelete hook batch/Job prod/pre2
        -
        drop pre-delete-finalizer.argocd.argoproj.io
        -
        delete ConfigMap prod/a Foreground
        deleting wave 0, 1 objects left
        -
        drop resources-finalizer.argocd.argoproj.io
        -
        create hook batch/Job prod/post
        waiting for completion of PostDelete hook batch/Job prod/post
        -
        waiting for completion of PostDelete hook batch/Job prod/post
        -
        drop post-delete-finalizer.argocd.argoproj.io
        -
        delete hook batch/Job prod/pre
        keep batch/Job prod/pre2: its delete policy does not apply (HookSucceeded)
        waiting for deletion of hook batch/Job prod/pre
        -
        keep batch/Job prod/pre2: its delete policy does not apply (HookSucceeded)
        drop pre-delete-finalizer.argocd.argoproj.io/cleanup
        -
        delete hook batch/Job prod/post
        waiting for deletion of hook batch/Job prod/post
        -
        drop post-delete-finalizer.argocd.argoproj.io/cleanup
        -
        -
    "#]]);
    assert!(story.finalizers.is_empty());
}

#[test]
fn hooks_that_are_not_known_stop_the_deletion_but_not_the_cleaning() {
    let mut story = Story::new(&[PRE_DELETE, CASCADE], "live ConfigMap a");
    story.hooks_known = false;
    story.run();
    story.finalizers = vec![POST_DELETE_CLEANUP.to_owned()];
    story.run();
    story.check(&expect![[r#"
        error: cannot determine the hooks: no such branch
        -
        drop post-delete-finalizer.argocd.argoproj.io/cleanup
        -
        -
    "#]]);
}

#[test]
fn nothing_is_deleted_in_a_cluster_that_is_not_known_or_not_listed() {
    let mut story = Story::new(&[CASCADE, POST_DELETE], "live ConfigMap a");
    story.live_complete = false;
    story.run();
    story.is_destination_known = false;
    story.run();
    story.check(&expect![[r#"
        waiting for the cluster to be listed completely
        -
        drop resources-finalizer.argocd.argoproj.io
        drop post-delete-finalizer.argocd.argoproj.io
        the destination cluster is not known: nothing in it is deleted
        -
        the destination cluster is not known: nothing in it is deleted
        -
    "#]]);
}

#[test]
fn without_a_finalizer_everything_stays() {
    let mut story = Story::new(&["somebody.else/finalizer"], "live ConfigMap a");
    story.run();
    story.check(&expect![[r#"
        -
    "#]]);
}
