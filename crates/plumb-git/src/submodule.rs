//! Submodules: other repositories that a commit points to, fetched as mirrors of their own.

use std::collections::{BTreeMap, HashSet};

use plumb_core::app::CommitId;
use plumb_core::source::{Entry, EntryKind, RepoPath, SourceError, SourceFiles};

use crate::access::RepoAccess;
use crate::mirror::{Mirror, Mirrors, ResolveOrFetchError};
use crate::refs::RevisionSpec;
use crate::retry::Retry;
use crate::tree::SourceTree;
use crate::url::{BadUrl, RepoUrl, Transport};

/// Most submodules of one commit, and how deep they may nest.
const MAX_SUBMODULES: usize = 100;
const MAX_DEPTH: usize = 8;
/// How deep directories may nest.
const MAX_DIRECTORIES: usize = 256;

/// A commit together with the submodules it points to, which look like directories.
#[derive(Clone)]
pub struct TreeWithSubmodules {
    main: SourceTree,
    submodules: BTreeMap<RepoPath, SourceTree>,
}

/// Why a submodule cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SubmoduleError {
    /// A commit cannot be read.
    #[error("cannot read the submodules")]
    Read(#[source] SourceError),
    /// Its address is missing from `.gitmodules`.
    #[error("submodule `{path}` has no URL in .gitmodules")]
    NoAddress {
        /// Which one.
        path: RepoPath,
    },
    /// Its address is refused.
    #[error("cannot use submodule `{path}`")]
    Address {
        /// Which one.
        path: RepoPath,
        /// Why.
        #[source]
        source: BadUrl,
    },
    /// A repository on the network points to the local disk.
    #[error("cannot use submodule `{path}`: it is on the local disk and its repository is not")]
    Local {
        /// Which one.
        path: RepoPath,
    },
    /// The project does not permit its address.
    #[error("cannot use submodule `{path}`: {reason}")]
    Refused {
        /// Which one.
        path: RepoPath,
        /// Why.
        reason: String,
    },
    /// It cannot be fetched.
    #[error("cannot fetch submodule `{path}`")]
    Fetch {
        /// Which one.
        path: RepoPath,
        /// Why.
        #[source]
        source: ResolveOrFetchError,
    },
    /// Too many, or too deep.
    #[error("the commit has more than {MAX_SUBMODULES} submodules, or they nest deeper than {MAX_DEPTH}")]
    TooMany,
}

impl SubmoduleError {
    /// Can the same call succeed later?
    pub fn retry(&self) -> Retry {
        match self {
            Self::Read(error) => Retry::of_source(error),
            Self::Fetch { source, .. } => source.retry(),
            Self::NoAddress { .. }
            | Self::Address { .. }
            | Self::Local { .. }
            | Self::Refused { .. }
            | Self::TooMany => Retry::Permanent,
        }
    }

    /// Short name of the kind of failure, for metrics.
    pub fn category(&self) -> &'static str {
        "submodule"
    }
}

/// Returns the credentials for an address, or why the address is not permitted.
pub type SubmoduleAccess<'a> = dyn Fn(&RepoUrl) -> Result<RepoAccess, String> + Send + Sync + 'a;

impl Mirrors {
    /// The files of a commit with all its submodules. `access` returns the credentials for each address or
    /// refuses it: other servers do not get the credentials of the main repository unless `access` returns
    /// them.
    pub async fn tree_with_submodules(
        &self,
        mirror: &Mirror,
        commit: &CommitId,
        access: &SubmoduleAccess<'_>,
    ) -> Result<TreeWithSubmodules, SubmoduleError> {
        let main = mirror.tree(commit).map_err(SubmoduleError::Read)?;
        let mut submodules = BTreeMap::new();
        let mut waiting = vec![(RepoPath::root(), mirror.url().clone(), main.clone(), 0)];
        while let Some((prefix, url, tree, depth)) = waiting.pop() {
            for (path, commit) in gitlinks(&tree)? {
                if submodules.len() >= MAX_SUBMODULES || depth >= MAX_DEPTH {
                    return Err(SubmoduleError::TooMany);
                }
                let whole = path.components().fold(prefix.clone(), |path, component| path.child(component));
                let address = address(&tree, &path)?
                    .ok_or_else(|| SubmoduleError::NoAddress { path: whole.clone() })?;
                let sub_url = url
                    .submodule(&address)
                    .map_err(|source| SubmoduleError::Address { path: whole.clone(), source })?;
                if sub_url.transport() == Transport::File && url.transport() != Transport::File {
                    return Err(SubmoduleError::Local { path: whole });
                }
                let credentials = access(&sub_url)
                    .map_err(|reason| SubmoduleError::Refused { path: whole.clone(), reason })?;
                let (sub_mirror, commit) = self
                    .resolve(&sub_url, &credentials, &RevisionSpec::of_submodule(commit))
                    .await
                    .map_err(|source| SubmoduleError::Fetch { path: whole.clone(), source })?;
                let sub_tree = sub_mirror.tree(&commit).map_err(SubmoduleError::Read)?;
                waiting.push((whole.clone(), sub_url, sub_tree.clone(), depth + 1));
                submodules.insert(whole, sub_tree);
            }
        }
        Ok(TreeWithSubmodules { main, submodules })
    }
}

