//! A state of one repository that can be read.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use parking_lot::Mutex;
use plumb_core::app::CommitId;
use plumb_core::source::SourceError;

use crate::refs::{Found, RefTable, ResolveError, RevisionSpec};
use crate::tree::SourceTree;
use crate::url::RepoUrl;

/// A readable state of one repository.
#[derive(Clone)]
pub struct Mirror {
    pub(super) url: RepoUrl,
    pub(super) repository: Arc<gix::ThreadSafeRepository>,
    pub(super) refs: Arc<RefTable>,
    pub(super) resolved: Arc<Resolved>,
    pub(super) max_blob: u64,
    pub(super) damaged: Arc<AtomicBool>,
}

/// The commits of revisions in one state of a repository. A thousand apps resolve the same few branches at
/// every poll, and opening the object database for each of them would cost more than the rest of the poll.
#[derive(Default)]
pub(super) struct Resolved(Mutex<HashMap<RevisionSpec, CommitId>>);

/// Apps that are pinned to commits have a revision each, which is not worth caching.
const MOST_RESOLVED: usize = 1024;

impl Resolved {
    pub(super) fn get(&self, spec: &RevisionSpec) -> Option<CommitId> {
        self.0.lock().get(spec).cloned()
    }

    pub(super) fn keep(&self, spec: &RevisionSpec, commit: &CommitId) {
        let mut known = self.0.lock();
        if known.len() < MOST_RESOLVED {
            known.insert(spec.clone(), commit.clone());
        }
    }
}

/// Result of a fetch.
#[derive(Clone)]
pub struct Fetched {
    /// The repository as it is now.
    pub mirror: Mirror,
    /// True if the server had something new.
    pub changed: bool,
}

impl Mirror {
    /// The address it was fetched from.
    pub fn url(&self) -> &RepoUrl {
        &self.url
    }

    /// The commit of a revision in this mirror.
    pub fn resolve(&self, spec: &RevisionSpec) -> Result<CommitId, ResolveError> {
        if let Some(known) = self.resolved.get(spec) {
            return Ok(known);
        }
        let commit = self.look_up(spec)?;
        self.resolved.keep(spec, &commit);
        Ok(commit)
    }

    fn look_up(&self, spec: &RevisionSpec) -> Result<CommitId, ResolveError> {
        let repository = self.url.to_string();
        let revision = || spec.revision.trim().to_owned();
        let not_found = || ResolveError::NotFound {
            revision: revision(),
            repository: self.url.to_string(),
            hint: String::new(),
        };
        let local = self.repository.to_thread_local();
        let id = match self.refs.resolve(spec, &repository)? {
            Found::Commit(commit) => {
                gix::ObjectId::from_hex(commit.as_str().as_bytes()).map_err(|_| not_found())?
            }
            Found::Prefix(prefix) => {
                let prefix = gix::hash::Prefix::from_hex(&prefix).map_err(|_| not_found())?;
                let mut found = std::collections::HashSet::new();
                local.objects.lookup_prefix(prefix, Some(&mut found)).map_err(|_| not_found())?;
                // In a large repository seven digits are also the prefix of other objects. As in git, only
                // commits count; the check below reports another object.
                let is_commit = |id: &&gix::ObjectId| {
                    let header = local.try_find_header(**id).ok().flatten();
                    header.is_some_and(|header| header.kind() == gix::objs::Kind::Commit)
                };
                let commits: Vec<_> = found.iter().filter(is_commit).collect();
                match (commits.as_slice(), found.iter().next()) {
                    ([commit], _) => **commit,
                    ([], Some(other)) => *other,
                    ([], None) => return Err(not_found()),
                    _ => return Err(ResolveError::Ambiguous { revision: revision(), repository }),
                }
            }
        };
        match local.try_find_header(id) {
            Ok(Some(header)) if header.kind() == gix::objs::Kind::Commit => {
                id.to_string().parse().map_err(|_| not_found())
            }
            Ok(Some(_)) => Err(ResolveError::NotACommit { revision: revision(), repository }),
            Ok(None) | Err(_) => Err(not_found()),
        }
    }

    /// The files of a commit.
    pub fn tree(&self, commit: &CommitId) -> Result<SourceTree, SourceError> {
        SourceTree::open(
            Arc::clone(&self.repository),
            commit.clone(),
            self.max_blob,
            Arc::clone(&self.damaged),
        )
    }

    /// Name and hash of the annotated tag of this commit that a revision names, if it names one.
    pub(crate) fn annotated_tag(&self, spec: &RevisionSpec, commit: &CommitId) -> Option<(String, String)> {
        let name = self.refs.tag_of(spec, &self.url.to_string())?;
        let local = self.repository.to_thread_local();
        let id = local.find_reference(name.as_str()).ok()?.target().try_id()?.to_owned();
        let tag = local.find_object(id).ok()?;
        let is_tag = tag.kind == gix::objs::Kind::Tag;
        // The tag may have moved since the revision was resolved.
        let peeled = tag.peel_to_kind(gix::objs::Kind::Commit).ok()?.id.to_string();
        (is_tag && peeled == commit.as_str()).then(|| (name, id.to_string()))
    }

    /// The parents and the message of a commit.
    pub(crate) fn history(&self, commit: &str) -> Option<(Vec<String>, String)> {
        let local = self.repository.to_thread_local();
        let id = gix::ObjectId::from_hex(commit.as_bytes()).ok()?;
        let commit = local.find_commit(id).ok()?;
        let parents = commit.parent_ids().map(|id| id.to_string()).collect();
        Some((parents, commit.message_raw().ok()?.to_string()))
    }

    /// Full names of all refs with their commits.
    pub fn refs(&self) -> &std::collections::BTreeMap<String, String> {
        &self.refs.refs
    }
}
