//! The revisions (branches, tags, version ranges) that an app tracks, and the commits that they resolved to.
//!
//! Objects may move from one app to another in one commit. The app that loses an object must not prune it
//! before the other apps that track the same revision have been gathered: one of them may render it now.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use plumb_core::app::ClusterRef;

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

    /// True if both are of one revision, at whatever commits.
    pub(crate) fn is_same_revision(&self, other: &Self) -> bool {
        self.hash == other.hash
    }

    #[cfg(test)]
    pub(crate) fn what(&self) -> u64 {
        self.hash
    }
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
    let spec = &application.spec;
    let sources = spec.source.as_deref().into_iter().chain(&spec.sources);
    Some(sources.map(|source| revision_hash(&cluster, &source.repo_url, &source.target_revision)).collect())
}

fn revision_hash(cluster: &str, repository: &str, revision: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (cluster, repository, revision).hash(&mut hasher);
    hasher.finish()
}
