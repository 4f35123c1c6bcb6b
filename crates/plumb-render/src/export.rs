//! Writes the files of a read set to a scratch directory, for tools that need a disk.
//!
//! A link is written as a copy of its target, so that there are no links on disk for a tool to follow.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use plumb_core::source::{Entry, EntryKind, RepoPath, SourceError, SourceFiles, follow};

use crate::disk_use::DiskUse;
use crate::error::RenderError;
use crate::read_set::{ReadSet, SourceFile};

/// Deepest nesting of directories.
const MAX_DEPTH: usize = 64;

/// Writes the files of one source that are in the set, below `root`.
pub(crate) fn export(
    set: &ReadSet,
    source: &str,
    root: &Path,
    disk: &DiskUse<'_>,
) -> Result<(), RenderError> {
    let Some(files) = set.files(source) else { return Ok(()) };
    let mut writer = Writer { files: files.as_ref(), root, disk };
    fs::create_dir_all(root).map_err(|error| RenderError::scratch(&error))?;
    for path in set.paths(source) {
        writer.write(path, path, &mut Vec::new())?;
    }
    Ok(())
}

/// Writes one directory of a source to `target`.
pub(crate) fn export_directory(
    set: &ReadSet,
    from: &SourceFile,
    target: &Path,
    disk: &DiskUse<'_>,
) -> Result<(), RenderError> {
    let Some(files) = set.files(&from.source) else { return Ok(()) };
    export_files(&Subdirectory { files: files.as_ref(), root: &from.path }, target, disk)
}

/// Writes all files below `target`.
pub(crate) fn export_files(
    files: &dyn SourceFiles,
    target: &Path,
    disk: &DiskUse<'_>,
) -> Result<(), RenderError> {
    let root = RepoPath::root();
    Writer { files, root: target, disk }.write(&root, &root, &mut Vec::new())
}

/// A directory of a source, as a source whose root is that directory.
struct Subdirectory<'a> {
    files: &'a dyn SourceFiles,
    root: &'a RepoPath,
}

impl Subdirectory<'_> {
    fn outer(&self, path: &RepoPath) -> RepoPath {
        path.components().fold(self.root.clone(), |outer, component| outer.child(component))
    }
}

impl SourceFiles for Subdirectory<'_> {
    fn kind(&self, path: &RepoPath) -> Result<Option<EntryKind>, SourceError> {
        self.files.kind(&self.outer(path))
    }

    fn entry(&self, path: &RepoPath) -> Result<Option<Entry>, SourceError> {
        self.files.entry(&self.outer(path))
    }

    fn list(&self, directory: &RepoPath) -> Result<Vec<Entry>, SourceError> {
        self.files.list(&self.outer(directory))
    }

    fn read(&self, path: &RepoPath) -> Result<Vec<u8>, SourceError> {
        self.files.read(&self.outer(path))
    }
}

struct Writer<'a> {
    files: &'a dyn SourceFiles,
    root: &'a Path,
    disk: &'a DiskUse<'a>,
}

impl Writer<'_> {
    /// Writes the file or directory at `from` to `path`. `above` are the real directories that are being written, to
    /// detect links that lead back into them.
    fn write(
        &mut self,
        path: &RepoPath,
        from: &RepoPath,
        above: &mut Vec<RepoPath>,
    ) -> Result<(), RenderError> {
        let failed = |source| RenderError::Read { what: format!("`{path}`"), source };
        let (real, kind) = match follow(self.files, from) {
            Ok(found) => found,
            Err(SourceError::NotFound { .. }) => return Ok(()),
            Err(error) => return Err(failed(error)),
        };
        match kind {
            EntryKind::File | EntryKind::Executable => {
                let content = self.files.read(&real).map_err(failed)?;
                self.write_file(path, &content, kind == EntryKind::Executable)
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
                self.disk.count(path.as_str(), 0)?;
                let target = self.root.join(path.as_str());
                fs::create_dir_all(&target).map_err(|error| RenderError::scratch(&error))?;
                above.push(real.clone());
                for child in self.files.list(&real).map_err(failed)? {
                    self.write(&path.child(&child.name), &real.child(&child.name), above)?;
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
        self.disk.count(path.as_str(), content.len())?;
        self.disk.note_written(&target, content.len());
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
