//! Fields that Git does not set, that the API server filled in, and that another writer sets to another value.

use anyhow::Result;
use plumb_cluster_tests::bench::Memory;
use plumb_cluster_tests::change;
use plumb_cluster_tests::generate::is_merged;
use plumb_cluster_tests::kind::Kind;
use plumb_cluster_tests::repair::leaves;
use plumb_cluster_tests::server::Effect;
use plumb_core::drift::VerdictStatus;
use plumb_core::object::{FieldPath, Segment};
use serde_json::Value;

use crate::edits::{SOMEBODY, Tried};
use crate::{Matrix, add, counted};

impl Matrix<'_> {
    /// A value that Git does not ask for counts for nothing, whatever it is: the object stays `Synced`.
    pub(crate) async fn added(&self, tried: Tried<'_>, what: &str) -> Result<Vec<String>> {
        let git = tried.wanted.manifest.value();
        let filled: Vec<Vec<Segment>> =
            leaves(tried.live).into_iter().filter(|leaf| is_filled_in(tried.kind, leaf, git)).collect();
        let mut problems = Vec::new();
        for leaf in self.some(tried.kind, 7, &filled) {
            problems.extend(self.set_beside(tried, leaf, what).await?);
        }
        Ok(problems)
    }

    async fn set_beside(&self, tried: Tried<'_>, leaf: &[Segment], what: &str) -> Result<Vec<String>> {
        let (kind, object) = (tried.kind, tried.wanted.manifest.value());
        let path = FieldPath::from(leaf.to_vec());
        for value in change::alternatives(kind, tried.live, leaf).into_iter().take(9) {
            let edit = change::replace(leaf, &value);
            let played = self.server.patch(kind, object, SOMEBODY, &edit, Effect::DryRun).await?;
            let is_other = played.is_fine() && path.find(&played.body) != path.find(tried.live);
            if !is_other || !change::touched(tried.own, tried.live, &played.body).is_empty() {
                continue;
            }
            add(&self.counts.added);
            return self.stays_in_sync(tried, leaf, &edit, &format!("{what} {path} = {value}")).await;
        }
        Ok(Vec::new())
    }

    async fn stays_in_sync(
        &self,
        tried: Tried<'_>,
        leaf: &[Segment],
        patch: &Value,
        said: &str,
    ) -> Result<Vec<String>> {
        let (kind, object) = (tried.kind, tried.wanted.manifest.value());
        let answer = self.server.patch(kind, object, SOMEBODY, patch, Effect::Real).await?;
        if !answer.is_fine() {
            return Ok(Vec::new());
        }
        let mut problems = Vec::new();
        for memory in [Memory::Same, Memory::Unknown] {
            let verdict = self.bench.judge(kind, tried.wanted, &answer.body, memory).await?.verdict;
            if verdict.status != VerdictStatus::Synced {
                problems.push(format!("{said} {memory:?}: an addition counts: {}", counted(&verdict)));
            }
        }
        if let Some(before) = FieldPath::from(leaf.to_vec()).find(tried.live) {
            self.server.patch(kind, object, SOMEBODY, &change::replace(leaf, before), Effect::Real).await?;
        }
        Ok(problems)
    }
}

/// Is it content that Git does not set? What Git sets as a whole (an atomic map) leaves no field to others. In a list that
/// Git sets, only whole items and fields of Git's items are left to others where the list is merged; the comparison of lists
/// is another test's.
fn is_filled_in(kind: &Kind, leaf: &[Segment], git: &Value) -> bool {
    let is_content =
        matches!(leaf.first(), Some(Segment::Field(name)) if name != "metadata" && name != "status");
    let has_index = leaf.iter().any(|segment| matches!(segment, Segment::Index(_)));
    let is_set = |path: &[Segment]| FieldPath::from(path.to_vec()).find(git).is_some();
    // A key of `stringData` is a key of `data` once the API server has it.
    let as_text: Vec<Segment> =
        std::iter::once(Segment::Field("stringData".into())).chain(leaf.iter().skip(1).cloned()).collect();
    let is_secret_text = kind.name() == "v1 Secret" && is_set(&as_text);
    is_content && !has_index && is_merged(kind, leaf) && !is_set(leaf) && !is_secret_text
}
