//! What generators need to know, as the caller gathered it.

use std::collections::BTreeMap;
use std::time::Duration;

use plumb_core::source::{EntryKind, RepoPath, SourceFiles};
use plumb_crd::application_set::{PullRequestGenerator, ScmProviderGenerator};
use serde_json::Value as Json;

use crate::error::{GenerationError, Reason};

/// A registered cluster: the content of its Secret.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterRecord {
    /// Its name.
    pub name: String,
    /// URL of its API server.
    pub server: String,
    /// The project that it belongs to.
    pub project: String,
    /// Labels of the Secret.
    pub labels: BTreeMap<String, String>,
    /// Annotations of the Secret.
    pub annotations: BTreeMap<String, String>,
}

/// The files of a commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GitTree {
    /// Content of each file, by path. It is empty where [`Facts::git_file`] reads it when it is needed.
    pub files: BTreeMap<String, String>,
    /// Targets of symbolic links, by path.
    pub symlinks: BTreeMap<String, String>,
}

impl GitTree {
    /// All paths of a commit or a checkout, at most `most`. The content of files is left out.
    pub fn paths_of(files: &dyn SourceFiles, most: usize) -> Result<Self, String> {
        let mut tree = Self::default();
        let mut directories = vec![RepoPath::root()];
        while let Some(directory) = directories.pop() {
            for entry in files.list(&directory).map_err(|error| error.to_string())? {
                let path = directory.child(&entry.name);
                match entry.kind {
                    EntryKind::File | EntryKind::Executable => {
                        tree.files.insert(path.as_str().to_owned(), String::new());
                    }
                    EntryKind::Directory => directories.push(path),
                    EntryKind::Link => {
                        let target = files.read(&path).map_err(|error| error.to_string())?;
                        let target = String::from_utf8_lossy(&target).into_owned();
                        tree.symlinks.insert(path.as_str().to_owned(), target);
                    }
                    EntryKind::Submodule => {}
                }
            }
            if tree.files.len() + directories.len() > most {
                return Err(format!("the repository has more than {most} files"));
            }
        }
        Ok(tree)
    }
}

/// Where a path of a tree leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Linked {
    /// To the file with this path.
    File(String),
    /// Out of the repository.
    Outside,
    /// To no file.
    Nowhere,
}

/// Most links that are followed one after the other.
const MAX_LINKS: usize = 16;

impl GitTree {
    /// Follows symbolic links, but never out of the repository.
    pub(crate) fn follow(&self, path: &str) -> Linked {
        let mut path = path.to_owned();
        for _ in 0..MAX_LINKS {
            if self.files.contains_key(&path) {
                return Linked::File(path);
            }
            let parts: Vec<&str> = path.split('/').collect();
            let mut prefixes = (1..=parts.len()).map(|end| (parts[..end].join("/"), end));
            let link = prefixes.find_map(|(prefix, end)| Some((self.symlinks.get(&prefix)?, end)));
            let Some((target, end)) = link else { return Linked::Nowhere };
            if target.starts_with('/') {
                return Linked::Outside;
            }
            let mut resolved: Vec<&str> = parts[..end - 1].to_vec();
            for part in target.split('/').chain(parts[end..].iter().copied()) {
                match part {
                    "" | "." => {}
                    ".." => {
                        if resolved.pop().is_none() {
                            return Linked::Outside;
                        }
                    }
                    name => resolved.push(name),
                }
            }
            path = resolved.join("/");
        }
        Linked::Nowhere
    }
}

/// A repository that an SCM provider found, with one of its branches.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Repository {
    /// Organisation, group or project.
    pub organization: String,
    /// Name of the repository.
    pub repository: String,
    /// A number or a UUID, as the provider has it.
    pub repository_id: Json,
    /// Its URL in the wanted protocol.
    pub url: String,
    /// The branch.
    pub branch: String,
    /// The branch's commit.
    pub sha: String,
    /// Topics or labels.
    pub labels: Vec<String>,
}

/// A pull request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PullRequest {
    /// Its number.
    pub number: i64,
    /// Its title.
    pub title: String,
    /// Its branch.
    pub branch: String,
    /// The branch that it is for.
    pub target_branch: String,
    /// Its last commit.
    pub head_sha: String,
    /// Its labels; `None` is a nil list in Go.
    pub labels: Option<Vec<String>>,
    /// Who opened it.
    pub author: String,
}

