//! Fields that Git changes or removes, and objects that another writer created before.

use anyhow::Result;
use futures::stream::{self, StreamExt as _};
use plumb_cluster_tests::bench::{Bench, Memory, desired};
use plumb_cluster_tests::change;
use plumb_cluster_tests::kind::Kind;
use plumb_cluster_tests::repair::{self, Taken, leaves};
use plumb_cluster_tests::server::Effect;
use plumb_core::app::CompareOptions;
use plumb_core::drift::VerdictStatus;
use plumb_core::normalize::manifest_to_apply;
use plumb_core::object::{FieldPath, Segment};
use serde_json::json;
use tokio::sync::RwLock;

use crate::edits::{Tried, is_about};
use crate::{Matrix, add, counted, noted};

impl Matrix<'_> {
    /// One field, changed and removed in Git. Fields that other writers set were never in Git.
    pub(crate) async fn committed(
        &self,
        tried: Tried<'_>,
        leaf: &[Segment],
        what: &str,
        is_ours: bool,
    ) -> Result<Vec<String>> {
        let mut problems = Vec::new();
        let object = tried.wanted.manifest.value();
        let field = FieldPath::from(leaf.to_vec());
        // The control plane writes the taints of a node repeatedly, by the state of the node.
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

    /// An object that another writer created from the same manifest: managedFields records it as the writer of every
    /// default too. Even if additions count (`Strict=true`), defaults are not additions; other changes in Git count.
    pub(crate) async fn adopted(&self, kind: &Kind, taken: &Taken, variant: u64) -> Result<Vec<String>> {
        let mut problems = Vec::new();
        // These kinds copy the labels of their template if they have none; no other kind does.
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
            // Deleting a namespace takes long, and some objects are only valid as they were applied.
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
            // The fields of Git are tested again for the first large object.
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
}

/// The same, where Git's items may have other positions than the live ones.
fn is_near(named: &FieldPath, field: &FieldPath) -> bool {
    let list = |path: &FieldPath| {
        let at = path.segments().iter().position(|segment| matches!(segment, Segment::Index(_)));
        at.map(|at| path.segments()[..at].to_vec())
    };
    is_about(named, field) || (list(named).is_some() && list(named) == list(field))
}
