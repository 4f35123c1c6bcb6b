//! Writes the files of a read set to a scratch directory, for tools that need a disk.
//!
//! Links are written as copies of what they lead to, so that there is none on the disk for a tool to follow.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use plumb_core::source::{EntryKind, RepoPath, SourceError, SourceFiles, follow};

use crate::readset::ReadSet;
use crate::{Limits, RenderError};

/// Directories may nest so deep.
const MAX_DEPTH: usize = 64;

/// Writes what the set holds of one source below `root`.
pub(crate) fn export(set: &ReadSet, source: &str, root: &Path, limits: &Limits) -> Result<(), RenderError> {
    let Some(files) = set.files(source) else { return Ok(()) };
    let mut writer =
        Writer { files: files.as_ref(), root, bytes: limits.export_bytes, n_files: limits.export_files };
    fs::create_dir_all(root).map_err(|error| RenderError::scratch(&error))?;
    for path in set.paths(source) {
        writer.write(path, &mut Vec::new())?;
    }
    Ok(())
}

struct Writer<'a> {
    files: &'a dyn SourceFiles,
    root: &'a Path,
    bytes: u64,
    n_files: usize,
}

impl Writer<'_> {
    /// Writes what stands at `path`. `above` are the real directories that are being written, to notice links
    /// that lead back into them.
    fn write(&mut self, path: &RepoPath, above: &mut Vec<RepoPath>) -> Result<(), RenderError> {
        let failed = |source| RenderError::Read { what: format!("`{path}`"), source };
        let (real, entry) = match follow(self.files, path) {
            Ok(found) => found,
            Err(SourceError::NotFound { .. }) => return Ok(()),
            Err(error) => return Err(failed(error)),
        };
        match entry.kind {
            EntryKind::File | EntryKind::Executable => {
                let content = self.files.read(&real).map_err(failed)?;
                self.write_file(path, &content, entry.kind == EntryKind::Executable)
            }
            EntryKind::Directory => {
                if above.contains(&real) {
                    return Err(failed(SourceError::LinkLoop { path: path.clone() }));
                }
                if above.len() > MAX_DEPTH {
                    return Err(RenderError::Limit {
                        what: format!("depth of directory `{path}`"),
                        limit: MAX_DEPTH as u64,
                    });
                }
                let target = self.root.join(path.as_str());
                fs::create_dir_all(&target).map_err(|error| RenderError::scratch(&error))?;
                above.push(real.clone());
                for child in self.files.list(&real).map_err(failed)? {
                    self.write(&path.child(&child.name), above)?;
                }
                above.pop();
                Ok(())
            }
            // A submodule that is not fetched is an empty directory, as in a checkout.
            EntryKind::Submodule | EntryKind::Link => Ok(()),
        }
    }

    fn write_file(&mut self, path: &RepoPath, content: &[u8], executable: bool) -> Result<(), RenderError> {
        let target = self.root.join(path.as_str());
        if target.exists() {
            return Ok(());
        }
        self.n_files = self
            .n_files
            .checked_sub(1)
            .ok_or_else(|| RenderError::Limit { what: format!("number of files, at `{path}`,"), limit: 0 })?;
        self.bytes = self.bytes.checked_sub(content.len() as u64).ok_or_else(|| RenderError::Limit {
            what: format!("bytes of all files, at `{path}`,"),
            limit: 0,
        })?;
        let written = (|| {
            if let Some(parent) = target.parent() {
                fs::create_dir_all(parent)?;
            }
            let mode = if executable { 0o700 } else { 0o600 };
            let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(&target)?;
            file.write_all(content)
        })();
        written.map_err(|error: std::io::Error| RenderError::scratch(&error))
    }
}
