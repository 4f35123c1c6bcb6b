//! Plans from a few lines of text, for the tests of this module and of the ones built on it.
//!
//! One line is one fact:
//! ```text
//! sync prune automated dry-run force no-hooks option=CreateNamespace=true only=ConfigMap/a
//! namespace prod missing asked label=team:a
//! git  Deployment web wave=1 options=Replace=true      Git has it, the cluster does not
//! both ConfigMap conf                                  in sync
//! drift ConfigMap conf wave=2                          both have it, and it differs
//! live Service old wave=1                              tracked, and Git does not have it
//! ```
//! More facts about an object: `hook=PreSync`, `policy=HookSucceeded`, `owner=nobody`, `owner=other:shop` (that app
//! renders it too), `owner=gone:shop` (it does not any more), `also=shop`, `listed=shop`, `paused`, `terminating`,
//! `data=…`, `others=…`, `never-deleted`, `live-options=Replace=true` (only the live object asks for it), `unreleased`
//! (held by the hook finalizer), `created=TIME`, `generate` (`generateName`), `ns=other`, `collected`,
//! `defines=GROUP/KIND`, `image=…`, `cluster` (no namespace). Lines `unserved KIND`, `served KIND GROUP VERSION…`,
//! `denied KIND`, `approved TIME`, `synced TIME`, `history gone`, `history replaced`, `unproven` and `budget off` set the rest.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use expect_test::Expect;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::app::{ManagedNamespace, SelectedObject, SyncOption, SyncStrategy};
use crate::desired::{DesiredHook, DesiredObject, DesiredSet, HookPhase, ObjectOptions};
use crate::live::LiveSet;
use crate::object::{GroupKind, Manifest, ObjectKey};
use crate::plan::{
    AppOptions, DeletionProof, LiveFacts, NamespaceFacts, NoProof, ObjectFacts, OperationMark, Owner, Plan,
    PlanInput, PruneBudget, Refusal, ReplacedHistory, Row, SyncRequest, build, rows,
};
use crate::tracking::Provenance;

pub(crate) const STARTED: &str = "2026-11-15T12:00:00Z";
const CLUSTER_SCOPED: [&str; 5] =
    ["Namespace", "CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding", "PersistentVolume"];

/// Checks the plan for these facts, one step a line.
pub(super) fn check(facts: &str, expected: &Expect) {
    expected.assert_eq(&Fixture::parse(facts).print());
}

pub(crate) fn time(text: &str) -> Timestamp {
    text.parse().expect("a time")
}

/// Everything a plan is made from, owned.
#[derive(Clone)]
pub(crate) struct Fixture {
    pub(crate) desired: DesiredSet,
    pub(crate) facts: BTreeMap<ObjectKey, ObjectFacts>,
    pub(crate) request: SyncRequest,
    pub(crate) namespace: NamespaceFacts,
    pub(crate) budget: PruneBudget,
    pub(crate) mark: OperationMark,
    pub(crate) approved_at: Option<Timestamp>,
    pub(crate) replaced_history: Option<ReplacedHistory>,
    pub(crate) synced_at: Option<Timestamp>,
    pub(crate) deletions: Result<DeletionProof, NoProof>,
    pub(crate) unserved: BTreeSet<String>,
    /// By kind: the group and the versions that are served.
    pub(crate) served: BTreeMap<String, (String, Vec<String>)>,
    pub(crate) denied: BTreeSet<String>,
}

