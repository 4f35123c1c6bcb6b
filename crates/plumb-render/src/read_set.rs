//! The files that a rendering reads. The set is known before a tool runs, the tool sees only these files, and their
//! hashes are part of the cache key. If the set is too small, a tool fails because a file is missing; a cached result
//! is never stale.

use std::collections::BTreeMap;
use std::sync::Arc;

use plumb_core::source::{EntryKind, RepoPath, SourceError, SourceFiles, follow};
use sha2::{Digest as _, Sha256};

use crate::error::RenderError;

/// Files and directories of one or more sources, with the hashes of their content.
pub(crate) struct ReadSet {
    sources: BTreeMap<String, Arc<dyn SourceFiles>>,
    /// By source name and path. The main source has the empty name.
    items: BTreeMap<(String, RepoPath), ReadItem>,
    /// Entries that were listed, and how many may be.
    n_entries: usize,
    max_entries: usize,
}

struct ReadItem {
    /// The path after following links.
    real: RepoPath,
    kind: EntryKind,
    hash: String,
}

/// A file of the main source (empty name) or of a referenced source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SourceFile {
    pub(crate) source: String,
    pub(crate) path: RepoPath,
}

/// Deepest nesting of directories, counted from the repository's root.
const MAX_DEPTH: usize = 128;

/// A crafted Git tree can contain itself, so a small repository can be very deep. Each path takes memory.
pub(crate) fn check_depth(directory: &RepoPath) -> Result<(), RenderError> {
    if directory.components().count() <= MAX_DEPTH {
        return Ok(());
    }
    let start = directory.components().take(3).collect::<Vec<_>>().join("/");
    Err(RenderError::Limit { what: format!("depth of directory `{start}/…`"), limit: MAX_DEPTH as u64 })
}

impl ReadSet {
    pub(crate) fn new(main: Arc<dyn SourceFiles>, max_entries: usize) -> Self {
        Self { sources: [(String::new(), main)].into(), items: BTreeMap::new(), n_entries: 0, max_entries }
    }

    /// Adds another source under its name.
    pub(crate) fn add_source(&mut self, name: &str, files: Arc<dyn SourceFiles>) {
        self.sources.insert(name.to_owned(), files);
    }

    pub(crate) fn files(&self, source: &str) -> Option<&Arc<dyn SourceFiles>> {
        self.sources.get(source)
    }

    /// Adds a file or a whole directory, and the targets of the links in it. `what` describes it in errors.
    pub(crate) fn add(&mut self, source: &str, path: &RepoPath, what: &str) -> Result<(), RenderError> {
        let failed = |source| RenderError::Read { what: what.to_owned(), source };
        let missing = || failed(SourceError::NotFound { path: path.clone() });
        let files = Arc::clone(self.sources.get(source).ok_or_else(missing)?);
        let mut waiting = vec![path.clone()];
        while let Some(path) = waiting.pop() {
            let key = (source.to_owned(), path.clone());
            if self.items.contains_key(&key) {
                continue;
            }
            let (real, kind) = follow(files.as_ref(), &path).map_err(failed)?;
            if kind == EntryKind::Directory && !self.covers(source, &real) {
                self.collect_links(files.as_ref(), &real, &mut waiting)?;
            }
            let entry = files.entry(&real).map_err(failed)?.ok_or_else(missing)?;
            self.items.insert(key, ReadItem { real, kind, hash: entry.hash });
        }
        Ok(())
    }

    /// True if the directory, or one above it, is already in the set under its own path.
    fn covers(&self, source: &str, real: &RepoPath) -> bool {
        self.items.iter().any(|((of, path), item)| of == source && *path == item.real && real.is_within(path))
    }

    /// Finds the links below a directory. The directory's hash does not cover their targets.
    fn collect_links(
        &mut self,
        files: &dyn SourceFiles,
        directory: &RepoPath,
        found: &mut Vec<RepoPath>,
    ) -> Result<(), RenderError> {
        let mut waiting = vec![directory.clone()];
        while let Some(directory) = waiting.pop() {
            let entries =
                files.list(&directory).map_err(RenderError::read(format!("directory `{directory}`")))?;
            self.n_entries += entries.len();
            check_depth(&directory)?;
            if self.n_entries > self.max_entries {
                let what = format!("number of files, at `{directory}`,");
                return Err(RenderError::Limit { what, limit: self.max_entries as u64 });
            }
            for entry in entries {
                let path = directory.child(&entry.name);
                match entry.kind {
                    EntryKind::Directory => waiting.push(path),
                    EntryKind::Link => match follow(files, &path) {
                        Ok(_) => found.push(path),
                        // A dangling link is an error only if the tool reads it.
                        Err(SourceError::NotFound { .. }) => {}
                        Err(source) => return Err(RenderError::Read { what: format!("`{path}`"), source }),
                    },
                    EntryKind::File | EntryKind::Executable | EntryKind::Submodule => {}
                }
            }
        }
        Ok(())
    }

    /// Adds the whole set to a hash.
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

    /// The paths that were added for one source, as given, parents first.
    pub(crate) fn paths(&self, source: &str) -> impl Iterator<Item = &RepoPath> {
        self.items.keys().filter(move |(of, _)| of == source).map(|(_, path)| path)
    }
}
