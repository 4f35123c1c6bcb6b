//! Every kind that the API server serves, and a dozen shapes of custom resources, each as small and as rich as
//! it can be: applied, it is in sync and nothing counts; each field that Git sets, changed by another, counts,
//! and nothing else does; each of them changed or dropped in Git counts if an apply would bring it about.
//!
//! By default a sample; `PLUMB_MATRIX=full` takes every field of several rich objects of each kind, and
//! `PLUMB_MATRIX_KIND` only the kinds whose names contain it.

#![expect(clippy::print_stdout, reason = "the figures are the point")]

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use anyhow::{Context, Result};
use futures::stream::{self, StreamExt as _};
use plumb_cluster_tests::bench::{Bench, Judged, Memory, desired};
use plumb_cluster_tests::change;
use plumb_cluster_tests::generate::{Generator, is_merged, is_open};
use plumb_cluster_tests::kinds::{self, Kind};
use plumb_cluster_tests::random::Random;
use plumb_cluster_tests::repair::{self, Taken, leaves, until_taken};
use plumb_cluster_tests::server::{Answer, Effect, Server};
use plumb_cluster_tests::setting;
use plumb_cluster_tests::skeleton::Skeletons;
use plumb_core::app::CompareOptions;
use plumb_core::desired::DesiredObject;
use plumb_core::drift::{Finding, Verdict, VerdictStatus};
use plumb_core::normalize::manifest_to_apply;
use plumb_core::object::{FieldPath, Segment};
use plumb_testkit::TestNamespace;
use serde_json::{Map, Value, json};
use tokio::sync::RwLock;

/// Who changes fields: a person, whose edits always count.
const SOMEBODY: &str = "kubectl-edit";

/// How much of the matrix is walked.
#[derive(Clone, Copy, Debug)]
struct Extent {
    /// Rich objects of each kind.
    rich: u64,
    /// Fields of each object, `None` for all.
    fields: Option<usize>,
}

#[derive(Default)]
struct Counts {
    kinds: AtomicUsize,
    objects: AtomicUsize,
    settled_at_once: AtomicUsize,
    asked: AtomicUsize,
    changed: AtomicUsize,
    removed: AtomicUsize,
    exact: AtomicUsize,
    asked_on_change: AtomicUsize,
    refused: AtomicUsize,
    without_effect: AtomicUsize,
    adopted: AtomicUsize,
    committed: AtomicUsize,
}

fn add(count: &AtomicUsize) {
    count.fetch_add(1, Relaxed);
}

struct Matrix<'a> {
    server: &'a Server,
    bench: Bench<'a>,
    skeletons: &'a Skeletons,
    namespace: &'a str,
    extent: Extent,
    counts: Counts,
}

#[tokio::test(flavor = "multi_thread")]
async fn every_field_of_every_kind() -> Result<()> {
    let place = TestNamespace::new().await?;
    let server = Server::new(place.client());
    let skeletons = Skeletons::read()?;
    skeletons.install(&place, &server).await?;
    let kinds = kinds::discover(&server, &skeletons.group).await?;
    let full = setting("PLUMB_MATRIX").as_deref() == Some("full");
    let extent = if full { Extent { rich: 6, fields: None } } else { Extent { rich: 1, fields: Some(3) } };
    let only = setting("PLUMB_MATRIX_KIND").unwrap_or_default();
    let matrix = Matrix {
        server: &server,
        bench: Bench { server: &server, schemas: &kinds.schemas, options: CompareOptions::default() },
        skeletons: &skeletons,
        namespace: place.name(),
        extent,
        counts: Counts::default(),
    };
    let walks = kinds.all.iter().filter(|kind| kind.name().contains(&only)).map(|kind| matrix.kind(kind));
    let found: Vec<Result<Vec<String>>> = stream::iter(walks).buffer_unordered(8).collect().await;
    let mut problems = Vec::new();
    for found in found {
        problems.extend(found?);
    }
    problems.sort();
    for problem in &problems {
        println!("PROBLEM {problem}");
    }
    matrix.say();
    assert_eq!(problems.len(), 0, "of {} objects", matrix.counts.objects.load(Relaxed));
    assert!(!only.is_empty() || matrix.counts.kinds.load(Relaxed) > 60, "kinds were left out");
    Ok(())
}

