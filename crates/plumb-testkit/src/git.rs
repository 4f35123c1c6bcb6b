//! Git repositories for tests, made by the real program and the same every time: the author,
//! the dates and so the commit ids depend on nothing outside.

use std::{
    fs,
    path::{Component, Path},
    process::Command,
    sync::atomic::{AtomicU64, Ordering},
};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

/// When the first commit of a repository is made; each further one is a minute later.
const FIRST_COMMIT: u64 = 1_767_225_600;

/// A repository with a work tree, on branch `main`, removed when dropped.
#[derive(Debug)]
pub struct GitRepo {
    directory: TempDir,
    commits: AtomicU64,
}

impl GitRepo {
    /// An empty repository.
    pub fn new() -> Result<Self> {
        let directory =
            tempfile::Builder::new().prefix("plumb-git-").tempdir().context("make a directory")?;
        let repo = Self { directory, commits: AtomicU64::new(0) };
        repo.git(&["init", "--quiet", "--initial-branch=main"])?;
        // What hosting services allow and a plain `file://` does not by default.
        repo.git(&["config", "uploadpack.allowAnySHA1InWant", "true"])?;
        repo.git(&["config", "uploadpack.allowFilter", "true"])?;
        Ok(repo)
    }

    /// A name for commits that the program under test makes.
    pub fn name_author(&self) -> Result<()> {
        self.git(&["config", "user.name", "a person"])?;
        self.git(&["config", "user.email", "person@example.com"])?;
        Ok(())
    }

    /// What to put into `repoURL`.
    pub fn url(&self) -> String {
        format!("file://{}", self.path().display())
    }

    /// The work tree.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Writes the files, commits everything, and returns the commit's id.
    pub fn commit<P: AsRef<str>, C: AsRef<[u8]>>(&self, files: &[(P, C)]) -> Result<String> {
        for (name, content) in files {
            self.write(name.as_ref(), content.as_ref())?;
        }
        self.commit_all("change")
    }

    /// Removes the files, commits, and returns the commit's id.
    pub fn remove(&self, files: &[&str]) -> Result<String> {
        let mut args = vec!["rm", "--quiet", "--force", "-r", "--"];
        args.extend(files);
        self.git(&args)?;
        self.commit_all("remove")
    }

    /// Writes one file without committing it.
    pub fn write(&self, name: &str, content: &[u8]) -> Result<()> {
        if !Path::new(name).components().all(|part| matches!(part, Component::Normal(_))) {
            bail!("`{name}` is not a path inside the repository");
        }
        let path = self.path().join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).with_context(|| format!("create {}", parent.display()))?;
        }
        fs::write(&path, content).with_context(|| format!("write {}", path.display()))
    }

    /// Commits whatever the work tree holds, even if nothing changed, and returns the commit's id.
    pub fn commit_all(&self, message: &str) -> Result<String> {
        self.git(&["add", "--all"])?;
        let date = format!("{} +0000", FIRST_COMMIT + 60 * self.commits.fetch_add(1, Ordering::Relaxed));
        let dates = [("GIT_AUTHOR_DATE", date.as_str()), ("GIT_COMMITTER_DATE", date.as_str())];
        self.git_with(&["commit", "--quiet", "--allow-empty", "--message", message], &dates)?;
        self.head()
    }

    /// The id of the current commit.
    pub fn head(&self) -> Result<String> {
        self.git(&["rev-parse", "HEAD"])
    }

    /// Puts a lightweight tag on the current commit, moving it if it exists.
    pub fn tag(&self, name: &str) -> Result<()> {
        self.git(&["tag", "--force", name]).map(drop)
    }

    /// Puts an annotated tag on the current commit and returns the tag object's id.
    pub fn annotated_tag(&self, name: &str) -> Result<String> {
        let date = format!("{FIRST_COMMIT} +0000");
        self.git_with(&["tag", "--annotate", "--message", name, name], &[("GIT_COMMITTER_DATE", &date)])?;
        self.git(&["rev-parse", &format!("refs/tags/{name}")])
    }

    /// Makes a branch at the current commit and goes on there.
    pub fn branch(&self, name: &str) -> Result<()> {
        self.git(&["checkout", "--quiet", "-b", name]).map(drop)
    }

    /// Goes on at an existing branch.
    pub fn checkout(&self, name: &str) -> Result<()> {
        self.git(&["checkout", "--quiet", name]).map(drop)
    }

    /// Runs git in the repository and returns what it printed, without the last line end.
    pub fn git(&self, args: &[&str]) -> Result<String> {
        self.git_with(args, &[])
    }

    fn git_with(&self, args: &[&str], variables: &[(&str, &str)]) -> Result<String> {
        let output = Command::new("git")
            .args(args)
            .current_dir(self.path())
            // Nothing of the user's own configuration counts, nor a repository around this one.
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env_remove("GIT_DIR")
            .env_remove("GIT_WORK_TREE")
            .env_remove("GIT_INDEX_FILE")
            .env("GIT_TERMINAL_PROMPT", "0")
            .envs([("GIT_AUTHOR_NAME", "test"), ("GIT_AUTHOR_EMAIL", "test@example.com")])
            .envs([("GIT_COMMITTER_NAME", "test"), ("GIT_COMMITTER_EMAIL", "test@example.com")])
            .envs(variables.iter().copied())
            .output()
            .context("run `git`")?;
        if !output.status.success() {
            bail!("`git {}`: {}", args.join(" "), String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim_end_matches('\n').to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_are_the_same_every_time() {
        let make = || {
            let repo = GitRepo::new().unwrap();
            let first = repo.commit(&[("web/a.yaml", "a: 1"), ("b.yaml", "b: 1")]).unwrap();
            let second = repo.commit(&[("b.yaml", "b: 2")]).unwrap();
            (first, second)
        };
        let (first, second) = make();
        assert_eq!(make(), (first.clone(), second.clone()));
        assert_ne!(first, second);
        assert_eq!(first.len(), 40);
    }

    #[test]
    fn a_clone_over_the_url_sees_branches_tags_and_removals() {
        let repo = GitRepo::new().unwrap();
        let first = repo.commit(&[("a", "1"), ("dir/b", "1")]).unwrap();
        repo.tag("v1").unwrap();
        let annotated = repo.annotated_tag("v1.0.0").unwrap();
        assert_ne!(annotated, first, "an annotated tag is an object of its own");
        repo.branch("feature").unwrap();
        let feature = repo.remove(&["dir"]).unwrap();
        repo.checkout("main").unwrap();
        assert_eq!(repo.head().unwrap(), first);

        let other = GitRepo::new().unwrap();
        let seen = other.git(&["ls-remote", &repo.url()]).unwrap();
        for line in [
            format!("{first}\tHEAD"),
            format!("{first}\trefs/heads/main"),
            format!("{feature}\trefs/heads/feature"),
            format!("{first}\trefs/tags/v1"),
            format!("{annotated}\trefs/tags/v1.0.0"),
            format!("{first}\trefs/tags/v1.0.0^{{}}"),
        ] {
            assert!(seen.lines().any(|seen| seen == line), "{line} is missing in\n{seen}");
        }
        other.git(&["fetch", "--quiet", "--depth=1", &repo.url(), &feature]).unwrap();
        assert_eq!(other.git(&["ls-tree", "-r", "--name-only", "FETCH_HEAD"]).unwrap(), "a");
    }

    #[test]
    fn a_path_that_leaves_the_repository_is_refused() {
        let repo = GitRepo::new().unwrap();
        for name in ["../x", "/etc/x", "a/../../x"] {
            assert!(repo.write(name, b"x").is_err(), "{name}");
        }
    }
}
