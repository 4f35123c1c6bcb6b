//! A user's working copy: is it clean, and new commits on a new branch.
//!
//! Commits are made from contents, without the work tree and the index of the user: a run that fails leaves nothing
//! behind but objects that no branch names.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use plumb_core::app::CommitId;

use crate::command::GitLimits;
use crate::objects::Objects;
use crate::tree::SourceTree;

/// At most so many changed files are named.
const MAX_NAMES: usize = 3;

/// A working copy on the local disk.
#[derive(Clone, Debug)]
pub struct WorkingCopy {
    root: PathBuf,
}

/// A commit to make: its message, and the new contents of files that exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewCommit {
    /// Subject, empty line, body.
    pub message: String,
    /// Paths from the root of the working copy, with `/`.
    pub files: BTreeMap<String, Vec<u8>>,
}

/// Why a working copy cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum WorkingCopyError {
    /// There is no repository.
    #[error("{} is not in a Git working copy", .directory.display())]
    NotARepository {
        /// Which directory.
        directory: PathBuf,
    },
    /// Changes that are not committed would be mixed with the new ones.
    #[error("{} has changes that are not committed: {files}", .root.display())]
    Dirty {
        /// The root.
        root: PathBuf,
        /// Some of the changed files.
        files: String,
    },
    /// No branch is checked out.
    #[error("{} has no branch checked out (detached HEAD)", .root.display())]
    Detached {
        /// The root.
        root: PathBuf,
    },
    /// The branch exists.
    #[error("{} already has a branch {name}", .root.display())]
    BranchExists {
        /// The root.
        root: PathBuf,
        /// The branch.
        name: String,
    },
    /// A file is not in the last commit: it is ignored, new, or belongs to a submodule.
    #[error("{file} is not in the last commit of {}", .root.display())]
    NotCommitted {
        /// The root.
        root: PathBuf,
        /// The file.
        file: String,
    },
    /// No branch, tag or commit of this name.
    #[error("{} has no revision {revision}", .root.display())]
    NoRevision {
        /// The root.
        root: PathBuf,
        /// What was asked for.
        revision: String,
    },
    /// A commit cannot be read.
    #[error("cannot read commit {commit}")]
    Unreadable {
        /// The commit.
        commit: String,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// git failed.
    #[error("git {command}: {message}")]
    Git {
        /// The sub-command.
        command: String,
        /// What it said.
        message: String,
    },
}

impl WorkingCopy {
    /// The working copy that a directory belongs to.
    pub fn open(directory: &Path) -> Result<Self, WorkingCopyError> {
        let found = git(directory, &["rev-parse", "--show-toplevel"], &[], None);
        let root = found.map_err(|error| match error {
            WorkingCopyError::Git { message, .. } if message.contains("not a git repository") => {
                WorkingCopyError::NotARepository { directory: directory.to_path_buf() }
            }
            error => error,
        })?;
        Ok(Self { root: PathBuf::from(root) })
    }

    /// Its root.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The URLs of its remotes.
    pub fn remotes(&self) -> Vec<String> {
        // git fails if there is none.
        let found = self.git(&["config", "--get-regexp", r"^remote\..*\.url$"]).unwrap_or_default();
        found.lines().filter_map(|line| Some(line.split_once(' ')?.1.to_owned())).collect()
    }

    /// The files of a revision: a branch, a tag or a commit. A branch that exists only at a remote is found there, as in a
    /// checkout of a CI system.
    pub fn tree_at(&self, revision: &str) -> Result<SourceTree, WorkingCopyError> {
        let no_revision =
            || WorkingCopyError::NoRevision { root: self.root.clone(), revision: revision.to_owned() };
        let candidates = [revision.to_owned(), format!("origin/{revision}")];
        let commit = candidates.iter().find_map(|name| {
            let name = format!("{name}^{{commit}}");
            self.git(&["rev-parse", "--verify", "--quiet", "--end-of-options", &name]).ok()
        });
        let commit: CommitId = commit.ok_or_else(no_revision)?.parse().map_err(|_| no_revision())?;
        let failed = |source: Box<dyn std::error::Error + Send + Sync>| WorkingCopyError::Unreadable {
            commit: commit.to_string(),
            source,
        };
        let repository = gix::discover(&self.root).map_err(|error| failed(error.into()))?;
        let objects = Arc::new(Objects::new(repository.into_sync()));
        SourceTree::open(objects, commit.clone(), GitLimits::default().max_blob, Arc::default())
            .map_err(|error| failed(error.into()))
    }

    /// Fails unless everything is committed and a branch is checked out.
    pub fn check_ready(&self) -> Result<(), WorkingCopyError> {
        let changed = self.git(&["status", "--porcelain=v1", "--untracked-files=no"])?;
        if !changed.is_empty() {
            let names: Vec<&str> = changed.lines().filter_map(|line| line.get(3..)).collect();
            let mut files = names.iter().take(MAX_NAMES).copied().collect::<Vec<_>>().join(", ");
            if names.len() > MAX_NAMES {
                files = format!("{files} and {} more", names.len() - MAX_NAMES);
            }
            return Err(WorkingCopyError::Dirty { root: self.root.clone(), files });
        }
        match self.git(&["symbolic-ref", "--short", "HEAD"]) {
            Ok(_) => Ok(()),
            Err(WorkingCopyError::Git { message, .. }) if message.contains("not a symbolic ref") => {
                Err(WorkingCopyError::Detached { root: self.root.clone() })
            }
            Err(error) => Err(error),
        }
    }

