//! The context of an app: its project, its destination cluster and the settings that apply to it.

use std::sync::Arc;

use jiff::Timestamp;
use plumb_core::app::{App, IgnoreRule};
use plumb_core::ignore::{IgnoreProblem, IgnoreRules};
use plumb_core::object::ObjectKey;
use plumb_core::project::{Project, SyncTrigger, TargetCluster, WindowDecision, WindowSubject};
use plumb_git::RepoAccess;
use plumb_kube::{ClusterClient, Impersonation};

use crate::cluster::destination::Cluster;
use crate::config::projects::NoProject;
use crate::config::settings::Settings;
use crate::config::store::ConfigStore;

/// Project, destination cluster and settings of an app, fixed for one run.
#[derive(Clone)]
pub(crate) struct AppContext {
    /// The app's name in tracking labels and annotations.
    pub(crate) instance: String,
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) project: Arc<Project>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) rules: Arc<CompiledRules>,
    /// The service account that syncs impersonate, if the project names one; or why they may not write.
    pub(crate) impersonation: Result<Option<Impersonation>, String>,
}

/// What an app's context is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To compare and sync it.
    Reconcile,
    /// To delete it. That needs no source.
    Delete,
}

/// Why an app cannot be reconciled now.
pub(crate) enum Unavailable {
    /// Its cluster is being connected. The app runs again afterwards.
    NotYet,
    /// The Secret of its cluster turns off reconciliation.
    LeftAlone,
    /// Its cluster cannot be reached.
    ClusterAway(String),
    /// It names a cluster that is not registered.
    ClusterUnknown(String),
    /// It names a cluster whose registration a user has to correct.
    ClusterUnclear(String),
    /// Its project does not exist or does not permit it, with all reasons.
    Refused(Vec<String>),
}

impl AppContext {
    /// The context of an app on this cluster, or all reasons why its project refuses it.
    pub(crate) fn of(
        app: &App,
        purpose: Purpose,
        config: &ConfigStore,
        namespace: &str,
        cluster: Arc<Cluster>,
        rules: impl FnOnce(&Settings) -> Arc<CompiledRules>,
    ) -> Result<Self, Vec<String>> {
        let project = config.project(&app.project).map_err(|why| {
            vec![match why {
                NoProject::Missing => {
                    format!("Application referencing project {} which does not exist", app.project)
                }
                NoProject::Unreadable(reason) => {
                    format!("project {} cannot be read and permits nothing: {reason}", app.project)
                }
            }]
        })?;
        let refusals = match purpose {
            Purpose::Reconcile => project.check_app(app, &cluster.target(), namespace),
            Purpose::Delete => project.check_deletion(app, &cluster.target(), namespace),
        };
        if !refusals.is_empty() {
            return Err(refusals);
        }
        let settings = config.settings();
        Ok(Self {
            instance: app.id.instance_name(namespace),
            cluster,
            project,
            rules: rules(&settings),
            settings,
            impersonation: Ok(None),
        })
    }

    pub(crate) fn target(&self) -> TargetCluster<'_> {
        self.cluster.target()
    }

    /// Why the project does not permit an object, if it does not.
    pub(crate) fn denies(&self, key: &ObjectKey) -> Option<String> {
        self.project.permits_object(key, &self.target()).err().map(|refusal| refusal.to_string())
    }

    /// True if the project permits objects in this namespace of the app's cluster.
    pub(crate) fn permits_namespace(&self, namespace: &str) -> bool {
        self.project.permits_destination(&self.target(), namespace)
    }

    /// Why automated syncs may not start now, if a sync window says so.
    pub(crate) fn window(&self, app: &App, now: Timestamp) -> Option<String> {
        self.decide_window(app, SyncTrigger::Automated, None, now)
    }

    /// Why an operation may not go on now, if a sync window says so.
    pub(crate) fn operation_window(
        &self,
        app: &App,
        trigger: SyncTrigger,
        started_at: Timestamp,
        now: Timestamp,
    ) -> Option<String> {
        self.decide_window(app, trigger, Some(started_at), now)
    }

    fn decide_window(
        &self,
        app: &App,
        trigger: SyncTrigger,
        started_at: Option<Timestamp>,
        now: Timestamp,
    ) -> Option<String> {
        let target = self.target();
        let subject = WindowSubject {
            app: &app.id.name,
            namespace: app.destination.namespace.as_deref().unwrap_or_default(),
            server: target.server,
            cluster: target.name,
        };
        match self.project.permits_sync(&subject, trigger, started_at, now) {
            WindowDecision::Allowed => None,
            WindowDecision::Denied(why) => Some(why),
        }
    }

    /// The client that acts for the app: as the service account of its project, if syncs impersonate one. `None` if the
    /// project names none and has to.
    pub(crate) fn acting_client(&self) -> Option<ClusterClient> {
        let client = &self.cluster.client;
        match &self.impersonation {
            Ok(None) => Some(client.clone()),
            Ok(Some(account)) => Some(client.impersonating(account.clone())),
            Err(_) => None,
        }
    }

    /// How to reach a repository.
    pub(crate) fn access(&self, repo_url: &str) -> RepoAccess {
        self.settings.access(repo_url, self.project.name())
    }
}

/// The ignore rules of an app and of the settings, compiled once for each state of both.
pub(crate) struct CompiledRules {
    app_rules: Vec<IgnoreRule>,
    settings: u64,
    pub(crate) rules: IgnoreRules,
    /// Rules that could not be compiled, and why.
    pub(crate) problems: Vec<String>,
}

impl CompiledRules {
    pub(crate) fn compile(app: &App, settings: &Settings) -> Self {
        let lists = [app.ignore_differences.clone(), settings.ignore.clone()];
        let (rules, problems) = IgnoreRules::compile_all(lists);
        let problems = problems.iter().map(message_of);
        Self {
            app_rules: app.ignore_differences.clone(),
            settings: settings.generation,
            rules,
            problems: problems.collect(),
        }
    }

    /// jq paths that took too much and ignore nothing now, and why.
    pub(crate) fn switched_off(&self) -> Vec<String> {
        self.rules.switched_off().iter().map(message_of).collect()
    }

    /// True if these are the rules of this spec and these settings.
    pub(crate) fn are_of(&self, app: &App, settings: &Settings) -> bool {
        self.settings == settings.generation && self.app_rules == app.ignore_differences
    }
}

fn message_of(problem: &IgnoreProblem) -> String {
    format!("ignoreDifferences: `{}`: {}", problem.expression, problem.message)
}
