//! Reading a source, links included, without leaving it.

use super::{BadPath, RepoPath};

/// How many links one path may lead through, as on Linux.
pub const MAX_LINKS: usize = 40;

/// What is at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name, a single component; empty for the root.
    pub name: String,
    /// What it is.
    pub kind: EntryKind,
    /// Hash of its content, of everything below it for a directory. Two entries of one kind with the same hash
    /// have the same content.
    pub hash: String,
}

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EntryKind {
    /// A file.
    File,
    /// A file that may be run.
    Executable,
    /// A directory.
    Directory,
    /// A symbolic link; reading it gives its target.
    Link,
    /// Another repository's commit, which was not asked to be fetched.
    Submodule,
}

/// Why something of a source could not be read.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// Nothing is there.
    #[error("{path}: no such file or directory in the repository")]
    NotFound {
        /// What was looked for.
        path: RepoPath,
    },
    /// The path is not one that can exist in a source.
    #[error(transparent)]
    Path(#[from] BadPath),
    /// A link whose target is absolute or outside.
    #[error(
        "symbolic link `{path}` points outside the repository (to {target:?}); use a relative link inside it"
    )]
    LinkOutside {
        /// The link.
        path: RepoPath,
        /// Where it points.
        target: String,
    },
    /// Links that lead to each other.
    #[error("symbolic link `{path}` leads through more than {MAX_LINKS} links")]
    LinkLoop {
        /// Where it started.
        path: RepoPath,
    },
    /// A file was expected.
    #[error("`{path}` is not a file")]
    NotAFile {
        /// What was looked for.
        path: RepoPath,
    },
    /// A directory was expected.
    #[error("`{path}` is not a directory")]
    NotADirectory {
        /// What was looked for.
        path: RepoPath,
    },
    /// Inside a submodule that is not fetched.
    #[error("`{path}` is a submodule, and submodules are not enabled for this repository")]
    Submodule {
        /// The submodule.
        path: RepoPath,
    },
    /// More bytes than one file may have.
    #[error("`{path}` has {size} bytes, more than the limit of {limit}")]
    TooLarge {
        /// Which file.
        path: RepoPath,
        /// Its size.
        size: u64,
        /// What is allowed.
        limit: u64,
    },
    /// A name that is not UTF-8, or has a component that must not be written to a disk (`.git`).
    #[error("directory `{directory}` contains the unusable name {name:?}")]
    BadName {
        /// Where.
        directory: RepoPath,
        /// The name, as far as it can be shown.
        name: String,
    },
    /// The storage itself failed.
    #[error("cannot read `{path}`")]
    Storage {
        /// What was read.
        path: RepoPath,
        /// Why it failed.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// The files of one source at one state. Implementations never follow links: that is [`follow`]'s work, so that
/// it is written, and tested, once.
pub trait SourceFiles: Send + Sync {
    /// The kind of the file at the path; `None` if there is none, or if a parent is not a directory.
    fn kind(&self, path: &RepoPath) -> Result<Option<EntryKind>, SourceError>;

    /// The same with the hash of its content, which may cost reading it.
    fn entry(&self, path: &RepoPath) -> Result<Option<Entry>, SourceError>;

    /// What a directory contains, by name.
    fn list(&self, directory: &RepoPath) -> Result<Vec<Entry>, SourceError>;

    /// The bytes of a file, or the target of a link.
    fn read(&self, path: &RepoPath) -> Result<Vec<u8>, SourceError>;
}

/// Where a path really leads, links followed, and what is there. Links may only lead to places inside.
pub fn follow(files: &dyn SourceFiles, path: &RepoPath) -> Result<(RepoPath, EntryKind), SourceError> {
    let not_found = || SourceError::NotFound { path: path.clone() };
    let mut real = RepoPath::root();
    let mut kind = EntryKind::Directory;
    let mut pending: Vec<String> = path.components().rev().map(str::to_owned).collect();
    let mut n_links = 0;
    let mut last_link = (path.clone(), "..".to_owned());
    while let Some(component) = pending.pop() {
        if component == ".." {
            // Only link targets contain `..`, and only they can climb over the root.
            if real.is_root() {
                let (link, target) = last_link;
                return Err(SourceError::LinkOutside { path: link, target });
            }
            real = real.parent();
            kind = EntryKind::Directory;
            continue;
        }
        if kind == EntryKind::Submodule {
            return Err(SourceError::Submodule { path: real });
        }
        let next = real.child(&component);
        kind = files.kind(&next)?.ok_or_else(not_found)?;
        if kind != EntryKind::Link {
            real = next;
            continue;
        }
        n_links += 1;
        if n_links > MAX_LINKS {
            return Err(SourceError::LinkLoop { path: path.clone() });
        }
        let target = link_target(files, &next)?;
        if target.is_empty() || target.starts_with('/') || target.contains('\0') {
            return Err(SourceError::LinkOutside { path: next, target });
        }
        pending.extend(
            target.split('/').filter(|part| !part.is_empty() && *part != ".").rev().map(str::to_owned),
        );
        // The walk goes on in the directory that contains the link.
        kind = EntryKind::Directory;
        last_link = (next, target);
    }
    Ok((real, kind))
}

fn link_target(files: &dyn SourceFiles, link: &RepoPath) -> Result<String, SourceError> {
    let bytes = files.read(link)?;
    String::from_utf8(bytes).map_err(|error| SourceError::LinkOutside {
        path: link.clone(),
        target: String::from_utf8_lossy(error.as_bytes()).into_owned(),
    })
}

/// The bytes of a file, links followed.
pub fn read_following(files: &dyn SourceFiles, path: &RepoPath) -> Result<Vec<u8>, SourceError> {
    let (real, kind) = follow(files, path)?;
    match kind {
        EntryKind::File | EntryKind::Executable => files.read(&real),
        EntryKind::Directory | EntryKind::Link | EntryKind::Submodule => {
            Err(SourceError::NotAFile { path: path.clone() })
        }
    }
}