impl Matrix<'_> {
    fn say(&self) {
        let Counts {
            kinds,
            objects,
            settled_at_once,
            asked,
            changed,
            removed,
            exact,
            asked_on_change,
            refused,
            without_effect,
            adopted,
            committed,
        } = &self.counts;
        println!(
            "{kinds:?} kinds, {objects:?} objects in sync: {settled_at_once:?} judgements at once, {asked:?} with a dry-run"
        );
        println!(
            "{changed:?} fields changed, {removed:?} taken out: {exact:?} named exactly, {asked_on_change:?} judged with a dry-run"
        );
        println!("{committed:?} fields changed or dropped in Git");
        println!("{adopted:?} objects that somebody else created, adopted with Strict=true");
        println!(
            "left out: {refused:?} changes that the server refused, {without_effect:?} that had no effect"
        );
    }

    async fn kind(&self, kind: &Kind) -> Result<Vec<String>> {
        let mut problems = Vec::new();
        add(&self.counts.kinds);
        // A sample has the rich object of every third kind.
        let is_rich = self.extent.fields.is_none() || Random::of(5, &kind.name()).below(3) == 0;
        for variant in 0..=(if is_rich { self.extent.rich } else { 0 }) {
            let name = kind.object_name(&format!("m{variant}"));
            let Some(skeleton) = self.skeletons.of(kind, &name, self.namespace) else {
                problems.push(format!("{}: there is no skeleton of this kind", kind.name()));
                return Ok(problems);
            };
            let richness = [0, 45, 25, 65, 45, 35, 80].get(usize::try_from(variant)?).copied().unwrap_or(50);
            let object = Generator::new(kind, variant, richness).enrich(&skeleton);
            // Left by a run that was killed.
            if !kind.namespaced {
                self.server.delete(kind, &object).await?;
            }
            match until_taken(self.server, kind, &skeleton, object).await? {
                Err(complaint) => {
                    problems.push(format!("{} {variant}: not taken: {complaint}", kind.name()));
                }
                Ok(taken) => {
                    add(&self.counts.objects);
                    problems.extend(self.object(kind, &taken, variant).await.with_context(|| kind.name())?);
                    problems.extend(self.adopted(kind, &taken, variant).await.with_context(|| kind.name())?);
                    self.server.delete(kind, &taken.desired).await?;
                }
            }
        }
        Ok(problems)
    }

    /// An object that somebody made from the very same manifest: the record says that they wrote every default too. Even
    /// where additions count (`Strict=true`), none of them is one; and what Git asks otherwise counts as ever.
    async fn adopted(&self, kind: &Kind, taken: &Taken, variant: u64) -> Result<Vec<String>> {
        let mut problems = Vec::new();
        // One of these without labels copies those of its template to itself; no other kind does.
        if kind.gvk.kind == "ReplicationController" {
            return Ok(problems);
        }
        let mut applied = taken.desired.clone();
        let last = taken.desired.to_string();
        applied["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] = json!(last);
        for (manager, object) in [("kubectl-create", &taken.desired), ("kubectl-client-side-apply", &applied)]
        {
            self.server.delete(kind, object).await?;
            let created = self.server.create(kind, object, manager).await?;
            // A namespace takes its time to go, and some objects are only valid as they were applied.
            if !created.is_fine() {
                continue;
            }
            let what = format!("{} {variant} of {manager}", kind.name());
            let bench =
                Bench { options: CompareOptions { strict: true, ..self.bench.options }, ..self.bench };
            let wanted = desired(&taken.desired)?;
            let judged = bench.judge(kind, &wanted, &created.body, Memory::Unknown).await?;
            add(&self.counts.adopted);
            if judged.verdict.status != VerdictStatus::Synced {
                problems.push(format!("{what}: red when adopted: {}", counted(&judged.verdict)));
            }
            // What Git asks is walked once more for the first rich object.
            let own = if variant > 1 { Vec::new() } else { leaves(&taken.desired) };
            let (turn, what) = (RwLock::new(()), what.as_str());
            let commits = self.some(kind, variant, &own).into_iter().map(|leaf| {
                let tried = Tried { kind, wanted: &wanted, live: &created.body, own: &own, turn: &turn };
                self.committed(tried, leaf, what, false)
            });
            let found: Vec<Result<Vec<String>>> = stream::iter(commits).buffered(4).collect().await;
            for found in found {
                problems.extend(found?);
            }
        }
        Ok(problems)
    }

    /// The fields that are walked.
    fn some<'l>(&self, kind: &Kind, variant: u64, own: &'l [Vec<Segment>]) -> Vec<&'l Vec<Segment>> {
        let mut fields: Vec<&Vec<Segment>> = own.iter().filter(|leaf| is_content(leaf)).collect();
        if let Some(most) = self.extent.fields {
            let mut random = Random::of(variant, &kind.name());
            while fields.len() > most {
                fields.remove(random.below(fields.len()));
            }
        }
        fields
    }

    async fn object(&self, kind: &Kind, taken: &Taken, variant: u64) -> Result<Vec<String>> {
        let wanted = desired(&taken.desired)?;
        let mut problems = Vec::new();
        let what = format!("{} {variant}", kind.name());
        let now = self.server.read(kind, &taken.desired).await?.object(&what)?;
        for (when, live) in [("applied", &taken.live), ("read", &now)] {
            for memory in [Memory::Same, Memory::Unknown] {
                let judged = self.bench.judge(kind, &wanted, live, memory).await?;
                add(if judged.asked { &self.counts.asked } else { &self.counts.settled_at_once });
                if judged.verdict.status != VerdictStatus::Synced {
                    problems
                        .push(format!("{what} {when} {memory:?}: red at once: {}", counted(&judged.verdict)));
                }
                if judged.asked && setting("PLUMB_MATRIX_VERBOSE").is_some() {
                    println!("asked: {what} {when} {memory:?} {}", noted(&judged.verdict));
                }
            }
        }
        let own = leaves(&taken.desired);
        let fields = self.some(kind, variant, &own);
        // While one change is made for real, no other is tried.
        let (turn, what) = (RwLock::new(()), what.as_str());
        let changes = fields.into_iter().map(|leaf| {
            let tried = Tried { kind, wanted: &wanted, live: &now, own: &own, turn: &turn };
            async move {
                let mut found = self.field(tried, leaf, what).await?;
                found.extend(self.committed(tried, leaf, what, true).await?);
                Ok(found)
            }
        });
        let found: Vec<Result<Vec<String>>> = stream::iter(changes).buffered(4).collect().await;
        for found in found {
            problems.extend(found?);
        }
        Ok(problems)
    }

    /// One field, changed and taken out by somebody else.
    async fn field(&self, tried: Tried<'_>, leaf: &[Segment], what: &str) -> Result<Vec<String>> {
        let mut problems = Vec::new();
        let Tried { kind, wanted, live, own, .. } = tried;
        let object = wanted.manifest.value();
        let (mut was_changed, mut was_taken) = (false, false);
        for value in change::alternatives(kind, object, leaf).into_iter().take(9) {
            let patch = change::replace(leaf, &value);
            let answer = self.play(tried, &patch).await?;
            if !answer.is_fine() {
                continue;
            }
            was_taken = true;
            if change::touched(own, live, &answer.body).is_empty() {
                continue;
            }
            was_changed = true;
            add(&self.counts.changed);
            let said = format!("{what} {} = {value}", FieldPath::from(leaf.to_vec()));
            problems.extend(self.changed(tried, &patch, &answer.body, &said).await?);
            break;
        }
        match (was_changed, was_taken) {
            (false, false) => add(&self.counts.refused),
            (false, true) => add(&self.counts.without_effect),
            (true, _) => {}
        }
        // A list item that goes moves those after it; a field does not. What says the same as nothing may go.
        let patch = change::remove(leaf);
        let says_nothing = !kind.is_built_in()
            && FieldPath::from(leaf.to_vec()).find(object).is_some_and(|value| {
                *value == json!(false) || *value == json!(0) || *value == json!("") || *value == json!([])
            });
        if matches!(leaf.last(), Some(Segment::Index(_))) || says_nothing {
            return Ok(problems);
        }
        let answer = self.play(tried, &patch).await?;
        if answer.is_fine() && !change::touched(own, live, &answer.body).is_empty() {
            add(&self.counts.removed);
            let said = format!("{what} {} taken out", FieldPath::from(leaf.to_vec()));
            problems.extend(self.changed(tried, &patch, &answer.body, &said).await?);
        }
        Ok(problems)
    }

    /// One field, changed and dropped in Git. What others made was never Git's to drop.
    async fn committed(
        &self,
        tried: Tried<'_>,
        leaf: &[Segment],
        what: &str,
        is_ours: bool,
    ) -> Result<Vec<String>> {
        let mut problems = Vec::new();
        let object = tried.wanted.manifest.value();
        let field = FieldPath::from(leaf.to_vec());
        // The control plane writes the taints of a node again and again, by its state.
        let is_taint =
            tried.kind.gvk.kind == "Node" && field.starts_with(&FieldPath::from_pointer("/spec/taints"));
        if is_taint || tried.is_controllers(&field, tried.live) {
            return Ok(problems);
        }
        let mut dropped = object.clone();
        repair::remove(&mut dropped, leaf);
        let changed = change::alternatives(tried.kind, object, leaf).into_iter().take(4).map(|value| {
            let mut next = object.clone();
            repair::set(&mut next, leaf, value);
            next
        });
        let _turn = tried.turn.read().await;
        let dropped = if is_ours { vec![dropped] } else { Vec::new() };
        for commits in [changed.collect(), dropped] {
            for next in commits {
                let wanted = desired(&next)?;
                let sent = manifest_to_apply(&wanted.manifest, self.bench.schemas);
                let dry_run = self.server.apply(tried.kind, sent.value(), Effect::DryRun).await?;
                if !dry_run.is_fine() || field.find(&dry_run.body) == field.find(tried.live) {
                    continue;
                }
                add(&self.counts.committed);
                let before = Memory::Before(&tried.wanted.manifest);
                let memories = if is_ours {
                    &[before, Memory::Changed, Memory::Unknown][..]
                } else {
                    &[Memory::Unknown]
                };
                for memory in memories.iter().copied() {
                    let verdict = self.bench.judge(tried.kind, &wanted, tried.live, memory).await?.verdict;
                    let mut counted = verdict.findings.iter().filter(|finding| finding.counts);
                    if !counted.any(|finding| finding.fields.iter().any(|named| is_near(named, &field))) {
                        let value = field.find(&next);
                        problems.push(format!(
                            "{what} {field} = {value:?} in Git {memory:?}: not named; {}",
                            noted(&verdict)
                        ));
                    }
                }
                break;
            }
        }
        Ok(problems)
    }

    /// What the server would make of somebody's patch.
    async fn play(&self, tried: Tried<'_>, patch: &Value) -> Result<Answer> {
        let _turn = tried.turn.read().await;
        self.server.patch(tried.kind, tried.wanted.manifest.value(), SOMEBODY, patch, Effect::DryRun).await
    }

    /// The state after a change must be red, by the fields that were touched and no others. What Git leaves empty and
    /// is merged piece by piece is not Git's: what somebody puts there is told, and does not count.
    async fn changed(
        &self,
        tried: Tried<'_>,
        patch: &Value,
        after: &Value,
        said: &str,
    ) -> Result<Vec<String>> {
        let mut problems = Vec::new();
        for memory in [Memory::Same, Memory::Unknown] {
            let (verdict, after) = match self.bench.at_once(tried.wanted, after, memory, None)? {
                Some(verdict) => (verdict, after.clone()),
                None => match self.really(tried, patch, memory).await? {
                    Some((judged, after)) => (judged.verdict, after),
                    None => continue,
                },
            };
            let mut touched = change::touched(tried.own, tried.live, &after);
            touched
                .retain(|field| !tried.is_controllers(field, &after) && !tried.asks_nothing(field, &after));
            let (unclaimed, expected): (Vec<FieldPath>, Vec<FieldPath>) =
                touched.into_iter().partition(|field| tried.is_left_to_others(field, &after));
            let fields: Vec<&FieldPath> = verdict
                .findings
                .iter()
                .filter(|finding| finding.counts)
                .flat_map(|finding| &finding.fields)
                .collect();
            let missed: Vec<String> = expected
                .iter()
                .filter(|field| !fields.iter().any(|named| is_about(named, field)))
                .map(ToString::to_string)
                .collect();
            let foreign: Vec<String> = fields
                .iter()
                .filter(|named| !expected.iter().any(|field| is_about(named, field)))
                .map(ToString::to_string)
                .collect();
            let untold: Vec<String> = unclaimed
                .iter()
                .filter(|field| {
                    let tells = |finding: &Finding| finding.fields.iter().any(|named| is_about(named, field));
                    !verdict.findings.iter().any(|finding| !finding.counts && tells(finding))
                })
                .map(ToString::to_string)
                .collect();
            let is_red = verdict.status == VerdictStatus::OutOfSync;
            let is_right = is_red != expected.is_empty();
            if !is_right || !missed.is_empty() || !foreign.is_empty() || !untold.is_empty() {
                problems.push(format!(
                    "{said} {memory:?}: {:?}, not named {missed:?}, named too {foreign:?}, not told {untold:?}; {}",
                    verdict.status,
                    noted(&verdict)
                ));
            } else if fields.iter().all(|named| expected.contains(named)) {
                add(&self.counts.exact);
            }
        }
        Ok(problems)
    }

    /// Makes the change for real, judges with the server's word on it, and takes it back.
    async fn really(
        &self,
        tried: Tried<'_>,
        patch: &Value,
        memory: Memory<'_>,
    ) -> Result<Option<(Judged, Value)>> {
        let _turn = tried.turn.write().await;
        let (kind, object) = (tried.kind, tried.wanted.manifest.value());
        let answer = self.server.patch(kind, object, SOMEBODY, patch, Effect::Real).await?;
        if !answer.is_fine() {
            return Ok(None);
        }
        add(&self.counts.asked_on_change);
        let judged = self.bench.judge(kind, tried.wanted, &answer.body, memory).await?;
        let back = self.server.apply(kind, object, Effect::Real).await?;
        if !back.is_fine() || !change::touched(tried.own, tried.live, &back.body).is_empty() {
            // What was put beside Git's fields is not taken back by an apply alone.
            self.server.delete(kind, object).await?;
            self.server.apply(kind, object, Effect::Real).await?.object("make it anew")?;
        }
        Ok(Some((judged, answer.body)))
    }
}

