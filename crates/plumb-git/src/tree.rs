//! Reads the files of one commit from the object database, without a work tree.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use gix::objs::tree::EntryKind as GitKind;
use plumb_core::app::CommitId;
use plumb_core::source::{Entry, EntryKind, RepoPath, SourceError, SourceFiles};

use crate::objects::{Objects, ReadError, note_damage};

/// The files of one commit. Cheap to clone; safe to keep while the mirror is fetched, repacked or replaced.
#[derive(Clone)]
pub struct SourceTree {
    objects: Arc<Objects>,
    commit: CommitId,
    root: gix::ObjectId,
    max_blob: u64,
    /// Set when an object cannot be read, so that the next fetch rebuilds the mirror.
    damaged: Arc<AtomicBool>,
}

impl SourceTree {
    pub(crate) fn open(
        objects: Arc<Objects>,
        commit: CommitId,
        max_blob: u64,
        damaged: Arc<AtomicBool>,
    ) -> Result<Self, SourceError> {
        let id = gix::ObjectId::from_hex(commit.as_str().as_bytes())
            .map_err(|source| storage(&RepoPath::root(), source))?;
        let root = root_of(&objects, id).map_err(|source| {
            note_damage(&damaged);
            storage(&RepoPath::root(), source)
        })?;
        Ok(Self { objects, commit, root, max_blob, damaged })
    }

    /// The commit.
    pub fn commit(&self) -> &CommitId {
        &self.commit
    }

    fn failed(&self, path: &RepoPath, source: impl std::error::Error + Send + Sync + 'static) -> SourceError {
        note_damage(&self.damaged);
        storage(path, source)
    }

    /// The object at the path with its kind.
    fn find(
        &self,
        local: &gix::Repository,
        path: &RepoPath,
    ) -> Result<Option<(EntryKind, gix::ObjectId)>, SourceError> {
        if path.is_root() {
            return Ok(Some((EntryKind::Directory, self.root)));
        }
        let mut found = (EntryKind::Directory, self.root);
        for step in path.components() {
            if found.0 != EntryKind::Directory {
                return Ok(None);
            }
            let tree = self.objects.read(local, found.1).map_err(|error| self.failed(path, error))?;
            let tree = tree.try_into_tree().map_err(|error| self.failed(path, error))?;
            let mut next = None;
            for entry in tree.iter() {
                let entry = entry.map_err(|error| self.failed(path, error))?;
                if entry.filename() == step.as_bytes() {
                    next = Some((kind(entry.mode().kind()), entry.object_id()));
                    break;
                }
            }
            let Some(next) = next else { return Ok(None) };
            found = next;
        }
        Ok(Some(found))
    }

    fn view(&self, path: &RepoPath) -> Result<gix::Repository, SourceError> {
        self.objects.view().map_err(|error| self.failed(path, error))
    }
}

impl SourceFiles for SourceTree {
    fn kind(&self, path: &RepoPath) -> Result<Option<EntryKind>, SourceError> {
        let local = self.view(path)?;
        Ok(self.find(&local, path)?.map(|(kind, _)| kind))
    }

    fn entry(&self, path: &RepoPath) -> Result<Option<Entry>, SourceError> {
        let local = self.view(path)?;
        let found = self.find(&local, path)?;
        Ok(found.map(|(kind, id)| Entry { name: path.name().to_owned(), kind, hash: id.to_string() }))
    }

    fn list(&self, directory: &RepoPath) -> Result<Vec<Entry>, SourceError> {
        let local = self.view(directory)?;
        let (kind, id) =
            self.find(&local, directory)?.ok_or_else(|| SourceError::NotFound { path: directory.clone() })?;
        match kind {
            EntryKind::Directory => {}
            EntryKind::Submodule => return Err(SourceError::Submodule { path: directory.clone() }),
            EntryKind::File | EntryKind::Executable | EntryKind::Link => {
                return Err(SourceError::NotADirectory { path: directory.clone() });
            }
        }
        let tree = self.objects.read(&local, id).map_err(|error| self.failed(directory, error))?;
        let tree = tree.try_into_tree().map_err(|error| self.failed(directory, error))?;
        let mut entries = Vec::new();
        for entry in tree.iter() {
            let entry = entry.map_err(|error| self.failed(directory, error))?;
            entries.push(Entry {
                name: usable_name(directory, entry.filename())?,
                kind: self::kind(entry.mode().kind()),
                hash: entry.object_id().to_string(),
            });
        }
        // Git sorts directories as if their names ended in a slash.
        entries.sort_by(|left, right| left.name.cmp(&right.name));
        Ok(entries)
    }

    fn read(&self, path: &RepoPath) -> Result<Vec<u8>, SourceError> {
        let local = self.view(path)?;
        let (kind, id) =
            self.find(&local, path)?.ok_or_else(|| SourceError::NotFound { path: path.clone() })?;
        match kind {
            EntryKind::File | EntryKind::Executable | EntryKind::Link => {}
            EntryKind::Directory => return Err(SourceError::NotAFile { path: path.clone() }),
            EntryKind::Submodule => return Err(SourceError::Submodule { path: path.clone() }),
        }
        // The size is checked first: a blob of gigabytes must not be unpacked.
        let size = local.find_header(id).map_err(|error| self.failed(path, error))?.size();
        if size > self.max_blob {
            return Err(SourceError::TooLarge { path: path.clone(), size, limit: self.max_blob });
        }
        let blob = self.objects.read(&local, id).map_err(|error| self.failed(path, error))?;
        let mut blob = blob.try_into_blob().map_err(|error| self.failed(path, error))?;
        Ok(blob.take_data())
    }
}

/// The tree of a commit.
fn root_of(objects: &Objects, commit: gix::ObjectId) -> Result<gix::ObjectId, ReadError> {
    let view = objects.view()?;
    let commit = objects.read(&view, commit)?.try_into_commit()?;
    Ok(commit.tree_id()?.detach())
}

/// The commit of `HEAD` of a checkout on the local disk; `None` if it is not a repository, or has no commit.
pub fn checked_out(directory: &Path) -> Option<String> {
    let repository = gix::discover(directory).ok()?;
    Some(repository.head_id().ok()?.to_string())
}

fn kind(kind: GitKind) -> EntryKind {
    match kind {
        GitKind::Tree => EntryKind::Directory,
        GitKind::Blob => EntryKind::File,
        GitKind::BlobExecutable => EntryKind::Executable,
        GitKind::Link => EntryKind::Link,
        GitKind::Commit => EntryKind::Submodule,
    }
}

/// A hostile tree can contain any names. Names that lead out of the directory, or that would be a repository
/// on disk, are refused.
fn usable_name(directory: &RepoPath, name: &[u8]) -> Result<String, SourceError> {
    let bad = || SourceError::BadName {
        directory: directory.clone(),
        name: String::from_utf8_lossy(name).into_owned(),
    };
    let text = std::str::from_utf8(name).map_err(|_| bad())?;
    let refused =
        matches!(text, "" | "." | "..") || text.eq_ignore_ascii_case(".git") || text.contains(['/', '\0']);
    if refused { Err(bad()) } else { Ok(text.to_owned()) }
}

fn storage(path: &RepoPath, source: impl std::error::Error + Send + Sync + 'static) -> SourceError {
    SourceError::Storage { path: path.clone(), source: Box::new(source) }
}