/// The request that a plugin generator makes.
#[derive(Clone, Debug, PartialEq)]
pub struct PluginCall {
    /// Complete URL.
    pub url: String,
    /// The token that is sent.
    pub token: String,
    /// The body.
    pub body: Json,
    /// How long the answer may take.
    pub timeout: Duration,
}

/// An answer over HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpAnswer {
    /// Status code.
    pub status: u16,
    /// The body.
    pub body: String,
}

/// A fact that cannot be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// It is not gathered yet: gather it and generate again.
    NotYet,
    /// It cannot be gathered.
    Failed(String),
}

impl From<Unanswered> for GenerationError {
    fn from(unanswered: Unanswered) -> Self {
        match unanswered {
            Unanswered::NotYet => Self { reason: Reason::Unanswered, message: "not gathered yet".to_owned() },
            Unanswered::Failed(message) => Self::generation(message),
        }
    }
}

/// Answers of the outside. Each method is a question that a generator may ask; which ones are asked can depend on the
/// answers to others (the second generator of a matrix).
pub trait Facts {
    /// The cluster Secrets of Argo CD's namespace, in the order of their names.
    fn clusters(&self) -> Result<Vec<ClusterRecord>, Unanswered>;
    /// Fails if the project does not exist in Argo CD's namespace.
    fn project(&self, name: &str) -> Result<(), Unanswered>;
    /// The files of a revision. The rules and credentials of the project count; without one, only credentials for all
    /// projects do.
    fn git(&self, project: Option<&str>, repo_url: &str, revision: &str) -> Result<&GitTree, Unanswered>;
    /// The content of a file of the tree.
    fn git_file(
        &self,
        project: Option<&str>,
        repo_url: &str,
        revision: &str,
        path: &str,
    ) -> Result<String, Unanswered> {
        let tree = self.git(project, repo_url, revision)?;
        tree.files.get(path).cloned().ok_or_else(|| Unanswered::Failed(format!("{path}: no such file")))
    }
    /// The data of a `ConfigMap` in Argo CD's namespace.
    fn config_map(&self, name: &str) -> Result<BTreeMap<String, String>, Unanswered>;
    /// The data of a Secret in Argo CD's namespace.
    fn secret(&self, name: &str) -> Result<BTreeMap<String, String>, Unanswered>;
    /// The objects of a resource (plural name) in Argo CD's namespace.
    fn objects(&self, api_version: &str, resource: &str) -> Result<Vec<Json>, Unanswered>;
    /// The answer of a plugin.
    fn plugin(&self, call: &PluginCall) -> Result<HttpAnswer, Unanswered>;
    /// The repositories that a provider has, filters applied.
    fn repositories(&self, generator: &ScmProviderGenerator) -> Result<Vec<Repository>, Unanswered>;
    /// The pull requests of a repository, filters applied.
    fn pull_requests(&self, generator: &PullRequestGenerator) -> Result<Vec<PullRequest>, Unanswered>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_followed_inside_the_repository_only() {
        let texts = |entries: &[(&str, &str)]| {
            entries.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
        };
        let tree = GitTree {
            files: texts(&[("a/x.yaml", "x")]),
            symlinks: texts(&[
                ("b/link.yaml", "../a/x.yaml"),
                ("c", "a"),
                ("d", "b/link.yaml"),
                ("up", "../etc/passwd"),
                ("abs", "/etc/passwd"),
                ("gone", "a/y.yaml"),
                ("loop", "loop"),
                ("pool", "./pool/x"),
            ]),
        };
        let cases = [
            ("a/x.yaml", Linked::File("a/x.yaml".to_owned())),
            ("b/link.yaml", Linked::File("a/x.yaml".to_owned())),
            ("c/x.yaml", Linked::File("a/x.yaml".to_owned())),
            ("d", Linked::File("a/x.yaml".to_owned())),
            ("up", Linked::Outside),
            ("abs", Linked::Outside),
            ("gone", Linked::Nowhere),
            ("loop", Linked::Nowhere),
            ("pool", Linked::Nowhere),
        ];
        for (path, expected) in cases {
            assert_eq!(tree.follow(path), expected, "{path}");
        }
    }
}
