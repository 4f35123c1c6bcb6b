//! Which commits are on branches and tags.
//!
//! A server may serve any commit by its hash: GitHub serves those of every fork. A project permits a repository because
//! of who may push to it, so a hash counts only if a branch or tag contains the commit.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;
use plumb_core::app::CommitId;

use super::disk;
use super::error::FetchError;
use super::mirrors::Mirrors;
use super::slot::Slot;
use crate::command::CommandError;
use crate::objects::note_damage;
use crate::refs::HashRule;
use crate::url::RepoUrl;

/// Most commits that are remembered one by one.
const MOST_KNOWN: usize = 50_000;

/// The commits of one repository that are known to be on its refs. A commit stays known after a force push: plumb has
/// seen it on a branch.
#[derive(Default)]
pub(super) struct Contained {
    known: Mutex<Known>,
    /// Held while the commits are listed, so that callers share one list.
    listing: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Known {
    /// Commits on branches and tags.
    on_refs: HashSet<CommitId>,
    /// Commits on other refs, with the name of the ref.
    on_others: HashSet<(String, CommitId)>,
    /// All commits on branches and tags, sorted, in the state of the repository that the text identifies.
    all: Option<(String, Arc<[gix::ObjectId]>)>,
}

impl Contained {
    /// Notes that a commit is on a branch or tag, or on another ref.
    pub(super) fn note(&self, other: Option<&str>, commit: &CommitId) {
        let mut known = self.known.lock();
        if known.on_refs.len() + known.on_others.len() >= MOST_KNOWN {
            *known = Known::default();
        }
        match other {
            None => known.on_refs.insert(commit.clone()),
            Some(name) => known.on_others.insert((name.to_owned(), commit.clone())),
        };
    }

    /// True if the commit is known to be where the rule wants it.
    pub(super) fn satisfies(&self, rule: &HashRule, commit: &CommitId) -> bool {
        let HashRule::OnRefs(named) = rule else { return true };
        let known = self.known.lock();
        known.on_refs.contains(commit)
            || named.iter().any(|name| known.on_others.contains(&(name.clone(), commit.clone())))
    }

    /// Forgets everything: the mirror is removed.
    pub(super) fn clear(&self) {
        *self.known.lock() = Known::default();
    }

    /// Whether the commit is on a branch or tag in this state; `None` if that state was not listed.
    fn is_listed(&self, state: &str, commit: &CommitId) -> Option<bool> {
        let known = self.known.lock();
        let (_, all) = known.all.as_ref().filter(|(listed, _)| listed == state)?;
        Some(is_in(all, commit))
    }
}

fn is_in(sorted: &[gix::ObjectId], commit: &CommitId) -> bool {
    gix::ObjectId::from_hex(commit.as_str().as_bytes()).is_ok_and(|id| sorted.binary_search(&id).is_ok())
}

impl Mirrors {
    /// True if a commit of the mirror is where the rule wants it: on a branch or tag, now or since the branch was first
    /// fetched, or on a ref that the requester names in full.
    pub(super) async fn is_contained(
        &self,
        slot: &Slot,
        url: &RepoUrl,
        commit: &CommitId,
        rule: &HashRule,
    ) -> Result<bool, FetchError> {
        let contained = &slot.contained;
        let HashRule::OnRefs(named) = rule else { return Ok(true) };
        if contained.satisfies(rule, commit) {
            return Ok(true);
        }
        let Some(current) = slot.current() else { return Ok(false) };
        let repository = slot.directory.join(&current.state.repository);
        let state = format!("{} {}", current.state.repository, current.state.advertised);
        let _one_at_a_time = contained.listing.lock().await;
        let is_on_refs = if let Some(is_on_refs) = contained.is_listed(&state, commit) {
            is_on_refs
        } else {
            let arguments = ["rev-list", "--branches", "--tags", "--reflog"];
            let all = self.commits(slot, url, &repository, &arguments).await?;
            let is_on_refs = is_in(&all, commit);
            contained.known.lock().all = Some((state, all));
            is_on_refs
        };
        if is_on_refs {
            contained.note(None, commit);
            return Ok(true);
        }
        for name in named.iter().filter(|name| current.refs.others.contains_key(*name)) {
            let arguments = ["rev-list", &disk::local_ref(name), "--"];
            if is_in(&self.commits(slot, url, &repository, &arguments).await?, commit) {
                contained.note(Some(name), commit);
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The commits that git lists, sorted.
    async fn commits(
        &self,
        slot: &Slot,
        url: &RepoUrl,
        repository: &std::path::Path,
        arguments: &[&str],
    ) -> Result<Arc<[gix::ObjectId]>, FetchError> {
        let failed = |source| {
            // git reads nothing but the mirror here.
            if matches!(source, CommandError::Failed { .. } | CommandError::Cache { .. }) {
                note_damage(&slot.damaged);
            }
            FetchError::History { repository: url.to_string(), source }
        };
        let output = self.git_offline(repository, arguments).await.map_err(failed)?;
        let lines = output.split(|byte| *byte == b'\n');
        let mut commits: Vec<gix::ObjectId> =
            lines.filter_map(|line| gix::ObjectId::from_hex(line).ok()).collect();
        commits.sort_unstable();
        Ok(commits.into())
    }
}
