//! What was gathered for a set, and what it asked for in vain.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use plumb_appset::scm::{self, GithubApp, HttpCall, ScmAnswer, ScmFacts, ScmRules, SetSecret};
use plumb_appset::{
    ClusterRecord, Facts, GitTree, HttpAnswer, PluginCall, PullRequest, Repository, Unanswered,
};
use plumb_core::source::{RepoPath, SourceFiles};
use plumb_crd::application_set::{PullRequestGenerator, ScmProviderGenerator};
use plumb_git::SourceTree;
use serde_json::Value;

/// A revision of a repository, for the Applications of a project.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct GitQuestion {
    pub(super) project: Option<String>,
    pub(super) repo_url: String,
    pub(super) revision: String,
}

/// Something that a generator needs to know.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Question {
    Git(GitQuestion),
    ConfigMap(String),
    Secret(String),
    Objects {
        api_version: String,
        resource: String,
    },
    SetSecret(String),
    SetConfigMap(String),
    /// A Secret of Argo CD's namespace.
    GithubApp(String),
    Http(HttpCall),
    Plugin(PluginQuestion),
}

/// A request to a plugin.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PluginQuestion {
    pub(super) url: String,
    pub(super) token: String,
    pub(super) body: String,
    pub(super) timeout: Duration,
}

/// The answer to a question.
pub(super) enum Answer {
    Git(GitQuestion, Result<Arc<Commit>, String>),
    ConfigMap(String, Result<Data, String>),
    Secret(String, Result<Data, String>),
    Objects((String, String), Result<Vec<Value>, String>),
    SetSecret(String, Result<SetSecret, String>),
    SetConfigMap(String, Result<Data, String>),
    GithubApp(String, Result<GithubApp, String>),
    Http(HttpCall, Result<ScmAnswer, String>),
    Plugin(PluginQuestion, Result<HttpAnswer, String>),
}

impl Answer {
    /// What a server sent. `ConfigMaps` and Secrets are small.
    pub(super) fn bytes(&self) -> u64 {
        let length = match self {
            Self::Http(_, Ok(answer)) => answer.body.len(),
            Self::Plugin(_, Ok(answer)) => answer.body.len(),
            Self::Objects(_, Ok(objects)) => objects.iter().map(|object| object.to_string().len()).sum(),
            _ => 0,
        };
        length as u64
    }
}

/// A commit: its paths, and where its files are read.
pub(super) struct Commit {
    pub(super) tree: Arc<GitTree>,
    pub(super) files: Arc<SourceTree>,
}

type Data = BTreeMap<String, String>;

/// The answers so far.
#[derive(Default)]
pub(super) struct Known {
    pub(super) clusters: Vec<ClusterRecord>,
    pub(super) projects: BTreeSet<String>,
    pub(super) git: BTreeMap<GitQuestion, Result<Arc<Commit>, String>>,
    pub(super) config_maps: BTreeMap<String, Result<Data, String>>,
    pub(super) secrets: BTreeMap<String, Result<Data, String>>,
    pub(super) objects: BTreeMap<(String, String), Result<Vec<Value>, String>>,
    /// The namespace of the set.
    pub(super) namespace: String,
    pub(super) scm_rules: ScmRules,
    pub(super) set_secrets: BTreeMap<String, Result<SetSecret, String>>,
    pub(super) set_config_maps: BTreeMap<String, Result<Data, String>>,
    pub(super) github_apps: BTreeMap<String, Result<GithubApp, String>>,
    pub(super) http: BTreeMap<HttpCall, Result<ScmAnswer, String>>,
    pub(super) plugins: BTreeMap<PluginQuestion, Result<HttpAnswer, String>>,
    /// Questions of this round without an answer.
    pub(super) open: RefCell<BTreeSet<Question>>,
    /// True if a generator asked for the clusters.
    pub(super) asked_clusters: RefCell<bool>,
}

impl Known {
    /// Notes the answer to a question.
    pub(super) fn note(&mut self, answer: Answer) {
        match answer {
            Answer::Git(question, commit) => drop(self.git.insert(question, commit)),
            Answer::ConfigMap(name, data) => drop(self.config_maps.insert(name, data)),
            Answer::Secret(name, data) => drop(self.secrets.insert(name, data)),
            Answer::Objects(key, objects) => drop(self.objects.insert(key, objects)),
            Answer::SetSecret(name, secret) => drop(self.set_secrets.insert(name, secret)),
            Answer::SetConfigMap(name, data) => drop(self.set_config_maps.insert(name, data)),
            Answer::GithubApp(name, app) => drop(self.github_apps.insert(name, app)),
            Answer::Http(call, answer) => drop(self.http.insert(call, answer)),
            Answer::Plugin(question, answer) => drop(self.plugins.insert(question, answer)),
        }
    }

