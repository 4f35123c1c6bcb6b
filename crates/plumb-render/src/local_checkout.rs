//! Files of a source in a directory on disk, such as a checkout.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use plumb_core::source::{Entry, EntryKind, RepoPath, SourceError, SourceFiles};
use sha2::{Digest as _, Sha256};

use crate::hash::hex;

/// A directory on disk, such as a checkout, without `.git`.
pub struct LocalFiles {
    root: PathBuf,
}

impl LocalFiles {
    /// The files below this directory.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    fn absolute(&self, path: &RepoPath) -> PathBuf {
        self.root.join(path.as_str())
    }

    /// True if no directory above the path is a link: links are followed by the caller, inside the source.
    fn has_real_parents(&self, path: &RepoPath) -> bool {
        let mut parent = path.parent();
        while !parent.is_root() {
            if !fs::symlink_metadata(self.absolute(&parent)).is_ok_and(|metadata| metadata.is_dir()) {
                return false;
            }
            parent = parent.parent();
        }
        true
    }

    fn hash(&self, path: &RepoPath, kind: EntryKind) -> Result<String, SourceError> {
        let mut hasher = Sha256::new();
        if kind == EntryKind::Directory {
            for entry in self.list(path)? {
                hasher.update(format!("{}\0{:?}\0{}\n", entry.name, entry.kind, entry.hash));
            }
        } else {
            hasher.update(self.read(path)?);
        }
        Ok(hex(&hasher.finalize()))
    }
}

impl SourceFiles for LocalFiles {
    fn kind(&self, path: &RepoPath) -> Result<Option<EntryKind>, SourceError> {
        if !self.has_real_parents(path) {
            return Ok(None);
        }
        let metadata = match fs::symlink_metadata(self.absolute(path)) {
            Ok(metadata) => metadata,
            Err(error)
                if matches!(
                    error.kind(),
                    std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory
                ) =>
            {
                return Ok(None);
            }
            Err(error) => return Err(storage(path, error)),
        };
        Ok(kind(&metadata))
    }

    fn entry(&self, path: &RepoPath) -> Result<Option<Entry>, SourceError> {
        let Some(kind) = self.kind(path)? else { return Ok(None) };
        Ok(Some(Entry { name: path.name().to_owned(), kind, hash: self.hash(path, kind)? }))
    }

    fn list(&self, directory: &RepoPath) -> Result<Vec<Entry>, SourceError> {
        let failed = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::NotFound => SourceError::NotFound { path: directory.clone() },
            std::io::ErrorKind::NotADirectory => SourceError::NotADirectory { path: directory.clone() },
            _ => storage(directory, error),
        };
        let mut entries = Vec::new();
        for entry in fs::read_dir(self.absolute(directory)).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            let name = name.into_string().map_err(|name| SourceError::BadName {
                directory: directory.clone(),
                name: name.to_string_lossy().into_owned(),
            })?;
            if name != ".git"
                && let Some(entry) = self.entry(&directory.child(&name))?
            {
                entries.push(entry);
            }
        }
        entries.sort_by(|left, right| left.name.cmp(&right.name));
        Ok(entries)
    }

    fn read(&self, path: &RepoPath) -> Result<Vec<u8>, SourceError> {
        let absolute = self.absolute(path);
        if !self.has_real_parents(path) {
            return Err(SourceError::NotFound { path: path.clone() });
        }
        let metadata = fs::symlink_metadata(&absolute).map_err(|error| storage(path, error))?;
        match kind(&metadata) {
            Some(EntryKind::Link) => {
                let target = fs::read_link(&absolute).map_err(|error| storage(path, error))?;
                Ok(target.to_string_lossy().into_owned().into_bytes())
            }
            Some(EntryKind::File | EntryKind::Executable) => {
                fs::read(&absolute).map_err(|error| storage(path, error))
            }
            Some(EntryKind::Directory | EntryKind::Submodule) | None => {
                Err(SourceError::NotAFile { path: path.clone() })
            }
        }
    }
}

/// `None` for devices, pipes and sockets.
fn kind(metadata: &fs::Metadata) -> Option<EntryKind> {
    let file_type = metadata.file_type();
    if file_type.is_symlink() {
        Some(EntryKind::Link)
    } else if file_type.is_dir() {
        Some(EntryKind::Directory)
    } else if file_type.is_file() {
        let executable = metadata.permissions().mode() & 0o100 != 0;
        Some(if executable { EntryKind::Executable } else { EntryKind::File })
    } else {
        None
    }
}

fn storage(path: &RepoPath, error: std::io::Error) -> SourceError {
    SourceError::Storage { path: path.clone(), source: Box::new(error) }
}
