//! Files of a source in memory, such as an unpacked chart.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use plumb_core::source::{Entry, EntryKind, RepoPath, SourceError, SourceFiles};
use sha2::{Digest as _, Sha256};

use crate::hash::hex;

/// Files in memory, such as the content of a chart archive.
#[derive(Clone, Debug, Default)]
pub struct MemoryFiles {
    files: BTreeMap<RepoPath, Vec<u8>>,
    /// The names in every directory.
    directories: BTreeMap<RepoPath, BTreeSet<String>>,
    /// The hashes of files and directories, computed on first use.
    hashes: OnceLock<BTreeMap<RepoPath, String>>,
}

impl MemoryFiles {
    /// From paths and contents.
    pub fn new(files: impl IntoIterator<Item = (RepoPath, Vec<u8>)>) -> Self {
        let files: BTreeMap<RepoPath, Vec<u8>> = files.into_iter().collect();
        let mut directories: BTreeMap<RepoPath, BTreeSet<String>> = BTreeMap::new();
        for path in files.keys() {
            // A directory that is already listed is already listed in its parents.
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
        // A path sorts after its directory, so in reverse order each directory comes after its content.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> RepoPath {
        RepoPath::parse(text).unwrap()
    }

    #[test]
    fn directories_list_their_entries() {
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
    fn many_directories_are_listed_quickly() {
        let many = (0..30_000).map(|n| (path(&format!("d{n}/e/f")), vec![b'x']));
        let files = MemoryFiles::new(many);
        let started = std::time::Instant::now();
        let entries = files.list(&RepoPath::root()).unwrap();
        assert_eq!(entries.len(), 30_000);
        assert!(started.elapsed() < std::time::Duration::from_secs(10), "{:?}", started.elapsed());
    }
}
