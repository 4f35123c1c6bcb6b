//! A repository to test with, made by the git program.

use std::path::{Path, PathBuf};
use std::process::Command;

use plumb_git::{GitOptions, Mirrors, RepoAccess, RepoUrl};

/// A repository with a work tree, and a cache beside it; gone at the end of the test.
pub(crate) struct Repository {
    directory: tempfile::TempDir,
}

impl Repository {
    pub(crate) fn new() -> Self {
        let repository = Self { directory: tempfile::tempdir().unwrap() };
        std::fs::create_dir(repository.path()).unwrap();
        repository.git(&["init", "--quiet", "--initial-branch=main"]);
        repository
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().join("work")
    }

    pub(crate) fn cache(&self) -> PathBuf {
        self.directory.path().join("cache")
    }

    /// The repository of the only mirror in the cache.
    pub(crate) fn mirrored(&self) -> PathBuf {
        let entries = std::fs::read_dir(self.cache()).unwrap().map(|entry| entry.unwrap().path());
        let mut mirrors = entries.filter(|path| path.join("state.json").exists());
        mirrors.next().unwrap().join("repo-0.git")
    }

    pub(crate) fn url(&self) -> RepoUrl {
        RepoUrl::parse(&format!("file://{}", self.path().display())).unwrap()
    }

    pub(crate) fn mirrors(&self) -> Mirrors {
        Mirrors::new(self.cache(), GitOptions::default()).unwrap()
    }

    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        run(&self.path(), arguments)
    }

    pub(crate) fn write(&self, path: &str, content: &str) {
        let path = self.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// Commits everything and gives back the hash.
    pub(crate) fn commit(&self, message: &str) -> String {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "--message", message]);
        self.git(&["rev-parse", "HEAD"])
    }
}

pub(crate) fn run(directory: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .current_dir(directory)
        .args([
            "-c",
            "user.name=test",
            "-c",
            "user.email=test@example.com",
            "-c",
            "protocol.file.allow=always",
        ])
        .args(arguments)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

pub(crate) fn anonymous() -> RepoAccess {
    RepoAccess::default()
}