impl Fixture {
    pub(crate) fn parse(text: &str) -> Self {
        let mut fixture = Self {
            desired: DesiredSet::default(),
            facts: BTreeMap::new(),
            request: SyncRequest::default(),
            namespace: NamespaceFacts {
                name: Some("prod".to_owned()),
                exists: true,
                ..NamespaceFacts::default()
            },
            budget: PruneBudget::default(),
            mark: OperationMark {
                app_uid: "9f0c".to_owned(),
                started_at: time(STARTED),
                retry: 0,
                revision: "0123456789abcdef".to_owned(),
            },
            approved_at: None,
            replaced_history: None,
            synced_at: None,
            deletions: Err(NoProof::LiveIncomplete),
            unserved: BTreeSet::new(),
            served: BTreeMap::new(),
            denied: BTreeSet::new(),
        };
        let mut unproven = false;
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let (first, rest) = words.split_first().expect("a line has a word");
            match *first {
                "sync" => fixture.request = request(rest),
                "namespace" => fixture.namespace = namespace(rest),
                "unserved" => fixture.unserved.extend(rest.iter().map(|kind| (*kind).to_owned())),
                "served" => {
                    let [kind, group, versions @ ..] = rest else { panic!("served KIND GROUP VERSION…") };
                    let versions = versions.iter().map(|version| (*version).to_owned()).collect();
                    fixture.served.insert((*kind).to_owned(), ((*group).to_owned(), versions));
                }
                "denied" => fixture.denied.extend(rest.iter().map(|kind| (*kind).to_owned())),
                "approved" => fixture.approved_at = rest.first().map(|at| time(at)),
                "synced" => fixture.synced_at = rest.first().map(|at| time(at)),
                "history" => {
                    fixture.replaced_history = Some(ReplacedHistory {
                        repository: "https://h/repo".to_owned(),
                        last: "1".repeat(40),
                        present: "2".repeat(40),
                        is_gone: rest == ["gone"],
                    });
                }
                "unproven" => unproven = true,
                "budget" => fixture.budget = PruneBudget::Off,
                "git" | "both" | "drift" | "live" => fixture.add(first, rest),
                other => panic!("no such line: {other}"),
            }
        }
        if !unproven {
            let live = LiveSet { complete: true, ..LiveSet::default() };
            let desired = fixture.desired.clone().complete().unwrap();
            fixture.deletions = DeletionProof::new(&desired, &live);
        }
        fixture
    }

    fn add(&mut self, place: &str, words: &[&str]) {
        let manifest = manifest(words);
        let options = ObjectOptions::parse(&manifest);
        let in_git = place != "live";
        if in_git && options.is_hook {
            self.desired.hooks.push(DesiredHook {
                namespace: manifest.namespace().map(str::to_owned),
                phases: HookPhase::of(&manifest),
                manifest: manifest.clone(),
                options: options.clone(),
                origin: None,
            });
        } else if in_git {
            let key = manifest.key().expect("a name");
            let object = DesiredObject {
                key: key.clone(),
                manifest: manifest.clone(),
                options: options.clone(),
                origin: None,
            };
            self.desired.objects.insert(key, object);
        }
        let has = |word: &str| words.contains(&word);
        let value = |name: &str| value(words, name);
        let live = (place != "git").then(|| LiveFacts {
            manifest: Arc::new(manifest.clone()),
            options: value("live-options").map_or(options, |text| {
                let annotated = manifest.clone().with_annotation("argocd.argoproj.io/sync-options", text);
                ObjectOptions::parse(&annotated)
            }),
            owner: match value("owner").map(|owner| owner.split_once(':').unwrap_or((owner, ""))) {
                None => Owner::ThisApp,
                Some(("nobody", _)) => Owner::NoApp,
                Some(("other", app)) => Owner::Other { app: app.to_owned(), renders: true },
                Some(("gone", app)) => Owner::Other { app: app.to_owned(), renders: false },
                Some((other, _)) => panic!("no such owner: {other}"),
            },
            provenance: match value("provenance") {
                None => Provenance::Proven,
                Some("never-written") => Provenance::NeverWritten,
                Some("not-recorded") => Provenance::NotRecorded,
                Some(other) => panic!("no such provenance: {other}"),
            },
            holds_data: value("data").map(str::to_owned),
            of_others: value("others").map(str::to_owned),
            never_deleted: has("never-deleted").then_some("plumb itself runs in the namespace"),
        });
        let facts = ObjectFacts {
            live,
            in_sync: place == "both" || has("collected"),
            paused: has("paused").then(|| "until 13:00: migration".to_owned()),
            also_rendered_by: value("also").map(str::to_owned),
            listed_by: value("listed").map(str::to_owned),
        };
        if let Some(key) = manifest.key() {
            self.facts.insert(key, facts);
        }
    }

    pub(crate) fn build(&self) -> Result<Plan, Refusal> {
        build(&PlanInput {
            desired: &self.desired,
            facts: &self.facts,
            deletions: self.deletions.as_ref(),
            request: &self.request,
            namespace: &self.namespace,
            budget: self.budget,
            mark: &self.mark,
            approved_at: self.approved_at,
            replaced_history: self.replaced_history.as_ref(),
            synced_at: self.synced_at,
            is_served: &|gvk| !self.unserved.contains(&gvk.kind),
            served_versions: &|kind| {
                let (group, versions) = self.served.get(&kind.kind)?;
                Some((GroupKind::new(group.clone(), kind.kind.clone()), versions.clone()))
            },
            denied: &|key| {
                self.denied.contains(&key.kind).then(|| format!("{} is not permitted in project p", key.kind))
            },
        })
    }

    pub(crate) fn plan(&self) -> Arc<Plan> {
        Arc::new(self.build().expect("a plan"))
    }

    /// The printed plan, or the refusal.
    pub(crate) fn print(&self) -> String {
        match self.build() {
            Ok(plan) => rows(&plan).iter().map(print_row).collect(),
            Err(refusal) => {
                let objects = refusal.objects.iter();
                let lines: Vec<String> =
                    objects.map(|object| format!("  {}: {}\n", object.id, object.message)).collect();
                format!("refused: {}\n{}", refusal.message, lines.concat())
            }
        }
    }
}

