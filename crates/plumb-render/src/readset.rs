//! What a rendering reads: known before anything runs, the only thing that tools get to see, and the content
//! part of the cache's key. If it is too small, a tool fails for want of a file; it can never give stale results.

use std::collections::BTreeMap;
use std::sync::Arc;

use plumb_core::source::{EntryKind, RepoPath, SourceError, SourceFiles, follow};
use sha2::{Digest as _, Sha256};

/// Files and directories of one or more sources, with the hashes of their content.
pub(crate) struct ReadSet {
    sources: BTreeMap<String, Arc<dyn SourceFiles>>,
    /// By source name and path. The main source has the empty name.
    items: BTreeMap<(String, RepoPath), Item>,
    /// How many entries may be looked at.
    budget: usize,
}

struct Item {
    /// Where the path really leads.
    real: RepoPath,
    kind: EntryKind,
    hash: String,
}

impl ReadSet {
    pub(crate) fn new(main: Arc<dyn SourceFiles>, budget: usize) -> Self {
        Self { sources: [(String::new(), main)].into(), items: BTreeMap::new(), budget }
    }

    /// Adds another source under its name.
    pub(crate) fn add_source(&mut self, name: &str, files: Arc<dyn SourceFiles>) {
        self.sources.insert(name.to_owned(), files);
    }

    pub(crate) fn files(&self, source: &str) -> Option<&Arc<dyn SourceFiles>> {
        self.sources.get(source)
    }

    /// Adds a file or a whole directory, and what the links in it lead to.
    pub(crate) fn add(&mut self, source: &str, path: &RepoPath) -> Result<(), SourceError> {
        let files =
            Arc::clone(self.sources.get(source).ok_or_else(|| SourceError::NotFound { path: path.clone() })?);
        let mut waiting = vec![path.clone()];
        while let Some(path) = waiting.pop() {
            let key = (source.to_owned(), path.clone());
            if self.items.contains_key(&key) {
                continue;
            }
            let (real, entry) = follow(files.as_ref(), &path)?;
            if entry.kind == EntryKind::Directory && !self.covers(source, &real) {
                self.collect_links(files.as_ref(), &real, &mut waiting)?;
            }
            self.items.insert(key, Item { real, kind: entry.kind, hash: entry.hash });
        }
        Ok(())
    }

    /// Is the directory, or one above it, already in the set under its own path?
    fn covers(&self, source: &str, real: &RepoPath) -> bool {
        self.items.iter().any(|((of, path), item)| of == source && *path == item.real && real.is_within(path))
    }

    /// Finds the links below a directory: their targets lie elsewhere, so the directory's hash does not cover them.
    fn collect_links(
        &mut self,
        files: &dyn SourceFiles,
        directory: &RepoPath,
        found: &mut Vec<RepoPath>,
    ) -> Result<(), SourceError> {
        let mut waiting = vec![directory.clone()];
        while let Some(directory) = waiting.pop() {
            for entry in files.list(&directory)? {
                self.budget = self.budget.checked_sub(1).ok_or_else(|| SourceError::TooLarge {
                    path: directory.clone(),
                    size: u64::MAX,
                    limit: 0,
                })?;
                let path = directory.child(&entry.name);
                match entry.kind {
                    EntryKind::Directory => waiting.push(path),
                    EntryKind::Link => match follow(files, &path) {
                        Ok(_) => found.push(path),
                        // A link to nothing is only wrong for those who read it.
                        Err(SourceError::NotFound { .. }) => {}
                        Err(error) => return Err(error),
                    },
                    EntryKind::File | EntryKind::Executable | EntryKind::Submodule => {}
                }
            }
        }
        Ok(())
    }

    /// Feeds everything that was added into a hash.
    pub(crate) fn hash_into(&self, hasher: &mut Sha256) {
        for ((source, path), item) in &self.items {
            let line = format!(
                "{source}\0{}\0{}\0{:?}\0{}\n",
                path.as_str(),
                item.real.as_str(),
                item.kind,
                item.hash
            );
            hasher.update(line);
        }
    }

    /// What was added of one source: paths as given, outermost first.
    pub(crate) fn paths(&self, source: &str) -> impl Iterator<Item = &RepoPath> {
        self.items.keys().filter(move |(of, _)| of == source).map(|(_, path)| path)
    }
}