    fn answer<'a, K: Ord, T>(
        &self,
        known: &'a BTreeMap<K, Result<T, String>>,
        key: &K,
        question: impl FnOnce() -> Question,
    ) -> Result<&'a T, Unanswered> {
        match known.get(key) {
            Some(Ok(answer)) => Ok(answer),
            Some(Err(reason)) => Err(Unanswered::Failed(reason.clone())),
            None => {
                self.open.borrow_mut().insert(question());
                Err(Unanswered::NotYet)
            }
        }
    }

    fn commit(
        &self,
        project: Option<&str>,
        repo_url: &str,
        revision: &str,
    ) -> Result<&Arc<Commit>, Unanswered> {
        // Without a project, the repositories of all projects are open.
        if project.is_none() && self.scm_rules.needs_list {
            return Err(Unanswered::Failed(
                "an ApplicationSet of another namespace reads Git only with a fixed project in its template"
                    .to_owned(),
            ));
        }
        let question = GitQuestion {
            project: project.map(str::to_owned),
            repo_url: repo_url.to_owned(),
            revision: revision.to_owned(),
        };
        self.answer(&self.git, &question, || Question::Git(question.clone()))
    }
}

impl Facts for Known {
    fn clusters(&self) -> Result<Vec<ClusterRecord>, Unanswered> {
        *self.asked_clusters.borrow_mut() = true;
        Ok(self.clusters.clone())
    }

    fn project(&self, name: &str) -> Result<(), Unanswered> {
        if self.projects.contains(name) {
            return Ok(());
        }
        Err(Unanswered::Failed(format!("appprojects.argoproj.io \"{name}\" not found")))
    }

    fn git(&self, project: Option<&str>, repo_url: &str, revision: &str) -> Result<&GitTree, Unanswered> {
        self.commit(project, repo_url, revision).map(|commit| &*commit.tree)
    }

    fn git_file(
        &self,
        project: Option<&str>,
        repo_url: &str,
        revision: &str,
        path: &str,
    ) -> Result<String, Unanswered> {
        let commit = self.commit(project, repo_url, revision)?;
        let failed = |reason: String| Unanswered::Failed(reason);
        let path = RepoPath::parse(path).map_err(|error| failed(error.to_string()))?;
        let bytes = commit.files.read(&path).map_err(|error| failed(error.to_string()))?;
        String::from_utf8(bytes).map_err(|_| failed(format!("{path} is not UTF-8")))
    }

    fn config_map(&self, name: &str) -> Result<Data, Unanswered> {
        let question = || Question::ConfigMap(name.to_owned());
        self.answer(&self.config_maps, &name.to_owned(), question).cloned()
    }

    fn secret(&self, name: &str) -> Result<Data, Unanswered> {
        let question = || Question::Secret(name.to_owned());
        self.answer(&self.secrets, &name.to_owned(), question).cloned()
    }

    fn objects(&self, api_version: &str, resource: &str) -> Result<Vec<Value>, Unanswered> {
        let key = (api_version.to_owned(), resource.to_owned());
        let question =
            || Question::Objects { api_version: api_version.to_owned(), resource: resource.to_owned() };
        self.answer(&self.objects, &key, question).cloned()
    }

    fn plugin(&self, call: &PluginCall) -> Result<HttpAnswer, Unanswered> {
        let key = PluginQuestion {
            url: call.url.clone(),
            token: call.token.clone(),
            body: call.body.to_string(),
            timeout: call.timeout,
        };
        self.answer(&self.plugins, &key, || Question::Plugin(key.clone())).cloned()
    }

    fn repositories(&self, generator: &ScmProviderGenerator) -> Result<Vec<Repository>, Unanswered> {
        scm::repositories(generator, self, &self.scm_rules)
    }

    fn pull_requests(&self, generator: &PullRequestGenerator) -> Result<Vec<PullRequest>, Unanswered> {
        scm::pull_requests(generator, self, &self.scm_rules)
    }
}

impl ScmFacts for Known {
    fn namespace(&self) -> &str {
        &self.namespace
    }

    fn set_secret(&self, name: &str) -> Result<SetSecret, Unanswered> {
        let question = || Question::SetSecret(name.to_owned());
        self.answer(&self.set_secrets, &name.to_owned(), question).cloned()
    }

    fn set_config_map(&self, name: &str) -> Result<Data, Unanswered> {
        let question = || Question::SetConfigMap(name.to_owned());
        self.answer(&self.set_config_maps, &name.to_owned(), question).cloned()
    }

    fn github_app(&self, secret_name: &str) -> Result<GithubApp, Unanswered> {
        let question = || Question::GithubApp(secret_name.to_owned());
        self.answer(&self.github_apps, &secret_name.to_owned(), question).cloned()
    }

    fn http(&self, call: &HttpCall) -> Result<ScmAnswer, Unanswered> {
        self.answer(&self.http, call, || Question::Http(call.clone())).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_of_another_namespace_reads_git_only_for_a_project() {
        let ask = |needs_list: bool, project: Option<&str>| {
            let known =
                Known { scm_rules: ScmRules { needs_list, ..ScmRules::default() }, ..Known::default() };
            let answer = known.git(project, "https://git.example.com/x", "HEAD").err();
            (answer.is_some_and(|why| why == Unanswered::NotYet), known.open.borrow().len())
        };
        assert_eq!(ask(true, None), (false, 0), "nothing is fetched");
        assert_eq!(ask(true, Some("team")), (true, 1));
        assert_eq!(ask(false, None), (true, 1), "in the namespace of the control plane, as in Argo CD");
    }
}