fn print_row(row: &Row) -> String {
    let [phase, wave, action, object, why, waits_for] = row.cells();
    format!("{phase} {wave}: {action} {object} ({why}) -> {waits_for}\n")
}

fn value<'a>(words: &[&'a str], name: &str) -> Option<&'a str> {
    words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
}

fn request(words: &[&str]) -> SyncRequest {
    let has = |word: &str| words.contains(&word);
    let options: Vec<SyncOption> = words
        .iter()
        .filter_map(|word| word.strip_prefix("option="))
        .map(|text| SyncOption(text.to_owned()))
        .collect();
    let selected: Vec<SelectedObject> = words
        .iter()
        .filter_map(|word| word.strip_prefix("only=")?.split_once('/'))
        .map(|(kind, name)| SelectedObject {
            group: group_version(kind).0.to_owned(),
            kind: kind.to_owned(),
            namespace: None,
            name: name.to_owned(),
        })
        .collect();
    let force = has("force");
    SyncRequest {
        prune: has("prune"),
        dry_run: has("dry-run"),
        strategy: if has("no-hooks") { SyncStrategy::Apply { force } } else { SyncStrategy::Hook { force } },
        selected: (!selected.is_empty()).then_some(selected),
        options: AppOptions::parse(&options),
        automated: has("automated"),
    }
}

fn namespace(words: &[&str]) -> NamespaceFacts {
    let labels: BTreeMap<String, String> = words
        .iter()
        .filter_map(|word| word.strip_prefix("label=")?.split_once(':'))
        .map(|(key, text)| (key.to_owned(), text.to_owned()))
        .collect();
    NamespaceFacts {
        name: words.first().map(|name| (*name).to_owned()),
        exists: !words.contains(&"missing"),
        is_asked_for: words.contains(&"asked"),
        managed: (!labels.is_empty()).then(|| ManagedNamespace { labels, annotations: BTreeMap::new() }),
    }
}

pub(crate) fn group_version(kind: &str) -> (&'static str, &'static str) {
    match kind {
        "Deployment" | "StatefulSet" | "DaemonSet" => ("apps", "v1"),
        "Job" | "CronJob" => ("batch", "v1"),
        "Role" | "RoleBinding" | "ClusterRole" | "ClusterRoleBinding" => ("rbac.authorization.k8s.io", "v1"),
        "CustomResourceDefinition" => ("apiextensions.k8s.io", "v1"),
        "Application" => ("argoproj.io", "v1alpha1"),
        "Widget" => ("example.com", "v1"),
        _ => ("", "v1"),
    }
}

pub(crate) fn key(kind: &str, name: &str) -> ObjectKey {
    ObjectKey::new(
        group_version(kind).0.to_owned(),
        kind,
        (!CLUSTER_SCOPED.contains(&kind)).then(|| "prod".to_owned()),
        name,
    )
}

fn manifest(words: &[&str]) -> Manifest {
    let (kind, name) = (words.first().expect("a kind"), words.get(1).expect("a name"));
    let (group, version) = group_version(kind);
    let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    let mut metadata = Map::new();
    metadata
        .insert(if words.contains(&"generate") { "generateName" } else { "name" }.to_owned(), json!(name));
    if !CLUSTER_SCOPED.contains(kind) && !words.contains(&"cluster") {
        metadata.insert("namespace".to_owned(), json!(value(words, "ns").unwrap_or("prod")));
    }
    let mut annotations = Map::new();
    for (word, annotation) in [
        ("wave", "argocd.argoproj.io/sync-wave"),
        ("hook", "argocd.argoproj.io/hook"),
        ("policy", "argocd.argoproj.io/hook-delete-policy"),
        ("options", "argocd.argoproj.io/sync-options"),
        ("helm-policy", "helm.sh/resource-policy"),
    ] {
        if let Some(text) = value(words, word) {
            annotations.insert(annotation.to_owned(), json!(text));
        }
    }
    metadata.insert("annotations".to_owned(), Value::Object(annotations));
    if words.contains(&"unreleased") {
        metadata.insert("finalizers".to_owned(), json!([crate::plan::HOOK_FINALIZER]));
    }
    if words.contains(&"terminating") {
        metadata.insert("deletionTimestamp".to_owned(), json!(STARTED));
    }
    if let Some(at) = value(words, "created") {
        metadata.insert("creationTimestamp".to_owned(), json!(at));
    }
    let spec = match value(words, "defines").and_then(|defined| defined.split_once('/')) {
        Some((group, kind)) => json!({"group": group, "names": {"kind": kind}}),
        None => match value(words, "image") {
            Some(image) => json!({"containers": [{"name": "main", "image": image}]}),
            None => json!({}),
        },
    };
    Manifest::new(json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}))
        .expect("an object")
}
