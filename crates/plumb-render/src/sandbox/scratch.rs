//! The private directory of one rendering.

use std::path::{Path, PathBuf};

/// A private directory for one rendering, removed on drop.
pub(crate) struct Scratch {
    directory: tempfile::TempDir,
}

/// Prefix of the names of scratch directories.
pub(crate) const SCRATCH_PREFIX: &str = "render-";

impl Scratch {
    pub(crate) fn new(root: &Path) -> std::io::Result<Self> {
        let directory = tempfile::Builder::new().prefix(SCRATCH_PREFIX).tempdir_in(root)?;
        let scratch = Self { directory };
        for name in ["home", "tmp"] {
            std::fs::create_dir(scratch.path().join(name))?;
        }
        Ok(scratch)
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The directory for the main source's files.
    pub(crate) fn repository(&self) -> PathBuf {
        self.path().join("repo")
    }
}
