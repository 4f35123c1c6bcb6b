//! Compares verdicts without requests with the server's dry-runs. Objects go through random edits, commits and syncs.
//! After each, the judge decides without asking, and a server-side dry-run shows what an apply would really change.
//!
//! - If the verdict is `Synced`, a finding explains every field that the dry-run would change. An unexplained change is
//!   a false `Synced`.
//! - If the verdict is `OutOfSync`, a finding names every field of Git that the dry-run would change. Its other changes
//!   (defaults of another setting, fields that only the previous setting allowed) follow from those.
//! - If the dry-run would change nothing, no finding counts, except those that only a user can resolve.
//!
//! The default is a few steps of each kind; `PLUMB_DIFFERENTIAL=n` takes n times as many, `PLUMB_DIFFERENTIAL_SEED`
//! other ones, and `PLUMB_DIFFERENTIAL_KIND` only the kinds whose names contain it.

#![expect(clippy::print_stdout, reason = "the figures are the point")]

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use anyhow::{Context, Result};
use futures::stream::{self, StreamExt as _};
use plumb_cluster_tests::bench::{Bench, Memory, desired};
use plumb_cluster_tests::generate::Generator;
use plumb_cluster_tests::kind::Kind;
use plumb_cluster_tests::kinds;
use plumb_cluster_tests::repair::{leaves, until_taken};
use plumb_cluster_tests::server::{Answer, Effect, Server};
use plumb_cluster_tests::setting;
use plumb_cluster_tests::skeleton::Skeletons;
use plumb_cluster_tests::upset::{Upset, Upsets};
use plumb_core::app::CompareOptions;
use plumb_core::desired::DesiredObject;
use plumb_core::drift::{DriftClass, Finding, Verdict, VerdictStatus};
use plumb_core::normalize::{is_kept_annotation, is_kept_metadata, manifest_to_apply};
use plumb_core::object::{FieldPath, Segment};
use plumb_testkit::TestNamespace;
use serde_json::{Value, json};

/// Steps of one object.
const STEPS: usize = 12;

#[derive(Default)]
struct Counts {
    objects: AtomicUsize,
    steps: AtomicUsize,
    in_sync: Tally,
    upset: Tally,
    synced: AtomicUsize,
    red: AtomicUsize,
    refused: AtomicUsize,
}

/// Number of judgements, and of those with a question.
#[derive(Default)]
struct Tally {
    all: AtomicUsize,
    asked: AtomicUsize,
}

impl Tally {
    fn add(&self, asked: bool) {
        self.all.fetch_add(1, Relaxed);
        self.asked.fetch_add(usize::from(asked), Relaxed);
    }

    fn say(&self) -> String {
        let (all, asked) = (self.all.load(Relaxed), self.asked.load(Relaxed));
        let tenths = (asked * 1000).checked_div(all).unwrap_or_default();
        format!("{asked} of {all} asked the server ({}.{} %)", tenths / 10, tenths % 10)
    }
}

struct Differential<'a> {
    server: &'a Server,
    bench: Bench<'a>,
    skeletons: &'a Skeletons,
    namespace: &'a str,
    charts: Counts,
    made_up: Counts,
}

/// The history of an object.
struct Life<'a> {
    kind: &'a Kind,
    what: String,
    desired: Value,
    applied: Value,
    counts: &'a Counts,
}

