//! A file of a working copy.

use std::path::{Path, PathBuf};

use plumb_core::source::RepoPath;

/// The names of a kustomization.
pub(super) const KUSTOMIZATIONS: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];

/// A file of a working copy: the file itself, not a link to it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FilePlace {
    /// The root of the working copy.
    pub(super) root: PathBuf,
    /// The path from there.
    pub(super) path: RepoPath,
}

impl FilePlace {
    /// The file that a path leads to; in words, why it cannot be changed.
    pub(super) fn find(root: &Path, file: &str) -> Result<Self, String> {
        let missing = |error: std::io::Error| format!("cannot read {file}: {error}");
        let root = root.canonicalize().map_err(missing)?;
        let real = root.join(file).canonicalize().map_err(missing)?;
        let inside =
            real.strip_prefix(&root).ok().and_then(Path::to_str).and_then(|path| RepoPath::parse(path).ok());
        match inside {
            Some(path) if real.is_file() => Ok(Self { root, path }),
            Some(_) => Err(format!("{file} is not a file")),
            None => Err(format!("{file} leads outside of the working copy {}", root.display())),
        }
    }

    /// Where it is on disk.
    pub(super) fn absolute(&self) -> PathBuf {
        self.root.join(self.path.as_str())
    }
}
