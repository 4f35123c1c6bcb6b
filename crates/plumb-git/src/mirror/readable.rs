//! A state of one repository that can be read.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use parking_lot::Mutex;
use plumb_core::app::CommitId;
use plumb_core::source::SourceError;

use super::contained::Contained;
use crate::objects::{Objects, ReadError, note_damage};
use crate::refs::{Found, RefTable, ResolveError, RevisionSpec};
use crate::tree::SourceTree;
use crate::url::RepoUrl;

/// A readable state of one repository.
#[derive(Clone)]
pub struct Mirror {
    pub(super) url: RepoUrl,
    pub(super) objects: Arc<Objects>,
    pub(super) refs: Arc<RefTable>,
    pub(super) resolved: Arc<Resolved>,
    pub(super) contained: Arc<Contained>,
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

/// A revision in one state of a repository.
pub(super) enum LookedUp {
    /// It means this commit.
    Commit(CommitId),
    /// It is the hash of one of these commits, which may be on no branch or tag.
    Hashes(Vec<CommitId>),
}

/// Most commits that one prefix is compared with.
const MOST_WITH_PREFIX: usize = 64;

/// Result of a fetch.
#[derive(Clone)]
pub struct Fetched {
    /// The repository as it is now.
    pub mirror: Mirror,
    /// True if the server had something new.
    pub changed: bool,
}

/// What a commit says about itself. All of it is text of whoever made the commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitDetails {
    /// Name and address of the author.
    pub author: String,
    /// When it was made, in seconds since 1970.
    pub seconds: i64,
    /// Its message.
    pub message: String,
    /// The tags that name it.
    pub tags: Vec<String>,
}

impl Mirror {
    /// The address it was fetched from.
    pub fn url(&self) -> &RepoUrl {
        &self.url
    }

    /// The commit of a revision in this mirror. A hash resolves only if the commit is known to be on a branch or tag:
    /// [`Mirrors::resolve`](super::Mirrors::resolve) finds out.
    pub fn resolve(&self, spec: &RevisionSpec) -> Result<CommitId, ResolveError> {
        match self.look_up(spec)? {
            LookedUp::Commit(commit) => Ok(commit),
            LookedUp::Hashes(_) => Err(self.not_on_refs(spec)),
        }
    }

    pub(super) fn not_on_refs(&self, spec: &RevisionSpec) -> ResolveError {
        ResolveError::NotOnRefs {
            revision: spec.revision.trim().to_owned(),
            repository: self.url.to_string(),
        }
    }

    pub(super) fn ambiguous(&self, spec: &RevisionSpec) -> ResolveError {
        ResolveError::Ambiguous {
            revision: spec.revision.trim().to_owned(),
            repository: self.url.to_string(),
        }
    }

    pub(super) fn look_up(&self, spec: &RevisionSpec) -> Result<LookedUp, ResolveError> {
        if let Some(known) = self.resolved.get(spec) {
            return Ok(LookedUp::Commit(known));
        }
        let local = self.view(spec)?;
        let commit = match self.refs.resolve(spec, &self.url.to_string())? {
            Found::OnRefs(commit) => {
                self.check_commit(&local, spec, &commit).inspect_err(|error| self.note_missing(error))?;
                self.contained.note(None, &commit);
                commit
            }
            Found::OnOther(commit) => {
                self.check_commit(&local, spec, &commit).inspect_err(|error| self.note_missing(error))?;
                self.contained.note(Some(spec.revision.trim()), &commit);
                commit
            }
            Found::Hash(commit) => {
                self.check_commit(&local, spec, &commit)?;
                if !self.contained.satisfies(&spec.hashes, &commit) {
                    return Ok(LookedUp::Hashes(vec![commit]));
                }
                commit
            }
            Found::Prefix(prefix) => return self.with_prefix(&local, spec, &prefix).map(LookedUp::Hashes),
        };
        self.resolved.keep(spec, &commit);
        Ok(LookedUp::Commit(commit))
    }

    /// The commits whose hash begins like this. In a large repository seven digits are also the prefix of other
    /// objects. As in git, only commits count.
    fn with_prefix(
        &self,
        local: &gix::Repository,
        spec: &RevisionSpec,
        prefix: &str,
    ) -> Result<Vec<CommitId>, ResolveError> {
        let not_found = || self.not_found(spec);
        let prefix = gix::hash::Prefix::from_hex(prefix).map_err(|_| not_found())?;
        let mut found = std::collections::HashSet::new();
        local.objects.lookup_prefix(prefix, Some(&mut found)).map_err(|_| {
            note_damage(&self.damaged);
            not_found()
        })?;
        let ids = found.iter().filter_map(|id| id.to_string().parse::<CommitId>().ok());
        let (commits, others): (Vec<_>, Vec<_>) =
            ids.partition(|id| self.check_commit(local, spec, id).is_ok());
        match (commits.is_empty(), others.first()) {
            (false, _) if commits.len() > MOST_WITH_PREFIX => Err(self.ambiguous(spec)),
            (false, _) => Ok(commits),
            (true, Some(other)) => Err(self.check_commit(local, spec, other).err().unwrap_or_else(not_found)),
            (true, None) => Err(not_found()),
        }
    }

