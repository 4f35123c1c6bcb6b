//! The ground that an app stands on: its project, its destination, the settings that count for it.

use std::sync::Arc;

use jiff::Timestamp;
use plumb_core::app::App;
use plumb_core::ignore::IgnoreRules;
use plumb_core::object::ObjectKey;
use plumb_core::project::{Project, SyncTrigger, TargetCluster, WindowDecision, WindowSubject};
use plumb_git::RepoAccess;
use plumb_kube::Impersonation;

use crate::cluster::destination::Cluster;
use crate::config::projects::NoProject;
use crate::config::settings::Settings;
use crate::config::store::World;
use crate::operation::active::ActiveOperation;

/// What an app stands on during one run.
pub(crate) struct Ground {
    /// The app's name in tracking marks.
    pub(crate) instance: String,
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) project: Arc<Project>,
    pub(crate) settings: Arc<Settings>,
    /// The app's and the settings' ignore rules, compiled.
    pub(crate) rules: IgnoreRules,
    /// Rules that could not be compiled.
    pub(crate) rule_problems: Vec<String>,
    /// Whose permissions syncs use, where the project names a service account; or why they may not write.
    pub(crate) impersonation: Result<Option<Impersonation>, String>,
}

/// Why an app stands on nothing.
pub(crate) enum Groundless {
    /// Its cluster is being looked at for the first time; the app is asked for again when more is known.
    NotYet,
    /// Its cluster's Secret says to leave its apps alone.
    LeftAlone,
    /// Its cluster cannot be reached.
    ClusterAway(String),
    /// It names a cluster that is not registered.
    ClusterUnknown(String),
    /// It names a cluster whose registration somebody has to correct.
    ClusterUnclear(String),
    /// Its project does not exist or does not permit it: everything that is wrong.
    Refused(Vec<String>),
}

impl Ground {
    /// What an app on this cluster stands on, or everything that is wrong with it.
    pub(crate) fn of(
        app: &App,
        world: &World,
        namespace: &str,
        cluster: Arc<Cluster>,
    ) -> Result<Self, Vec<String>> {
        let project = world.project(&app.project).map_err(|why| {
            vec![match why {
                NoProject::Missing => {
                    format!("Application referencing project {} which does not exist", app.project)
                }
                NoProject::Unreadable(reason) => {
                    format!("project {} cannot be read and permits nothing: {reason}", app.project)
                }
            }]
        })?;
        let refusals = project.check_app(app, &cluster.target(), namespace);
        if !refusals.is_empty() {
            return Err(refusals);
        }
        let settings = world.settings();
        let rules = app.ignore_differences.iter().chain(&settings.ignore).cloned();
        let (rules, problems) = IgnoreRules::compile(rules);
        Ok(Self {
            instance: app.id.instance_name(namespace),
            cluster,
            project,
            rules,
            rule_problems: problems
                .into_iter()
                .map(|problem| format!("ignoreDifferences: `{}`: {}", problem.expression, problem.message))
                .collect(),
            settings,
            impersonation: Ok(None),
        })
    }

    fn target(&self) -> TargetCluster<'_> {
        self.cluster.target()
    }

    /// Why the project does not permit an object, if it does not.
    pub(crate) fn denies(&self, key: &ObjectKey) -> Option<String> {
        self.project.permits_object(key, &self.target()).err().map(|refusal| refusal.to_string())
    }

    /// Why automated syncs may not start now, if a sync window says so.
    pub(crate) fn window(&self, app: &App, now: Timestamp) -> Option<String> {
        self.decide_window(app, SyncTrigger::Automated, None, now)
    }

    /// Why an operation may not go on now, if a sync window says so.
    pub(crate) fn operation_window(
        &self,
        app: &App,
        active: &ActiveOperation,
        now: Timestamp,
    ) -> Option<String> {
        let trigger = if active.is_automated() { SyncTrigger::Automated } else { SyncTrigger::Manual };
        self.decide_window(app, trigger, Some(active.record.started_at), now)
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

    /// How to reach a repository.
    pub(crate) fn access(&self, repo_url: &str) -> RepoAccess {
        self.settings.access(repo_url, self.project.name())
    }
}
