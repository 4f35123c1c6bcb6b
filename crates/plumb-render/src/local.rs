//! Sources that are not in Git: a directory on disk (a checkout), or files in memory (an unpacked chart).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::OnceLock;

use plumb_core::source::{Entry, EntryKind, RepoPath, SourceError, SourceFiles};
use sha2::{Digest as _, Sha256};

/// A directory on disk, such as a checkout. `.git` is left out.
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

    /// Is every directory above the path a real one? A link there is not for us to follow.
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

/// Files in memory: what a chart archive contained.
#[derive(Clone, Debug, Default)]
pub struct MemoryFiles {
    files: BTreeMap<RepoPath, Vec<u8>>,
    /// The names in every directory.
    directories: BTreeMap<RepoPath, BTreeSet<String>>,
    /// Of files and directories, made when the first is asked for.
    hashes: OnceLock<BTreeMap<RepoPath, String>>,
}

impl MemoryFiles {
    /// From paths and contents.
    pub fn new(files: impl IntoIterator<Item = (RepoPath, Vec<u8>)>) -> Self {
        let files: BTreeMap<RepoPath, Vec<u8>> = files.into_iter().collect();
        let mut directories: BTreeMap<RepoPath, BTreeSet<String>> = BTreeMap::new();
        for path in files.keys() {
            // Whoever is known already is known to all that is above.
            let mut path = path.clone();
            while !path.is_root() {
                let parent = path.parent();
                let is_known = directories.contains_key(&parent);
                directories.entry(parent.clone()).or_default().insert(path.name().to_owned());
                if is_known {
                    break;
                }
                path = parent;
            }
        }
        Self { files, directories, hashes: OnceLock::new() }
    }

    fn hash(&self, path: &RepoPath) -> String {
        self.hashes.get_or_init(|| self.all_hashes()).get(path).cloned().unwrap_or_default()
    }

    fn all_hashes(&self) -> BTreeMap<RepoPath, String> {
        let mut hashes: BTreeMap<RepoPath, String> =
            self.files.iter().map(|(path, content)| (path.clone(), hex(&Sha256::digest(content)))).collect();
        // A path sorts behind the directory that it is in, so backwards every directory comes after its content.
        for (directory, names) in self.directories.iter().rev() {
            let mut listing = Sha256::new();
            for name in names {
                let hash = hashes.get(&directory.child(name)).map(String::as_str).unwrap_or_default();
                listing.update(format!("{name}\0{hash}\n"));
            }
            hashes.entry(directory.clone()).or_insert_with(|| hex(&listing.finalize()));
        }
        hashes
    }
}

impl SourceFiles for MemoryFiles {
    fn kind(&self, path: &RepoPath) -> Result<Option<EntryKind>, SourceError> {
        if self.files.contains_key(path) {
            return Ok(Some(EntryKind::File));
        }
        let is_directory = path.is_root() || self.directories.contains_key(path);
        Ok(is_directory.then_some(EntryKind::Directory))
    }

    fn entry(&self, path: &RepoPath) -> Result<Option<Entry>, SourceError> {
        let Some(kind) = self.kind(path)? else { return Ok(None) };
        Ok(Some(Entry { name: path.name().to_owned(), kind, hash: self.hash(path) }))
    }

    fn list(&self, directory: &RepoPath) -> Result<Vec<Entry>, SourceError> {
        match self.kind(directory)? {
            None => return Err(SourceError::NotFound { path: directory.clone() }),
            Some(EntryKind::Directory) => {}
            Some(_) => return Err(SourceError::NotADirectory { path: directory.clone() }),
        }
        let names = self.directories.get(directory).into_iter().flatten();
        names.filter_map(|name| self.entry(&directory.child(name)).transpose()).collect()
    }

    fn read(&self, path: &RepoPath) -> Result<Vec<u8>, SourceError> {
        match self.files.get(path) {
            Some(content) => Ok(content.clone()),
            None if self.kind(path)?.is_some() => Err(SourceError::NotAFile { path: path.clone() }),
            None => Err(SourceError::NotFound { path: path.clone() }),
        }
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> RepoPath {
        RepoPath::parse(text).unwrap()
    }

    #[test]
    fn directories_hold_what_is_in_them() {
        let files = |content: &str| {
            MemoryFiles::new(
                ["a/b/c", "a/b-d", "a-e", "f"].map(|name| (path(name), content.as_bytes().to_vec())),
            )
        };
        let names = |directory: &str| {
            let entries = files("x").list(&path(directory)).unwrap();
            entries.into_iter().map(|entry| entry.name).collect::<Vec<_>>()
        };
        assert_eq!(names("."), ["a", "a-e", "f"]);
        assert_eq!(names("a"), ["b", "b-d"]);
        assert_eq!(names("a/b"), ["c"]);
        let hash = |content: &str, of: &str| files(content).entry(&path(of)).unwrap().unwrap().hash;
        for of in [".", "a", "a/b", "a/b/c"] {
            assert_eq!(hash("x", of), hash("x", of));
            assert_ne!(hash("x", of), hash("y", of), "{of}");
        }
        assert!(files("x").list(&path("f")).is_err());
        assert!(files("x").entry(&path("b")).unwrap().is_none());
    }

    #[test]
    fn many_directories_are_listed_in_one_go() {
        let many = (0..30_000).map(|n| (path(&format!("d{n}/e/f")), vec![b'x']));
        let files = MemoryFiles::new(many);
        let started = std::time::Instant::now();
        let entries = files.list(&RepoPath::root()).unwrap();
        assert_eq!(entries.len(), 30_000);
        assert!(started.elapsed() < std::time::Duration::from_secs(10), "{:?}", started.elapsed());
    }
}