/// The object whose fields are changed.
#[derive(Clone, Copy)]
struct Tried<'a> {
    kind: &'a Kind,
    wanted: &'a DesiredObject,
    /// As it is when nobody has changed anything.
    live: &'a Value,
    /// The fields that Git sets.
    own: &'a [Vec<Segment>],
    turn: &'a RwLock<()>,
}

impl Tried<'_> {
    /// Does Git write something empty here that is merged piece by piece, and did somebody put something into it?
    /// That Git has it at all may be a choice (`emptyDir: {}`), so that it is gone counts.
    fn is_left_to_others(&self, field: &FieldPath, after: &Value) -> bool {
        let is_empty = |value: &Value| {
            value.as_array().is_some_and(Vec::is_empty) || value.as_object().is_some_and(Map::is_empty)
        };
        field.find(self.wanted.manifest.value()).is_some_and(is_empty)
            && field.find(after).is_some()
            && (is_merged(self.kind, field.segments()) || is_open(self.kind, field.segments()))
    }

    /// Does Git write an empty list here, and is there nothing? A controller may have put something there before.
    fn asks_nothing(&self, field: &FieldPath, after: &Value) -> bool {
        self.kind.is_built_in()
            && field.find(self.wanted.manifest.value()) == Some(&json!([]))
            && field.find(after).is_none_or(|value| value.is_null() || *value == json!([]))
    }

    /// Is it a place that the control plane fills at any time? The rules of an aggregated role change with every other
    /// role, and the taints of a node that Git gives none with the node's state.
    fn is_controllers(&self, field: &FieldPath, after: &Value) -> bool {
        let git = self.wanted.manifest.value();
        let is_in = |place: &str| field.starts_with(&FieldPath::from_pointer(place));
        let by_state =
            |taint: &Value| taint["key"].as_str().is_some_and(|key| key.starts_with("node.kubernetes.io/"));
        let taints = after["spec"]["taints"].as_array();
        (git.get("aggregationRule").is_some() && is_in("/rules"))
            || (git["spec"]["taints"] == json!([])
                && is_in("/spec/taints")
                && taints.is_some_and(|taints| taints.iter().all(by_state)))
    }
}