    /// Fails if a branch of this name cannot be made.
    pub fn check_new_branch(&self, name: &str) -> Result<(), WorkingCopyError> {
        self.git(&["check-ref-format", "--branch", name])?;
        let found = self.git(&["for-each-ref", "--format=x", &format!("refs/heads/{name}")])?;
        if found.is_empty() {
            return Ok(());
        }
        Err(WorkingCopyError::BranchExists { root: self.root.clone(), name: name.to_owned() })
    }

    /// Fails unless the last commit has the file. What git does not know, `git diff` does not show.
    pub fn check_committed(&self, file: &str) -> Result<(), WorkingCopyError> {
        self.mode(file).map(drop)
    }

    /// Makes these commits, one on the other, on top of `HEAD`, and a new branch at the last one. The work tree stays as
    /// it is.
    pub fn commit_to_branch(&self, name: &str, commits: &[NewCommit]) -> Result<(), WorkingCopyError> {
        self.check_new_branch(name)?;
        let folder = tempfile::tempdir().map_err(|error| failed("commit-tree", &error))?;
        let index = folder.path().join("index");
        let head = self.git(&["rev-parse", "--verify", "HEAD^{commit}"])?;
        self.git_with(&["read-tree", &head], &index, None)?;
        let mut parent = head;
        for commit in commits {
            for (file, content) in &commit.files {
                let mode = self.mode(file)?;
                // The content passes the filters of the path (line ends), as `git add` does it.
                let hash =
                    self.git_with(&["hash-object", "-w", "--stdin", "--path", file], &index, Some(content))?;
                let entry = format!("{mode},{hash},{file}");
                self.git_with(&["update-index", "--cacheinfo", &entry], &index, None)?;
            }
            let tree = self.git_with(&["write-tree"], &index, None)?;
            let arguments = ["commit-tree", &tree, "-p", &parent, "-F", "-"];
            parent = self.git_with(&arguments, &index, Some(commit.message.as_bytes()))?;
        }
        // An empty old value: the branch must not exist.
        self.git(&["update-ref", "-m", "plumb fix", &format!("refs/heads/{name}"), &parent, ""]).map(drop)
    }

    /// Pushes a branch to `origin`, with the user's own credentials, and makes it the branch to follow.
    pub fn push(&self, name: &str) -> Result<(), WorkingCopyError> {
        let refspec = format!("refs/heads/{name}:refs/heads/{name}");
        self.git(&["push", "--quiet", "--set-upstream", "origin", &refspec]).map(drop)
    }

    fn mode(&self, file: &str) -> Result<String, WorkingCopyError> {
        let literal = format!(":(literal){file}");
        let found = self.git(&["ls-tree", "--full-tree", "HEAD", "--", &literal])?;
        let mode = found.split(' ').next().filter(|mode| mode.starts_with("100"));
        mode.map(str::to_owned)
            .ok_or_else(|| WorkingCopyError::NotCommitted { root: self.root.clone(), file: file.to_owned() })
    }

    fn git(&self, arguments: &[&str]) -> Result<String, WorkingCopyError> {
        git(&self.root, arguments, &[], None)
    }

    fn git_with(
        &self,
        arguments: &[&str],
        index: &Path,
        input: Option<&[u8]>,
    ) -> Result<String, WorkingCopyError> {
        git(&self.root, arguments, &[("GIT_INDEX_FILE", index.as_os_str())], input)
    }
}

/// Runs git as the user would, with the user's own configuration. Returns what it prints, without the last line break.
fn git(
    directory: &Path,
    arguments: &[&str],
    variables: &[(&str, &OsStr)],
    input: Option<&[u8]>,
) -> Result<String, WorkingCopyError> {
    let command = arguments.first().copied().unwrap_or_default();
    let start = |error: &std::io::Error| failed(command, error);
    let mut child = Command::new("git")
        .arg("-C")
        .arg(directory)
        .args(arguments)
        // A hook of git sets these for its own repository.
        .env_remove("GIT_DIR")
        .env_remove("GIT_WORK_TREE")
        .env_remove("GIT_COMMON_DIR")
        .env_remove("GIT_INDEX_FILE")
        .env_remove("GIT_OBJECT_DIRECTORY")
        .env("LC_ALL", "C")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .envs(variables.iter().copied())
        .stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| start(&error))?;
    // git reads all of its input before it prints.
    if let (Some(mut pipe), Some(input)) = (child.stdin.take(), input) {
        pipe.write_all(input).map_err(|error| start(&error))?;
    }
    let output = child.wait_with_output().map_err(|error| start(&error))?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(WorkingCopyError::Git { command: command.to_owned(), message });
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim_end_matches('\n').to_owned())
}

fn failed(command: &str, error: &std::io::Error) -> WorkingCopyError {
    WorkingCopyError::Git { command: command.to_owned(), message: error.to_string() }
}
