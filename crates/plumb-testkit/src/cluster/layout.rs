//! Where things are: the sources in this repository, everything made in the user's cache.

use std::{
    env,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

/// The directories that clusters use.
#[derive(Clone, Debug)]
pub struct Layout {
    root: PathBuf,
    search_path: Vec<PathBuf>,
}

impl Layout {
    /// Reads `XDG_CACHE_HOME` or `HOME`, and `PATH`.
    #[expect(clippy::disallowed_methods, reason = "test tools read their environment here and nowhere else")]
    pub fn from_environment() -> Result<Self> {
        let cache = env::var_os("XDG_CACHE_HOME")
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
            .or_else(|| env::var_os("HOME").map(|home| Path::new(&home).join(".cache")))
            .context("neither XDG_CACHE_HOME nor HOME is set: no place for the cluster's programs")?;
        let search_path =
            env::var_os("PATH").map(|path| env::split_paths(&path).collect()).unwrap_or_default();
        Ok(Self { root: cache.join("plumb").join("cluster"), search_path })
    }

    /// Everything in one directory, and no programs of the user's.
    #[cfg(test)]
    pub(super) fn in_directory(root: &Path) -> Self {
        Self { root: root.to_path_buf(), search_path: Vec::new() }
    }

    /// The Go sources, in this repository.
    pub(super) fn sources() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/cluster")
    }

    /// The Go sources of another tool of this repository.
    pub(super) fn tool(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools").join(name)
    }

    /// One directory per program and hash of its sources.
    pub(super) fn programs(&self) -> PathBuf {
        self.root.join("programs")
    }

    /// One entry per cluster: `<name>.json` says where it is, `<name>/` is where it is unless
    /// another directory was asked for.
    pub(super) fn clusters(&self) -> PathBuf {
        self.root.join("clusters")
    }

    /// Locks that keep clusters off each other's ports.
    pub(super) fn ports(&self) -> PathBuf {
        self.root.join("ports")
    }

    /// The first program of that name on the `PATH`.
    pub(super) fn on_path(&self, program: &str) -> Option<PathBuf> {
        self.search_path.iter().map(|directory| directory.join(program)).find(|path| is_executable(path))
    }
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}
