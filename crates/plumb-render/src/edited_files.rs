//! Files of a source with some of them changed, while the files themselves stay as they are.

use std::collections::BTreeMap;
use std::sync::Arc;

use plumb_core::source::{Entry, EntryKind, RepoPath, SourceError, SourceFiles};
use sha2::{Digest as _, Sha256};

use crate::hash::hex;

/// The files of a source in which some have other contents. Only files that exist can be changed.
pub struct EditedFiles {
    files: Arc<dyn SourceFiles>,
    edits: BTreeMap<RepoPath, Vec<u8>>,
}

impl EditedFiles {
    /// These files with these contents. Paths lead to the files themselves, not to links.
    pub fn new(files: Arc<dyn SourceFiles>, edits: BTreeMap<RepoPath, Vec<u8>>) -> Self {
        Self { files, edits }
    }

    /// The hash of an entry covers everything below it, and so the edits there.
    fn edited(&self, path: &RepoPath, entry: Entry) -> Entry {
        let mut edits = self.edits.iter().filter(|(edited, _)| edited.is_within(path)).peekable();
        if edits.peek().is_none() {
            return entry;
        }
        let mut hasher = Sha256::new();
        hasher.update(format!("{}\0", entry.hash));
        for (edited, content) in edits {
            hasher.update(format!("{}\0{}\0", edited.as_str(), content.len()));
            hasher.update(content);
        }
        Entry { hash: hex(&hasher.finalize()), ..entry }
    }
}

impl SourceFiles for EditedFiles {
    fn kind(&self, path: &RepoPath) -> Result<Option<EntryKind>, SourceError> {
        self.files.kind(path)
    }

    fn entry(&self, path: &RepoPath) -> Result<Option<Entry>, SourceError> {
        Ok(self.files.entry(path)?.map(|entry| self.edited(path, entry)))
    }

    fn list(&self, directory: &RepoPath) -> Result<Vec<Entry>, SourceError> {
        let entries = self.files.list(directory)?.into_iter();
        Ok(entries.map(|entry| self.edited(&directory.child(&entry.name), entry)).collect())
    }

    fn read(&self, path: &RepoPath) -> Result<Vec<u8>, SourceError> {
        match self.edits.get(path) {
            Some(content) => Ok(content.clone()),
            None => self.files.read(path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LocalFiles;

    #[test]
    fn an_edit_shows_in_the_file_and_in_every_hash_above_it() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("app/sub")).unwrap();
        for file in ["app/sub/a.yaml", "app/b.yaml"] {
            std::fs::write(folder.path().join(file), "old").unwrap();
        }
        let path = |text: &str| RepoPath::parse(text).unwrap();
        let files: Arc<dyn SourceFiles> = Arc::new(LocalFiles::new(folder.path()));
        let edits = BTreeMap::from([(path("app/sub/a.yaml"), b"new".to_vec())]);
        let edited = EditedFiles::new(Arc::clone(&files), edits);
        assert_eq!(edited.read(&path("app/sub/a.yaml")).unwrap(), b"new");
        assert_eq!(edited.read(&path("app/b.yaml")).unwrap(), b"old");
        let hash = |files: &dyn SourceFiles, text: &str| files.entry(&path(text)).unwrap().unwrap().hash;
        for above in ["app/sub/a.yaml", "app/sub", "app"] {
            assert_ne!(hash(&edited, above), hash(files.as_ref(), above), "{above}");
        }
        assert_eq!(hash(&edited, "app/b.yaml"), hash(files.as_ref(), "app/b.yaml"));
        let listed = |files: &dyn SourceFiles| files.list(&path("app")).unwrap();
        let changed: Vec<bool> =
            listed(&edited).iter().zip(listed(files.as_ref())).map(|(new, old)| *new != old).collect();
        assert_eq!(changed, [false, true]);
        assert_eq!(std::fs::read(folder.path().join("app/sub/a.yaml")).unwrap(), b"old");
    }
}
