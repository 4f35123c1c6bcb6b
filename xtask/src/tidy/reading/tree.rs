//! The files that Git tracks, and the Rust files among them, parsed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// All files of the repository.
pub(in crate::tidy) struct Tree {
    root: PathBuf,
    paths: Vec<PathBuf>,
    rust: BTreeMap<PathBuf, RustFile>,
}

/// One Rust file.
pub(in crate::tidy) struct RustFile {
    /// Relative to the repository.
    pub(in crate::tidy) path: PathBuf,
    pub(in crate::tidy) text: String,
    pub(in crate::tidy) syntax: syn::File,
}

impl RustFile {
    pub(in crate::tidy) fn new(path: impl Into<PathBuf>, text: impl Into<String>) -> Result<Self> {
        let (path, text) = (path.into(), text.into());
        let syntax =
            syn::parse_file(&text).map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))?;
        Ok(Self { path, text, syntax })
    }

    /// The path as it is printed.
    pub(in crate::tidy) fn place(&self) -> String {
        self.path.display().to_string()
    }
}

impl Tree {
    pub(in crate::tidy) fn read(root: &Path) -> Result<Self> {
        let paths = tracked_files(root)?;
        let mut files = Vec::new();
        for path in paths.iter().filter(|path| path.extension().is_some_and(|end| end == "rs")) {
            let text = std::fs::read_to_string(root.join(path))
                .with_context(|| format!("cannot read {}", path.display()))?;
            files.push(RustFile::new(path, text)?);
        }
        let rust = files.into_iter().map(|file| (file.path.clone(), file)).collect();
        Ok(Self { root: root.to_path_buf(), paths, rust })
    }

    /// A tree that exists only in a test.
    #[cfg(test)]
    pub(in crate::tidy) fn of(files: &[(&str, &str)]) -> Self {
        let rust = files.iter().map(|(path, text)| RustFile::new(*path, *text).unwrap());
        let paths = files.iter().map(|(path, _)| PathBuf::from(path)).collect();
        Self { root: PathBuf::new(), paths, rust: rust.map(|file| (file.path.clone(), file)).collect() }
    }

    pub(in crate::tidy) fn root(&self) -> &Path {
        &self.root
    }

    /// Every file, relative to the repository.
    pub(in crate::tidy) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.paths.iter().map(PathBuf::as_path)
    }

    pub(in crate::tidy) fn with_extension(&self, extension: &str) -> impl Iterator<Item = &Path> {
        self.paths().filter(move |path| path.extension().is_some_and(|end| end == extension))
    }

    pub(in crate::tidy) fn rust_files(&self) -> impl Iterator<Item = &RustFile> {
        self.rust.values()
    }

    pub(in crate::tidy) fn rust_file(&self, path: &Path) -> Option<&RustFile> {
        self.rust.get(path)
    }

    pub(in crate::tidy) fn text(&self, path: &Path) -> Result<String> {
        std::fs::read_to_string(self.root.join(path))
            .with_context(|| format!("cannot read {}", path.display()))
    }
}

/// The files that Git tracks or would add, relative to `root`.
fn tracked_files(root: &Path) -> Result<Vec<PathBuf>> {
    let output = std::process::Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard", "-z"])
        .current_dir(root)
        .output()
        .context("cannot run git ls-files")?;
    anyhow::ensure!(
        output.status.success(),
        "git ls-files: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    let listed = String::from_utf8(output.stdout).context("cannot read file names: not UTF-8")?;
    let names = listed.split('\0').filter(|name| !name.is_empty()).map(PathBuf::from);
    // A file that was deleted and not yet committed is still listed.
    let mut files: Vec<PathBuf> = names.filter(|file| root.join(file).is_file()).collect();
    files.sort();
    files.dedup();
    Ok(files)
}