    fn check_commit(
        &self,
        local: &gix::Repository,
        spec: &RevisionSpec,
        commit: &CommitId,
    ) -> Result<(), ResolveError> {
        let id = gix::ObjectId::from_hex(commit.as_str().as_bytes()).map_err(|_| self.not_found(spec))?;
        match local.try_find_header(id) {
            Ok(Some(header)) if header.kind() == gix::objs::Kind::Commit => Ok(()),
            Ok(Some(_)) => Err(ResolveError::NotACommit {
                revision: spec.revision.trim().to_owned(),
                repository: self.url.to_string(),
            }),
            Ok(None) => Err(self.not_found(spec)),
            Err(_) => {
                note_damage(&self.damaged);
                Err(self.not_found(spec))
            }
        }
    }

    fn view(&self, spec: &RevisionSpec) -> Result<gix::Repository, ResolveError> {
        self.objects.view().map_err(|_| {
            note_damage(&self.damaged);
            self.not_found(spec)
        })
    }

    /// A commit that a branch or tag names and that is not there was there: the mirror is damaged.
    fn note_missing(&self, error: &ResolveError) {
        if matches!(error, ResolveError::NotFound { .. }) {
            note_damage(&self.damaged);
        }
    }

    fn not_found(&self, spec: &RevisionSpec) -> ResolveError {
        ResolveError::NotFound {
            revision: spec.revision.trim().to_owned(),
            repository: self.url.to_string(),
            hint: String::new(),
        }
    }

    /// The files of a commit.
    pub fn tree(&self, commit: &CommitId) -> Result<SourceTree, SourceError> {
        SourceTree::open(Arc::clone(&self.objects), commit.clone(), self.max_blob, Arc::clone(&self.damaged))
    }

    /// The annotated tag of this commit that a revision names, if it names one.
    pub(crate) fn annotated_tag(&self, spec: &RevisionSpec, commit: &CommitId) -> Option<AnnotatedTag> {
        let name = self.refs.tag_of(spec, &self.url.to_string())?;
        let hash = self.refs.tag_objects.get(&name)?.clone();
        let read = self.noting_damage(|view| self.peel_tag(view, &hash));
        // Without its object the tag has no name, and is not trusted.
        let (own_name, peeled) = read.unwrap_or_else(|| (String::new(), commit.to_string()));
        let name = name.trim_start_matches("refs/tags/").to_owned();
        // The tag may have moved since the revision was resolved.
        (peeled == commit.as_str()).then_some(AnnotatedTag { name, own_name, hash })
    }

    /// The name in a tag object, and the commit that it leads to.
    fn peel_tag(&self, view: &gix::Repository, hash: &str) -> Result<(String, String), ReadError> {
        let (mut id, mut name) = (object_id(hash)?, None);
        loop {
            let object = self.objects.read(view, id)?;
            if object.kind != gix::objs::Kind::Tag {
                return Ok((name.unwrap_or_default(), id.to_string()));
            }
            let tag = object.try_into_tag()?;
            let tag = tag.decode()?;
            name.get_or_insert_with(|| tag.name.to_string());
            id = tag.target();
        }
    }

    /// What a commit says about itself; `None` if it cannot be read.
    pub fn details(&self, commit: &CommitId) -> Option<CommitDetails> {
        let mut details = self.noting_damage(|view| {
            let read = self.objects.read(view, object_id(commit.as_str())?)?.try_into_commit()?;
            let author = read.author()?;
            Ok(CommitDetails {
                author: format!("{} <{}>", author.name, author.email),
                seconds: author.seconds(),
                message: read.message_raw()?.to_string(),
                tags: Vec::new(),
            })
        })?;
        let tags = self.refs.refs.iter().filter(|(_, hash)| hash.as_str() == commit.as_str());
        details.tags =
            tags.filter_map(|(name, _)| Some(name.strip_prefix("refs/tags/")?.to_owned())).collect();
        Some(details)
    }

    /// True if the mirror has this commit, on a branch or not.
    pub(super) fn has_commit(&self, commit: &CommitId) -> bool {
        let found = self.noting_damage(|view| Ok(view.try_find_header(object_id(commit.as_str())?)?));
        found.flatten().is_some_and(|header| header.kind() == gix::objs::Kind::Commit)
    }

    /// Set when something of the mirror cannot be read.
    pub(crate) fn damaged(&self) -> &Arc<AtomicBool> {
        &self.damaged
    }

    /// The parents and the message of a commit.
    pub(crate) fn history(&self, commit: &str) -> Option<(Vec<String>, String)> {
        self.noting_damage(|view| {
            let commit = self.objects.read(view, object_id(commit)?)?.try_into_commit()?;
            let parents = commit.parent_ids().map(|id| id.to_string()).collect();
            Ok((parents, commit.message_raw()?.to_string()))
        })
    }

    fn noting_damage<T>(&self, read: impl FnOnce(&gix::Repository) -> Result<T, ReadError>) -> Option<T> {
        let read = self.objects.view().and_then(|view| read(&view));
        read.inspect_err(|_| note_damage(&self.damaged)).ok()
    }

    /// Full names of all branches and tags with their commits.
    pub fn refs(&self) -> &std::collections::BTreeMap<String, String> {
        &self.refs.refs
    }
}

fn object_id(hash: &str) -> Result<gix::ObjectId, ReadError> {
    Ok(gix::ObjectId::from_hex(hash.as_bytes()).map_err(gix::Error::from_error)?)
}

/// A tag that is an object of its own.
pub(crate) struct AnnotatedTag {
    /// The name under which it was found.
    pub(crate) name: String,
    /// The name in the object, which its signature covers.
    pub(crate) own_name: String,
    pub(crate) hash: String,
}