/// Every submodule of one tree with its commit.
fn gitlinks(tree: &SourceTree) -> Result<Vec<(RepoPath, String)>, SubmoduleError> {
    if tree.entry(&RepoPath::root().child(".gitmodules")).map_err(SubmoduleError::Read)?.is_none() {
        return Ok(Vec::new());
    }
    let mut search = Search { tree, without: HashSet::new(), found: Vec::new() };
    search.walk(&RepoPath::root(), 0)?;
    Ok(search.found)
}

/// A search for submodules. A hostile repository can contain the same tree in a billion places, so a tree
/// without submodules is searched once.
struct Search<'a> {
    tree: &'a SourceTree,
    without: HashSet<String>,
    found: Vec<(RepoPath, String)>,
}

impl Search<'_> {
    fn walk(&mut self, directory: &RepoPath, depth: usize) -> Result<(), SubmoduleError> {
        if depth > MAX_DIRECTORIES || self.found.len() > MAX_SUBMODULES {
            return Err(SubmoduleError::TooMany);
        }
        for entry in self.tree.list(directory).map_err(SubmoduleError::Read)? {
            let path = directory.child(&entry.name);
            match entry.kind {
                EntryKind::Directory if self.without.contains(&entry.hash) => {}
                EntryKind::Directory => {
                    let n_before = self.found.len();
                    self.walk(&path, depth + 1)?;
                    if self.found.len() == n_before {
                        self.without.insert(entry.hash);
                    }
                }
                EntryKind::Submodule => self.found.push((path, entry.hash)),
                EntryKind::File | EntryKind::Executable | EntryKind::Link => {}
            }
        }
        Ok(())
    }
}

/// The address of a path in `.gitmodules`. Only `path` and `url` are read: other keys (`update = !command`)
/// have no effect.
fn address(tree: &SourceTree, path: &RepoPath) -> Result<Option<String>, SubmoduleError> {
    let bytes = tree.read(&RepoPath::root().child(".gitmodules")).map_err(SubmoduleError::Read)?;
    let text = String::from_utf8_lossy(&bytes);
    let (mut at, mut url, mut found) = (None, None, None);
    for line in text.lines().chain(["["]) {
        let line = line.trim();
        if line.starts_with('[') {
            if at.take() == Some(path.as_str()) && found.is_none() {
                found = url.take().map(str::to_owned);
            }
            url = None;
        } else if let Some((key, value)) = line.split_once('=') {
            let value = value.trim().trim_matches('"');
            match key.trim() {
                "path" => at = Some(value),
                "url" => url = Some(value),
                _ => {}
            }
        }
    }
    Ok(found)
}

impl TreeWithSubmodules {
    /// The tree that contains a path, and the path inside it.
    fn holder(&self, path: &RepoPath) -> (&SourceTree, RepoPath) {
        let inner = self.submodules.iter().rev().find_map(|(at, tree)| {
            let below = path.below(at)?;
            Some((tree, RepoPath::parse(below).ok()?))
        });
        inner.unwrap_or_else(|| (&self.main, path.clone()))
    }
}

impl SourceFiles for TreeWithSubmodules {
    fn kind(&self, path: &RepoPath) -> Result<Option<EntryKind>, SourceError> {
        let (tree, inner) = self.holder(path);
        tree.kind(&inner)
    }

    fn entry(&self, path: &RepoPath) -> Result<Option<Entry>, SourceError> {
        let (tree, inner) = self.holder(path);
        let entry = tree.entry(&inner)?;
        Ok(entry.map(|entry| Entry { name: path.name().to_owned(), ..entry }))
    }

    fn list(&self, directory: &RepoPath) -> Result<Vec<Entry>, SourceError> {
        let (tree, inner) = self.holder(directory);
        let entries = tree.list(&inner)?;
        // The hash of a directory covers the commits of its submodules, so their content needs no hash of its
        // own.
        Ok(entries
            .into_iter()
            .map(|entry| {
                let is_fetched = self.submodules.contains_key(&directory.child(&entry.name));
                if is_fetched { Entry { kind: EntryKind::Directory, ..entry } } else { entry }
            })
            .collect())
    }

    fn read(&self, path: &RepoPath) -> Result<Vec<u8>, SourceError> {
        let (tree, inner) = self.holder(path);
        tree.read(&inner)
    }
}
