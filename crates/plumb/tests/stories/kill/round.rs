//! What the commits of the kill test ask for: hooks of every phase and policy, waves, objects that come, go and move.

use anyhow::Result;
use plumb_testkit::objects::{self, Trouble};
use serde_json::{Value, json};

use crate::stage::Stage;

/// One round is one commit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Round(pub(super) usize);

/// Hooks that run anew in every operation, whatever the one before left.
pub(super) const EVERY_TIME: [&str; 5] = ["before", "during", "after", "helm-before", "helm-after"];
/// Hooks that a good operation removes at its end, and so the one whose name is drawn.
pub(super) const GONE_AFTER_SUCCESS: [&str; 3] = ["cleared", "during", "helm-before"];
/// All hooks that have a name.
pub(super) const HOOKS: [&str; 9] =
    ["before", "kept", "cleared", "during", "after", "helm-before", "helm-after", "breaks", "sorry"];
/// The hook whose name is drawn: the beginning of it.
pub(super) const DRAWN: &str = "drawn-";
/// The object that changes its app with every commit.
pub(super) const MOVER: &str = "mover";
/// The objects of the two apps that stay.
pub(super) const STAY: [&str; 4] = ["first", "middle", "last", "mate-own"];
/// Objects of one round only: the beginnings of their names.
pub(super) const LEAVE: [&str; 2] = ["only-", "late-"];

impl Round {
    /// Every fourth round has a hook that fails after everything else was done.
    pub(super) fn fails(self) -> bool {
        self.0 % 4 == 3
    }

    fn mover_is_in_app(self) -> bool {
        self.0.is_multiple_of(2)
    }

    /// Its number, as the objects carry it.
    pub(super) fn text(self) -> String {
        self.0.to_string()
    }

    /// Commits it, for both apps.
    pub(super) fn commit(self, stage: &Stage) -> Result<String> {
        let text = self.text();
        let mover = objects::config_map(MOVER, &[("round", &text)]);
        let mut all = self.hooks();
        all.extend(self.objects());
        let mut mate = vec![objects::config_map("mate-own", &[("round", &text)])];
        if self.mover_is_in_app() {
            all.push(mover);
        } else {
            mate.push(mover);
        }
        stage.repo.commit(&[
            ("app/all.yaml", objects::manifests(&all)),
            ("mate/all.yaml", objects::manifests(&mate)),
        ])
    }

    fn hooks(self) -> Vec<Value> {
        let succeeded = "HookSucceeded";
        let mut drawn = hook("drawn", "PreSync", succeeded);
        drawn["metadata"]["generateName"] = json!(DRAWN);
        if let Some(metadata) = drawn["metadata"].as_object_mut() {
            metadata.remove("name");
        }
        let mut all = vec![
            wave(hook("before", "PreSync", ""), "-1"),
            hook("kept", "PreSync", "HookFailed"),
            hook("cleared", "PreSync", succeeded),
            drawn,
            wave(hook("during", "Sync", "BeforeHookCreation,HookSucceeded"), "1"),
            hook("after", "PostSync", "BeforeHookCreation"),
            helm_hook("helm-before", "pre-install,pre-upgrade", "before-hook-creation,hook-succeeded"),
            helm_hook("helm-after", "post-install,post-upgrade", "before-hook-creation"),
            hook("sorry", "SyncFail", "BeforeHookCreation"),
        ];
        if self.fails() {
            let breaks = objects::troubled(hook("breaks", "PostSync", "HookFailed"), Trouble::Fail);
            all.push(wave(breaks, "1"));
        }
        all
    }

    /// Four waves, of which one waits for pods, and what the next round has no more.
    fn objects(self) -> Vec<Value> {
        let text = self.text();
        let web = objects::with(
            objects::deployment("web", 1),
            "/spec/template/metadata/annotations/round",
            json!(text),
        );
        let late = objects::config_map(&format!("late-{text}"), &[]);
        vec![
            wave(objects::config_map("first", &[("round", &text)]), "-1"),
            web,
            wave(objects::config_map("middle", &[("round", &text)]), "1"),
            wave(objects::config_map(&format!("only-{text}"), &[]), "1"),
            objects::annotated(late, "argocd.argoproj.io/sync-options", "PruneLast=true"),
            wave(objects::config_map("last", &[("round", &text)]), "2"),
        ]
    }
}

fn wave(object: Value, wave: &str) -> Value {
    objects::annotated(object, "argocd.argoproj.io/sync-wave", wave)
}

fn hook(name: &str, phase: &str, policy: &str) -> Value {
    let job = objects::annotated(objects::job(name), "argocd.argoproj.io/hook", phase);
    if policy.is_empty() {
        return job;
    }
    objects::annotated(job, "argocd.argoproj.io/hook-delete-policy", policy)
}

fn helm_hook(name: &str, phase: &str, policy: &str) -> Value {
    let job = objects::annotated(objects::job(name), "helm.sh/hook", phase);
    objects::annotated(job, "helm.sh/hook-delete-policy", policy)
}
