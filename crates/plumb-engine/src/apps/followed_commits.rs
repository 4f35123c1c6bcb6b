//! The revisions (branches, tags, version ranges) that an app tracks, and the commits that they resolved to.
//!
//! Objects may move from one app to another in one commit. The app that loses an object must not prune it
//! before the other apps that track the same revision have been gathered: one of them may render it now.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use plumb_core::app::ClusterRef;
use plumb_crd::written_sources;

use super::snapshot::AppSummary;

/// A revision that an app tracks, and the commit that it resolved to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TrackedRevision {
    /// Hash of the destination cluster, the repository and the revision as the spec has it.
    hash: u64,
    commit: Box<str>,
}

impl TrackedRevision {
    pub(crate) fn new(cluster: &str, repository: &str, revision: &str, commit: &str) -> Self {
        Self { hash: revision_hash(cluster, repository, revision), commit: commit.into() }
    }

    #[cfg(test)]
    pub(crate) fn what(&self) -> u64 {
        self.hash
    }
}

/// True if an app that follows `follows` shares a revision with `own`.
pub(crate) fn shares(own: &[TrackedRevision], follows: &[u64]) -> bool {
    own.iter().any(|own| follows.contains(&own.hash))
}

/// True if an app that follows `follows` shares a revision with `own` and was last gathered at another commit
/// of it, or not at all.
pub(crate) fn is_behind(own: &[TrackedRevision], theirs: &[TrackedRevision], follows: &[u64]) -> bool {
    own.iter().filter(|own| follows.contains(&own.hash)).any(|own| !theirs.contains(own))
}

/// Hashes of the revisions that an app tracks by its spec. `None` for an app that is not reconciled.
pub(crate) fn follows(
    summary: &AppSummary,
    cluster: impl Fn(&ClusterRef) -> Option<Arc<str>>,
) -> Option<Vec<u64>> {
    let (application, app) = (summary.head.as_ref().ok()?, summary.app.as_ref().ok()?);
    if app.skip_reconcile || application.is_terminating() {
        return None;
    }
    let cluster = cluster(&app.destination.cluster)?;
    // The same list that is gathered: one revision more would never be reached.
    let sources = written_sources(&application.spec);
    let hashes =
        sources.iter().map(|source| revision_hash(&cluster, &source.repo_url, &source.target_revision));
    Some(hashes.collect())
}

fn revision_hash(cluster: &str, repository: &str, revision: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (cluster, repository, revision).hash(&mut hasher);
    hasher.finish()
}