/// Identity and marks are not content.
fn is_content(leaf: &[Segment]) -> bool {
    let text: Vec<String> = leaf
        .iter()
        .map(|segment| match segment {
            Segment::Field(name) => name.to_string(),
            Segment::Index(index) => index.to_string(),
        })
        .collect();
    let text: Vec<&str> = text.iter().map(String::as_str).collect();
    !matches!(text.as_slice(), ["apiVersion" | "kind"] | ["metadata", "name" | "namespace"])
}

/// Does a finding on `named` speak of `field`? It names the field, or the list item that holds it.
fn is_about(named: &FieldPath, field: &FieldPath) -> bool {
    let is_item = matches!(named.segments().last(), Some(Segment::Index(_)));
    named == field || (is_item && field.starts_with(named)) || named.starts_with(field)
}

/// The same where Git's items may be in other places than the cluster's.
fn is_near(named: &FieldPath, field: &FieldPath) -> bool {
    let list = |path: &FieldPath| {
        let at = path.segments().iter().position(|segment| matches!(segment, Segment::Index(_)));
        at.map(|at| path.segments()[..at].to_vec())
    };
    is_about(named, field) || (list(named).is_some() && list(named) == list(field))
}

fn counted(verdict: &Verdict) -> String {
    verdict.findings.iter().filter(|finding| finding.counts).map(note).collect::<Vec<_>>().join("; ")
}

fn noted(verdict: &Verdict) -> String {
    verdict.findings.iter().map(note).collect::<Vec<_>>().join("; ")
}

fn note(finding: &Finding) -> String {
    let fields: Vec<String> = finding.fields.iter().take(6).map(ToString::to_string).collect();
    let evidence = finding.evidence.first().map(String::as_str).unwrap_or_default();
    format!("{}{} {} ({evidence})", finding.class, if finding.counts { "!" } else { "" }, fields.join(" "))
}