#[tokio::test(flavor = "multi_thread")]
async fn the_proof_never_says_more_than_the_server() -> Result<()> {
    let place = TestNamespace::new().await?;
    let server = Server::new(place.client());
    let skeletons = Skeletons::read_with("proof.plumb.dev")?;
    skeletons.install(&place, &server).await?;
    let kinds = kinds::discover(&server, &skeletons.group).await?;
    let times: u64 = setting("PLUMB_DIFFERENTIAL").map_or(Ok(0), |text| text.parse())?;
    let seed: u64 = setting("PLUMB_DIFFERENTIAL_SEED").map_or(Ok(1), |text| text.parse())?;
    let only = setting("PLUMB_DIFFERENTIAL_KIND").unwrap_or_default();
    let run = Differential {
        server: &server,
        bench: Bench { server: &server, schemas: &kinds.schemas, options: CompareOptions::default() },
        skeletons: &skeletons,
        namespace: place.name(),
        charts: Counts::default(),
        made_up: Counts::default(),
    };
    let kinds = kinds.all.iter().enumerate().filter(|(_, kind)| kind.name().contains(&only));
    // The objects of a kind are tested one after the other: some kinds have names that cannot be generated (an address).
    let lives = kinds.map(|(at, kind)| {
        // A sample has every fourth kind as generated, and every second as charts render it.
        let (is_sample, at) = (times == 0 && only.is_empty(), at as u64 + seed);
        let (chart, made_up) = (at % 2 == 0 || !is_sample, at % 4 == 0 || !is_sample);
        let run = &run;
        async move {
            let mut found = Vec::new();
            for round in 0..times.max(1) {
                if chart {
                    found.extend(run.chart(kind, seed + round).await.with_context(|| kind.name())?);
                }
                if made_up {
                    found.extend(run.made_up(kind, seed + round).await.with_context(|| kind.name())?);
                }
            }
            Ok(found)
        }
    });
    let found: Vec<Result<Vec<String>>> = stream::iter(lives).buffer_unordered(8).collect().await;
    let mut problems = Vec::new();
    for found in found {
        problems.extend(found?);
    }
    problems.sort();
    for problem in &problems {
        println!("PROBLEM {problem}");
    }
    for (what, counts) in [("as charts have them", &run.charts), ("made up", &run.made_up)] {
        let Counts { objects, steps, in_sync, upset, synced, red, refused } = counts;
        println!(
            "{objects:?} objects {what}, {steps:?} steps: {synced:?} Synced, {red:?} OutOfSync, {refused:?} refused by the server"
        );
        println!("  in sync: {}", in_sync.say());
        println!("  upset: {}", upset.say());
    }
    assert_eq!(problems.len(), 0, "the judge and the server disagree");
    Ok(())
}

