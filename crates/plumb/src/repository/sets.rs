//! The Applications that the `ApplicationSets` of a repository generate, from files alone.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use plumb_appset::{
    ClusterRecord, Facts, GitTree, HttpAnswer, PluginCall, PullRequest, Reason, Repository, Settings, Total,
    Unanswered, generate,
};
use plumb_core::source::{RepoPath, SourceFiles};
use plumb_crd::application_set::{PullRequestGenerator, ScmProviderGenerator};
use plumb_crd::{Application, ApplicationSet};
use plumb_render::LocalFiles;
use serde_json::{Value, json};

use super::RepositoryState;
use super::app::Failure;
use super::applications::FoundApplication;
use super::offline::{MOST_FILES, needs_cluster, walk};
use crate::local::Checkouts;

/// Repositories that a matrix names are asked for one after the other, but not for ever.
const MOST_ROUNDS: usize = 20;

/// A set and where it is.
pub(super) struct FoundSet {
    pub(super) set: ApplicationSet,
    /// Path of its file in the repository; for a rendered one, of its source.
    pub(super) file: String,
}

/// What a set generates.
pub(super) struct FromSet {
    pub(super) applications: Vec<FoundApplication>,
    pub(super) failure: Option<Failure>,
    /// True if a generator asked for clusters that no file names.
    pub(super) lacks_clusters: bool,
}

/// The set in a document, if it is one.
pub(super) fn set_in(value: &Value) -> Option<ApplicationSet> {
    let is_it = value.get("kind").and_then(Value::as_str) == Some(ApplicationSet::KIND)
        && value.get("apiVersion").and_then(Value::as_str) == Some(ApplicationSet::API_VERSION);
    is_it.then(|| ApplicationSet::from_json(value).ok()).flatten()
}

/// Where the generators of sets look.
pub(super) struct SetSources<'a> {
    pub(super) state: &'a RepositoryState,
    pub(super) checkouts: Option<&'a Checkouts>,
    /// `None` if no file names clusters.
    pub(super) clusters: Option<&'a [ClusterRecord]>,
}

/// Generates the Applications of a set.
pub(super) fn from_set(sources: &SetSources<'_>, found: &FoundSet) -> FromSet {
    let mut facts = RepositoryFacts {
        clusters: sources.clusters.unwrap_or_default().to_vec(),
        ..RepositoryFacts::default()
    };
    // Random functions of templates always draw the same here: a second look must not differ.
    let settings = Settings {
        new_git_file_globbing: false,
        include_hidden_directories: false,
        limits: plumb_gotemplate::Limits::default(),
        total: Total::default(),
        now: jiff::Timestamp::now(),
        seed: [0; 32],
    };
    let mut result = generate(&found.set, &facts, &settings);
    for _ in 0..MOST_ROUNDS {
        let is_open = matches!(&result, Err(error) if error.reason == Reason::Unanswered);
        let open = std::mem::take(&mut *facts.open.borrow_mut());
        if !is_open || open.is_empty() {
            break;
        }
        for url in open {
            let repository = sources.repository(&url);
            facts.repositories.insert(url, repository);
        }
        result = generate(&found.set, &facts, &settings);
    }
    let lacks_clusters = sources.clusters.is_none() && facts.asked_clusters.get();
    let (applications, failure) = match result {
        Ok(generated) => match twice(&generated.applications) {
            Some(name) => {
                let why = format!("it generates two Applications named {name}; plumb writes neither of them");
                (Vec::new(), Some(Failure::Broken(why)))
            }
            None => (generated.applications, None),
        },
        Err(error) => {
            let elsewhere = facts.elsewhere.take().map(Failure::Elsewhere);
            let needs = facts.needs_cluster.take().map(Failure::NeedsCluster);
            (Vec::new(), Some(elsewhere.or(needs).unwrap_or(Failure::Broken(error.message))))
        }
    };
    let applications = applications.into_iter().filter_map(|mut application| {
        application["apiVersion"] = json!(Application::API_VERSION);
        application["kind"] = json!(Application::KIND);
        let application = Application::from_json(&application).ok()?;
        Some(FoundApplication { application, file: found.file.clone() })
    });
    FromSet { applications: applications.collect(), failure, lacks_clusters }
}

/// A name that is generated twice.
fn twice(applications: &[Value]) -> Option<String> {
    let mut names = BTreeSet::new();
    let mut all = applications.iter().filter_map(|application| application["metadata"]["name"].as_str());
    all.find(|name| !names.insert(*name)).map(str::to_owned)
}

/// One repository that generators read.
struct RepositoryFiles {
    tree: GitTree,
    files: Arc<dyn SourceFiles>,
}

