//! The files of a repository: as they are on disk, or at a commit.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use plumb_core::project::normalize_repo_url;
use plumb_core::source::{EntryKind, RepoPath, SourceFiles};
use plumb_git::{SourceTree, WorkingCopy, WorkingCopyError};
use plumb_render::LocalFiles;

use crate::error::CommandError;
use crate::exit::ExitCode;

/// No repository has more files that can be manifests.
const MOST_FILES: usize = 50_000;
/// Larger files are no Applications.
const MOST_BYTES: u64 = 2 << 20;

/// The files of a repository at one state.
pub(crate) struct RepositoryState {
    /// Root of the working copy.
    pub(crate) root: PathBuf,
    /// Its files.
    pub(crate) files: Arc<dyn SourceFiles>,
    /// The commit.
    pub(crate) revision: String,
    /// The URLs under which Applications name it.
    urls: Vec<String>,
    tree: Option<SourceTree>,
}

impl RepositoryState {
    /// The files on disk, committed or not. A directory without a repository is its own root.
    pub(crate) fn on_disk(directory: &Path) -> Result<Self, CommandError> {
        let opened = match WorkingCopy::open(directory) {
            Ok(copy) => Some(copy),
            Err(WorkingCopyError::NotARepository { .. }) => None,
            Err(error) => return Err(unusable(directory, error)),
        };
        let root = match &opened {
            Some(copy) => copy.root().to_path_buf(),
            None => directory.to_path_buf(),
        };
        let root = root
            .canonicalize()
            .map_err(|error| CommandError::because(format!("open {}", root.display()), error))?;
        Ok(Self {
            files: Arc::new(LocalFiles::new(root.clone())),
            revision: plumb_git::checked_out(&root).unwrap_or_default(),
            urls: opened.map(|copy| copy.remotes()).unwrap_or_default(),
            root,
            tree: None,
        })
    }

    /// The files of a revision.
    pub(crate) fn at(directory: &Path, revision: &str) -> Result<Self, CommandError> {
        let copy = WorkingCopy::open(directory).map_err(|error| unusable(directory, error))?;
        let tree = copy.tree_at(revision).map_err(|error| unusable(directory, error))?;
        Ok(Self {
            root: copy.root().to_path_buf(),
            files: Arc::new(tree.clone()),
            revision: tree.commit().to_string(),
            urls: copy.remotes(),
            tree: Some(tree),
        })
    }

    /// Does a URL name this repository?
    pub(super) fn is_named(&self, url: &str) -> bool {
        let wanted = normalize_repo_url(url);
        self.urls.iter().any(|own| normalize_repo_url(own) == wanted)
    }

    /// May a URL that does not name it mean a fork or a mirror of it? Without a remote it may be any.
    pub(super) fn may_be(&self, url: &str) -> bool {
        let name = |url: &str| {
            let url = normalize_repo_url(url);
            url.trim_end_matches('/').rsplit(['/', ':']).next().unwrap_or_default().to_owned()
        };
        self.urls.is_empty() || self.urls.iter().any(|own| name(own) == name(url))
    }

    /// True for the files of a commit.
    pub(super) fn is_commit(&self) -> bool {
        self.tree.is_some()
    }

    /// Does it have this directory?
    pub(super) fn has_directory(&self, path: &str) -> bool {
        let Ok(path) = RepoPath::parse(path) else { return false };
        matches!(self.files.kind(&path), Ok(Some(EntryKind::Directory)))
    }

    /// The text of a file; `None` if it is not there, or too large.
    pub(super) fn read(&self, path: &str) -> Option<Vec<u8>> {
        let path = RepoPath::parse(path).ok()?;
        if self.tree.is_none() {
            let metadata = std::fs::symlink_metadata(self.root.join(path.as_str())).ok()?;
            if !metadata.is_file() || metadata.len() > MOST_BYTES {
                return None;
            }
        }
        let bytes = self.files.read(&path).ok()?;
        (bytes.len() as u64 <= MOST_BYTES).then_some(bytes)
    }

    /// The paths of all YAML and JSON files, sorted. Hidden folders are left out, and links are not followed.
    pub(super) fn manifest_files(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut waiting = vec![RepoPath::root()];
        while let Some(directory) = waiting.pop() {
            for (name, is_directory) in self.names(&directory) {
                let path = directory.child(&name);
                let extension = Path::new(&name).extension().and_then(|extension| extension.to_str());
                if is_directory && !name.starts_with('.') {
                    waiting.push(path);
                } else if matches!(extension, Some("yaml" | "yml" | "json")) && found.len() < MOST_FILES {
                    found.push(path.as_str().to_owned());
                }
            }
        }
        found.sort();
        found
    }

    /// What a folder contains. A folder that cannot be read contains nothing: whoever renders it says why.
    fn names(&self, directory: &RepoPath) -> Vec<(String, bool)> {
        if let Some(tree) = &self.tree {
            let entries = tree.list(directory).unwrap_or_default();
            let usable = entries.into_iter().filter(|entry| entry.kind != EntryKind::Link);
            return usable.map(|entry| (entry.name, entry.kind == EntryKind::Directory)).collect();
        }
        // The files on disk have no hashes; asking for a list of them would read every one.
        let entries = std::fs::read_dir(self.root.join(directory.as_str())).into_iter().flatten().flatten();
        entries
            .filter_map(|entry| {
                let kind = entry.file_type().ok()?;
                let name = entry.file_name().into_string().ok()?;
                (kind.is_dir() || kind.is_file()).then_some((name, kind.is_dir()))
            })
            .collect()
    }
}

fn unusable(directory: &Path, error: WorkingCopyError) -> CommandError {
    let is_missing = matches!(error, WorkingCopyError::NoRevision { .. });
    CommandError::because(format!("use {}", directory.display()), error)
        .hint_if(is_missing, "`git fetch` brings branches and commits; a shallow clone lacks older ones")
        .exit(ExitCode::Usage)
}