impl Differential<'_> {
    async fn chart(&self, kind: &Kind, seed: u64) -> Result<Vec<String>> {
        let name = kind.object_name(&format!("c{seed}"));
        let Some(object) = self.skeletons.chart(kind, &name, self.namespace) else { return Ok(Vec::new()) };
        self.life(kind, object, seed, &self.charts).await
    }

    async fn made_up(&self, kind: &Kind, seed: u64) -> Result<Vec<String>> {
        let name = kind.object_name(&format!("d{seed}"));
        let Some(skeleton) = self.skeletons.of(kind, &name, self.namespace) else { return Ok(Vec::new()) };
        let richness = [0, 15, 30, 60][usize::try_from(seed % 4)?];
        let object = Generator::new(kind, seed, richness).enrich(&skeleton);
        match until_taken(self.server, kind, &skeleton, object).await? {
            Ok(taken) => self.life(kind, taken.desired, seed, &self.made_up).await,
            // The server never accepts it.
            Err(_) => Ok(Vec::new()),
        }
    }

    async fn life(&self, kind: &Kind, object: Value, seed: u64, counts: &Counts) -> Result<Vec<String>> {
        let mut problems = Vec::new();
        self.server.delete(kind, &object).await?;
        let other = Generator::new(kind, seed ^ 0xff, 40).enrich(&object);
        let mut upsets = Upsets::new(kind, seed, other);
        let mut course = Life {
            kind,
            what: format!("{} {}", kind.name(), object["metadata"]["name"].as_str().unwrap_or_default()),
            applied: object.clone(),
            desired: object,
            counts,
        };
        let first = self.apply(&course).await?;
        anyhow::ensure!(first.is_fine(), "{}: {}", course.what, first.message());
        counts.objects.fetch_add(1, Relaxed);
        let mut story = vec!["applied".to_owned()];
        problems.extend(self.look(&course, &story, true).await?);
        for _ in 0..STEPS {
            let live = self.server.read(kind, &course.desired).await?;
            if !live.is_fine() {
                break;
            }
            let Some(upset) = upsets.next(&course.desired, &live.body) else { continue };
            let is_sync = matches!(upset, Upset::Sync);
            if !self.happens(&mut course, upset, &mut story).await? {
                continue;
            }
            counts.steps.fetch_add(1, Relaxed);
            problems.extend(self.look(&course, &story, is_sync).await?);
        }
        self.server.delete(kind, &course.desired).await?;
        Ok(problems)
    }

    /// Makes the change. `false`: the server refused.
    async fn happens(&self, course: &mut Life<'_>, upset: Upset, story: &mut Vec<String>) -> Result<bool> {
        match upset {
            Upset::Patch { writer, patch } => {
                let answer =
                    self.server.patch(course.kind, &course.desired, writer, &patch, Effect::Real).await?;
                story.push(format!("{writer} {patch}"));
                if !answer.is_fine() {
                    story.pop();
                }
                Ok(answer.is_fine())
            }
            Upset::Commit(next) => {
                let changed: Vec<String> =
                    differences(&course.desired, &next).iter().map(ToString::to_string).collect();
                story.push(format!("commit {}", changed.join(" ")));
                course.desired = next;
                Ok(true)
            }
            Upset::Sync => {
                let answer = self.apply(course).await?;
                if answer.is_fine() {
                    course.applied = course.desired.clone();
                    story.push("sync".to_owned());
                } else {
                    course.desired = course.applied.clone();
                    story.push("commit taken back".to_owned());
                }
                Ok(answer.is_fine())
            }
        }
    }

    async fn apply(&self, course: &Life<'_>) -> Result<Answer> {
        let manifest = manifest_to_apply(&desired(&course.desired)?.manifest, self.bench.schemas);
        self.server.apply(course.kind, manifest.value(), Effect::Real).await
    }

    /// Compares the verdict with what the server would do.
    async fn look(&self, course: &Life<'_>, story: &[String], is_in_sync: bool) -> Result<Vec<String>> {
        let wanted = desired(&course.desired)?;
        let Some((live, dry_run)) = self.still(course, &wanted).await? else { return Ok(Vec::new()) };
        let applied = desired(&course.applied)?.manifest;
        let memories = if course.applied == course.desired {
            vec![Memory::Same, Memory::Unknown]
        } else {
            vec![Memory::Before(&applied), Memory::Changed, Memory::Unknown]
        };
        let mut problems = Vec::new();
        for memory in memories {
            let judged = self.bench.judge(course.kind, &wanted, &live, memory).await?;
            let tally = if is_in_sync { &course.counts.in_sync } else { &course.counts.upset };
            tally.add(judged.asked);
            let verdict = &judged.verdict;
            let is_synced = verdict.status == VerdictStatus::Synced;
            (if is_synced { &course.counts.synced } else { &course.counts.red }).fetch_add(1, Relaxed);
            let complaint = if dry_run.is_fine() {
                disagreement(verdict, &live, &dry_run.body, &course.desired)
            } else {
                course.counts.refused.fetch_add(1, Relaxed);
                (is_synced && !is_about_others(verdict, &dry_run))
                    .then(|| format!("Synced, and the server refuses it: {}", dry_run.message()))
            };
            problems.extend(complaint.map(|complaint| {
                let asked = if judged.asked { "asked" } else { "not asked" };
                format!(
                    "{} {memory:?} {asked}: {complaint}\n    {}\n    {}",
                    course.what,
                    story.join("; "),
                    noted(verdict)
                )
            }));
            if setting("PLUMB_DIFFERENTIAL_VERBOSE").is_some() && !problems.is_empty() {
                println!("Git: {}\nlive: {live}\ndry-run: {}", course.desired, dry_run.body);
            }
            if setting("PLUMB_DIFFERENTIAL_VERBOSE").is_some() && judged.asked && is_in_sync {
                println!("asked: {} {memory:?}: {}\n    {}", course.what, story.join("; "), noted(verdict));
            }
        }
        Ok(problems)
    }

    /// The live object and the dry-run on exactly that state; `None` if another writer keeps changing it.
    async fn still(&self, course: &Life<'_>, wanted: &DesiredObject) -> Result<Option<(Value, Answer)>> {
        let manifest = manifest_to_apply(&wanted.manifest, self.bench.schemas);
        for _ in 0..5 {
            let before = self.server.read(course.kind, &course.desired).await?;
            // The control plane deletes some (an unclaimed volume).
            if before.code == http::StatusCode::NOT_FOUND {
                return Ok(None);
            }
            let before = before.object("read")?;
            let dry_run = self.server.apply(course.kind, manifest.value(), Effect::DryRun).await?;
            let after = self.server.read(course.kind, &course.desired).await?;
            if after.code == http::StatusCode::NOT_FOUND {
                return Ok(None);
            }
            let after = after.object("read")?;
            if before["metadata"]["resourceVersion"] == after["metadata"]["resourceVersion"] {
                return Ok(Some((before, dry_run)));
            }
        }
        Ok(None)
    }
}

/// Where two objects differ, without fields that only the server sets.
fn differences(one: &Value, other: &Value) -> Vec<FieldPath> {
    let mut found: Vec<FieldPath> = Vec::new();
    for leaf in leaves(one).into_iter().chain(leaves(other)) {
        let path = FieldPath::from(leaf);
        let is_kept = match path.segments() {
            [Segment::Field(first), Segment::Field(name), ..]
                if first == "metadata" && is_kept_metadata(name) =>
            {
                true
            }
            [.., Segment::Field(name)] => is_kept_annotation(name),
            _ => false,
        };
        if !is_kept && path.find(one) != path.find(other) && !found.contains(&path) {
            found.push(path);
        }
    }
    found
}