/// Why a repository cannot be read.
enum NoRepository {
    Elsewhere,
    Unreadable(String),
}

impl SetSources<'_> {
    /// The files of a repository. A repository of the same name is taken to be this one: a fork has another URL.
    fn repository(&self, url: &str) -> Result<RepositoryFiles, NoRepository> {
        let unreadable = |error: std::io::Error| NoRepository::Unreadable(error.to_string());
        if !self.state.is_named(url) {
            if let Some(Ok(directory)) = self.checkouts.map(|checkouts| checkouts.of_url(url)) {
                return on_disk(directory).map_err(unreadable);
            }
            if !self.state.may_be(url) {
                return Err(NoRepository::Elsewhere);
            }
        }
        if !self.state.is_commit() {
            return on_disk(&self.state.root).map_err(unreadable);
        }
        let tree = GitTree::paths_of(&*self.state.files, MOST_FILES).map_err(NoRepository::Unreadable)?;
        Ok(RepositoryFiles { tree, files: Arc::clone(&self.state.files) })
    }
}

fn on_disk(directory: &Path) -> std::io::Result<RepositoryFiles> {
    let mut tree = GitTree::default();
    walk(directory, directory, &mut tree)?;
    Ok(RepositoryFiles { tree, files: Arc::new(LocalFiles::new(directory)) })
}

/// What generators know: files, and clusters of a file.
#[derive(Default)]
struct RepositoryFacts {
    clusters: Vec<ClusterRecord>,
    repositories: BTreeMap<String, Result<RepositoryFiles, NoRepository>>,
    open: RefCell<BTreeSet<String>>,
    asked_clusters: Cell<bool>,
    /// A repository that is not here.
    elsewhere: RefCell<Option<String>>,
    /// What only a cluster or a server knows.
    needs_cluster: RefCell<Option<String>>,
}

impl RepositoryFacts {
    fn files(&self, url: &str) -> Result<&RepositoryFiles, Unanswered> {
        match self.repositories.get(url) {
            Some(Ok(files)) => Ok(files),
            Some(Err(NoRepository::Unreadable(why))) => Err(Unanswered::Failed(why.clone())),
            Some(Err(NoRepository::Elsewhere)) => {
                self.elsewhere.borrow_mut().get_or_insert_with(|| url.to_owned());
                Err(Unanswered::Failed("the repository is not here".to_owned()))
            }
            None => {
                self.open.borrow_mut().insert(url.to_owned());
                Err(Unanswered::NotYet)
            }
        }
    }

    fn unknown<T>(&self, what: &str) -> Result<T, Unanswered> {
        self.needs_cluster.borrow_mut().get_or_insert_with(|| what.to_owned());
        needs_cluster(what)
    }
}

impl Facts for RepositoryFacts {
    fn clusters(&self) -> Result<Vec<ClusterRecord>, Unanswered> {
        self.asked_clusters.set(true);
        Ok(self.clusters.clone())
    }

    fn project(&self, _: &str) -> Result<(), Unanswered> {
        Ok(())
    }

    fn git(&self, _: Option<&str>, repo_url: &str, _: &str) -> Result<&GitTree, Unanswered> {
        Ok(&self.files(repo_url)?.tree)
    }

    fn git_file(&self, _: Option<&str>, repo_url: &str, _: &str, path: &str) -> Result<String, Unanswered> {
        let files = self.files(repo_url)?;
        let failed = |why: String| Unanswered::Failed(format!("{path}: {why}"));
        let parsed = RepoPath::parse(path).map_err(|error| failed(error.to_string()))?;
        let bytes = files.files.read(&parsed).map_err(|error| failed(error.to_string()))?;
        String::from_utf8(bytes).map_err(|_| failed("it is not UTF-8".to_owned()))
    }

    fn config_map(&self, _: &str) -> Result<BTreeMap<String, String>, Unanswered> {
        self.unknown("a ConfigMap")
    }

    fn secret(&self, _: &str) -> Result<BTreeMap<String, String>, Unanswered> {
        self.unknown("a Secret")
    }

    fn objects(&self, _: &str, _: &str) -> Result<Vec<Value>, Unanswered> {
        self.unknown("an object")
    }

    fn plugin(&self, _: &PluginCall) -> Result<HttpAnswer, Unanswered> {
        self.unknown("a plugin")
    }

    fn repositories(&self, _: &ScmProviderGenerator) -> Result<Vec<Repository>, Unanswered> {
        self.unknown("an SCM provider")
    }

    fn pull_requests(&self, _: &PullRequestGenerator) -> Result<Vec<PullRequest>, Unanswered> {
        self.unknown("pull requests")
    }
}
