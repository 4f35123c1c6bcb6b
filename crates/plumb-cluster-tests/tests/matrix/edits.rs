//! Fields that another writer changes in the cluster.

use anyhow::Result;
use plumb_cluster_tests::bench::{Judged, Memory};
use plumb_cluster_tests::change;
use plumb_cluster_tests::generate::{is_merged, is_open};
use plumb_cluster_tests::kind::Kind;
use plumb_cluster_tests::server::{Answer, Effect};
use plumb_core::desired::DesiredObject;
use plumb_core::drift::{Finding, VerdictStatus};
use plumb_core::object::{FieldPath, Segment};
use serde_json::{Map, Value, json};
use tokio::sync::RwLock;

use crate::{Matrix, add, noted};

/// The writer that changes fields: a user, whose edits always count.
pub(crate) const SOMEBODY: &str = "kubectl-edit";

impl Matrix<'_> {
    /// One field, changed and removed by another writer.
    pub(crate) async fn field(&self, tried: Tried<'_>, leaf: &[Segment], what: &str) -> Result<Vec<String>> {
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
        // Removing a list item moves the items after it. Removing a value that equals its default has no effect. An empty
        // list that is merged item by item asks for nothing.
        let patch = change::remove(leaf);
        let says_nothing = !kind.is_built_in()
            && FieldPath::from(leaf.to_vec()).find(object) == Some(&json!([]))
            && is_merged(kind, leaf);
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

    /// What the server would return for another writer's patch.
    async fn play(&self, tried: Tried<'_>, patch: &Value) -> Result<Answer> {
        let _turn = tried.turn.read().await;
        self.server.patch(tried.kind, tried.wanted.manifest.value(), SOMEBODY, patch, Effect::DryRun).await
    }

    /// The verdict after a change must be `OutOfSync`, because of the changed fields and no others. Additions to an empty
    /// field of Git that is merged granularly are reported and do not count.
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

    /// Makes the change, judges with the server's answers, and reverts it.
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
            // An apply alone does not remove additions.
            self.server.delete(kind, object).await?;
            self.server.apply(kind, object, Effect::Real).await?.object("make it anew")?;
        }
        Ok(Some((judged, answer.body)))
    }
}

/// The object whose fields are changed.
#[derive(Clone, Copy)]
pub(crate) struct Tried<'a> {
    pub(crate) kind: &'a Kind,
    pub(crate) wanted: &'a DesiredObject,
    /// The live object without changes.
    pub(crate) live: &'a Value,
    /// The fields that Git sets.
    pub(crate) own: &'a [Vec<Segment>],
    pub(crate) turn: &'a RwLock<()>,
}

impl Tried<'_> {
    /// True if Git sets an empty value that is merged granularly, and another writer added to it. Its presence may be a
    /// choice (`emptyDir: {}`), so its removal counts. Inside of a list that is one value, an apply takes the addition away.
    fn is_left_to_others(&self, field: &FieldPath, after: &Value) -> bool {
        let is_empty = |value: &Value| {
            value.as_array().is_some_and(Vec::is_empty) || value.as_object().is_some_and(Map::is_empty)
        };
        field.find(self.wanted.manifest.value()).is_some_and(is_empty)
            && field.find(after).is_some()
            && (is_merged(self.kind, field.segments())
                || is_open(self.kind, field.segments()) && self.is_in_merged(field))
    }

    /// True if an apply merges everything that the field is in.
    fn is_in_merged(&self, field: &FieldPath) -> bool {
        field.segments().split_last().is_none_or(|(_, parents)| is_merged(self.kind, parents))
    }

    /// True if Git sets an empty list and the live object has none. A controller may have added items before.
    fn asks_nothing(&self, field: &FieldPath, after: &Value) -> bool {
        self.kind.is_built_in()
            && field.find(self.wanted.manifest.value()) == Some(&json!([]))
            && field.find(after).is_none_or(|value| value.is_null() || *value == json!([]))
    }

    /// True for a field that the control plane may write at any time. The rules of an aggregated role change with other
    /// roles, and the taints of a node, if Git sets none, change with the state of the node.
    pub(crate) fn is_controllers(&self, field: &FieldPath, after: &Value) -> bool {
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

/// True if a finding on `named` is about `field`: it names the field, or the list item that contains it.
pub(crate) fn is_about(named: &FieldPath, field: &FieldPath) -> bool {
    let is_item = matches!(named.segments().last(), Some(Segment::Index(_)));
    named == field || (is_item && field.starts_with(named)) || named.starts_with(field)
}
