//! Every kind that the API server serves, and a dozen forms of custom resources, each with few and with many fields.
//! After an apply it is in sync and no finding counts. Each field of Git that another writer changes counts, and no other
//! field does; a field that Git leaves to the API server counts for nothing. Each field that is changed or removed in Git counts if an apply would change it.
//!
//! The default is a sample; `PLUMB_MATRIX=full` takes every field of several large objects of each kind, and
//! `PLUMB_MATRIX_KIND` only the kinds whose names contain it.

#![expect(clippy::print_stdout, reason = "the figures are the point")]

mod additions;
mod commits;
mod edits;

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use anyhow::{Context, Result};
use futures::stream::{self, StreamExt as _};
use plumb_cluster_tests::bench::{Bench, Memory, desired};
use plumb_cluster_tests::generate::Generator;
use plumb_cluster_tests::kind::Kind;
use plumb_cluster_tests::kinds;
use plumb_cluster_tests::random::Random;
use plumb_cluster_tests::repair::{Taken, leaves, until_taken};
use plumb_cluster_tests::server::Server;
use plumb_cluster_tests::setting;
use plumb_cluster_tests::skeleton::Skeletons;
use plumb_core::app::CompareOptions;
use plumb_core::drift::{Finding, Verdict, VerdictStatus};
use plumb_core::object::Segment;
use plumb_testkit::TestNamespace;
use tokio::sync::RwLock;

use self::edits::Tried;

/// How much of the matrix is tested.
#[derive(Clone, Copy, Debug)]
struct Extent {
    /// Large objects of each kind.
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
    added: AtomicUsize,
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
            added,
        } = &self.counts;
        println!(
            "{kinds:?} kinds, {objects:?} objects in sync: {settled_at_once:?} judgements at once, {asked:?} with a dry-run"
        );
        println!(
            "{changed:?} fields changed, {removed:?} taken out: {exact:?} named exactly, {asked_on_change:?} judged with a dry-run"
        );
        println!("{committed:?} fields changed or dropped in Git");
        println!("{added:?} fields set that Git leaves to the API server");
        println!("{adopted:?} objects that somebody else created, adopted with Strict=true");
        println!(
            "left out: {refused:?} changes that the server refused, {without_effect:?} that had no effect"
        );
    }

    async fn kind(&self, kind: &Kind) -> Result<Vec<String>> {
        let mut problems = Vec::new();
        add(&self.counts.kinds);
        // A sample has the large object of every third kind.
        let is_rich = self.extent.fields.is_none() || Random::of(5, &kind.name()).below(3) == 0;
        for variant in 0..=(if is_rich { self.extent.rich } else { 0 }) {
            let name = kind.object_name(&format!("m{variant}"));
            let Some(skeleton) = self.skeletons.of(kind, &name, self.namespace) else {
                problems.push(format!("{}: there is no skeleton of this kind", kind.name()));
                return Ok(problems);
            };
            let richness = [0, 45, 25, 65, 45, 35, 80].get(usize::try_from(variant)?).copied().unwrap_or(50);
            let object = Generator::new(kind, variant, richness).enrich(&skeleton);
            // It may be left over from a run that was killed.
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

    /// The fields that are tested.
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
        // While one real change is made, no other is tested.
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
        let tried = Tried { kind, wanted: &wanted, live: &now, own: &own, turn: &turn };
        problems.extend(self.added(tried, what).await?);
        Ok(problems)
    }
}

/// Identity and tracking are not content.
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