/// The errors of a verdict, given what an apply would change.
fn disagreement(verdict: &Verdict, live: &Value, dry_run: &Value, git: &Value) -> Option<String> {
    let changed = differences(live, dry_run);
    let is_synced = verdict.status == VerdictStatus::Synced;
    let silent: Vec<String> = changed
        .iter()
        .filter(|path| is_synced || (path.find(git).is_some() && path.find(dry_run).is_some()))
        .filter(|path| {
            let is_named = verdict.findings.iter().any(|finding| {
                let is_it =
                    finding.fields.is_empty() || finding.fields.iter().any(|field| overlap(field, path));
                is_it && explains(finding, path)
            });
            // An atomic list is replaced together with the items that other writers added.
            let goes_with = verdict
                .findings
                .iter()
                .filter(|finding| finding.counts)
                .any(|finding| finding.fields.iter().any(|field| outer_list(field) == outer_list(path)));
            !(is_named || goes_with && outer_list(path).is_some())
        })
        .map(ToString::to_string)
        .collect();
    if !silent.is_empty() {
        return Some(format!("nobody says that an apply changes {}", silent.join(" ")));
    }
    // If ownership moves first, that decides what the apply changes.
    if verdict.advice.managed_fields.is_some() {
        return None;
    }
    // Only a user can resolve these, or the sync makes another request first.
    let counted = verdict.findings.iter().filter(|finding| finding.counts).filter(|finding| {
        !matches!(finding.class, DriftClass::RejectedField | DriftClass::StaleOwnership | DriftClass::Blocked)
    });
    for finding in counted {
        for field in &finding.fields {
            // Another writer's item in place of Git's is also removed by a request before the apply.
            let is_replacement =
                field.find(live).is_some() && matches!(field.segments().last(), Some(Segment::Index(_)));
            if !is_replacement && !changed.iter().any(|path| overlap(field, path)) {
                return Some(format!("{} counts {field}, and an apply does not change it", finding.class));
            }
        }
    }
    None
}

/// True if the server refuses a field that a sync would not send (a list that a controller owns), or every apply to the
/// object in its current state.
fn is_about_others(verdict: &Verdict, refusal: &Answer) -> bool {
    if refusal.message().starts_with("failed to create manager for existing fields") {
        return true;
    }
    let kept = verdict.findings.iter().filter(|finding| finding.class == DriftClass::ControllerOwned);
    let kept: Vec<&FieldPath> = kept.flat_map(|finding| &finding.fields).collect();
    let causes = refusal.body["details"]["causes"].as_array().into_iter().flatten();
    let mut places = causes.filter_map(|cause| cause["field"].as_str()).map(|field| {
        // A defect of the server.
        FieldPath::from_server(&field.replace("metadata.taints", "spec.taints"))
    });
    !kept.is_empty()
        && places.all(|place| {
            kept.iter().any(|field| overlap(field, &place) || outer_list(field) == outer_list(&place))
        })
}

/// True if an apply may change a field with a finding of this class. An apply keeps defaults and additions, except inside
/// an atomic list.
fn explains(finding: &Finding, path: &FieldPath) -> bool {
    match finding.class {
        DriftClass::SchemaDefault => false,
        DriftClass::UnclaimedAddition => outer_list(path).is_some(),
        _ => true,
    }
}

/// The outermost list around a path.
fn outer_list(path: &FieldPath) -> Option<&[Segment]> {
    let at = path.segments().iter().position(|segment| matches!(segment, Segment::Index(_)))?;
    path.segments().get(..at)
}

/// True if one path is inside the other. Positions in lists may shift.
fn overlap(one: &FieldPath, other: &FieldPath) -> bool {
    one.segments().iter().zip(other.segments()).all(|(one, other)| match (one, other) {
        (Segment::Index(_), Segment::Index(_)) => true,
        (one, other) => one == other,
    })
}

fn noted(verdict: &Verdict) -> String {
    let note = |finding: &Finding| {
        let fields: Vec<String> = finding.fields.iter().take(8).map(ToString::to_string).collect();
        let evidence = finding.evidence.first().map(String::as_str).unwrap_or_default();
        format!(
            "{}{} {} ({evidence})",
            finding.class,
            if finding.counts { "!" } else { "" },
            fields.join(" ")
        )
    };
    json!(verdict.findings.iter().map(note).collect::<Vec<_>>()).to_string()
}
