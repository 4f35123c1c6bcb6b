//! The engine: everything that runs share, and the loops that start them.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use plumb_core::app::{App, AppId, ClusterRef};
use plumb_core::glob::Glob;
use plumb_core::object::Manifest;
use plumb_core::project::Project;
use plumb_crd::Application;
use plumb_kube::{ApiError, ExecPlugins, Impersonation, WriteError};
use tokio::sync::Notify;

use crate::apps::claims::Claims;
use crate::apps::context::{Ground, Groundless};
use crate::apps::followed_commits::Commits;
use crate::apps::previous_reports::Reports;
use crate::apps::registry::Registry;
use crate::apps::snapshot::{Brief, Known};
use crate::cluster::clusters::{Fleet, Reached};
use crate::cluster::destination::Cluster;
use crate::cluster::run_slots::Seats;
use crate::cluster::witness::WitnessPlace;
use crate::compare::ignored_updates::Updates;
use crate::compare::orphans::Orphans;
use crate::config::settings::Settings;
use crate::config::store::World;
use crate::deletion::project::Leaving;
use crate::events::event::{EventFilter, Happening, Notice};
use crate::events::writer::Outbox;
use crate::health::events_and_logs::Testimonies;
use crate::metrics::counters::{AppLabels, Metrics};
use crate::metrics::finding_counts::Tally;
use crate::queue::{Look, Queue, Trigger};
use crate::runtime::gauges;
use crate::sources::gather::Sources;
use crate::sources::slow_servers::Answered;
use crate::state::app_state::Memories;
use crate::status::patch::{application_gvk, application_patch};

/// How the engine works.
#[derive(Clone, Debug)]
pub struct Options {
    /// The control-plane namespace: where Applications, projects and settings are.
    pub namespace: String,
    /// Everything below it is a cache and may be deleted at any time.
    pub cache_dir: PathBuf,
    /// The helm program.
    pub helm: PathBuf,
    /// The kustomize program.
    pub kustomize: PathBuf,
    /// The command that evaluates Jsonnet in a process of its own.
    pub jsonnet: Vec<PathBuf>,
    /// Who we are in the lease; unique to this process.
    pub identity: String,
    /// How many apps are looked at at the same time, if not as many as the settings say.
    pub workers: Option<usize>,
    /// How often Git is asked where no webhook tells, if not as often as the settings say; zero: never.
    pub poll: Option<Duration>,
    /// Which Kubernetes events are written.
    pub events: EventFilter,
    /// Start although another application controller is at work in the same namespace.
    pub beside_others: bool,
    /// Where the API server reaches the witness.
    pub witness: WitnessPlace,
    /// Namespaces, besides the control plane's and those of the setting `application.namespaces`, whose
    /// Applications are looked at: globs, or regular expressions between slashes.
    pub application_namespaces: Vec<Glob>,
    /// May the Secret of a cluster name a program that gives credentials?
    pub exec_plugins: ExecPlugins,
}

/// The namespaces whose Applications are looked at, decided when plumb starts.
#[derive(Debug)]
pub(crate) struct AppNamespaces {
    control_plane: String,
    others: Vec<Glob>,
}

impl AppNamespaces {
    pub(crate) fn new(options: &Options, settings: &Settings) -> Self {
        let others = options.application_namespaces.iter().chain(&settings.application_namespaces);
        Self { control_plane: options.namespace.clone(), others: others.cloned().collect() }
    }

    #[cfg(test)]
    pub(crate) fn of(control_plane: &str, others: &[&str]) -> Self {
        let others = others.iter().map(|pattern| Glob::plain(pattern).unwrap()).collect();
        Self { control_plane: control_plane.to_owned(), others }
    }

    /// The one namespace to watch; `None`: all of them.
    pub(crate) fn to_watch(&self) -> Option<String> {
        self.others.is_empty().then(|| self.control_plane.clone())
    }

    /// Are the Applications of this namespace looked at?
    pub(crate) fn permit(&self, namespace: &str) -> bool {
        namespace == self.control_plane || self.others.iter().any(|pattern| pattern.matches(namespace))
    }
}

/// Everything that runs share.
pub(crate) struct Engine {
    pub(crate) options: Options,
    /// How many apps are looked at at the same time.
    pub(crate) n_workers: usize,
    /// Since when nobody had looked at the apps when this process began to; `None` if that is not known.
    pub(crate) away_since: Option<jiff::Timestamp>,
    pub(crate) home: Arc<Cluster>,
    pub(crate) fleet: Fleet,
    pub(crate) app_namespaces: AppNamespaces,
    pub(crate) registry: Registry,
    pub(crate) claims: Claims,
    pub(crate) commits: Commits,
    pub(crate) memories: Memories,
    pub(crate) queue: Queue,
    pub(crate) sources: Arc<Sources>,
    pub(crate) world: World,
    pub(crate) reports: Reports,
    pub(crate) testimonies: Testimonies,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) findings: Tally,
    pub(crate) orphans: Orphans,
    pub(crate) updates: Updates,
    pub(crate) outbox: Outbox,
    pub(crate) leaving: Leaving,
    /// Something changed that only a new start takes in.
    pub(crate) start_again: Notify,
    /// Tells when a burst of runs is over.
    pub(crate) rest: crate::runtime::memory_trim::Rest,
}

/// After trouble with the API server, an app is looked at again then.
const RETRY_DELAY: Duration = Duration::from_secs(3);

impl Engine {
    /// What an app stands on, or why it stands on nothing.
    pub(crate) fn ground(&self, app: &App) -> Result<Ground, Groundless> {
        let settings = self.world.settings();
        let destination = &app.destination.cluster;
        let cluster = match self.fleet.reach(&app.id, destination, settings.in_cluster_enabled) {
            Reached::Ready(cluster) => cluster,
            Reached::NotYet => return Err(Groundless::NotYet),
            Reached::LeftAlone => return Err(Groundless::LeftAlone),
            Reached::Away(why) => return Err(Groundless::ClusterAway(why)),
            Reached::Unknown(why) => return Err(Groundless::ClusterUnknown(why)),
            Reached::Unclear(why) => return Err(Groundless::ClusterUnclear(why)),
        };
        let ground = Ground::of(app, &self.world, &self.options.namespace, cluster);
        let mut ground = ground.map_err(Groundless::Refused)?;
        ground.impersonation = impersonation(app, &ground.project, &ground.cluster, &ground.settings);
        Ok(ground)
    }

    /// What an app rendered before this process started, as far as its status tells.
    pub(crate) fn recall_claims(&self, known: &Known) {
        let id = &known.id;
        let (Ok(application), Ok(app)) = (&known.wire, &known.app) else { return };
        let Some(cluster) = self.fleet.address(&app.destination.cluster) else { return };
        let instance = id.instance_name(&self.options.namespace);
        self.claims.recall(id, &cluster, &instance, || {
            let rendered = application.status.resources.iter();
            let rendered = rendered.filter(|object| !object.requires_pruning && !object.hook);
            rendered.map(plumb_crd::application::ResourceStatus::key).collect()
        });
    }

    /// The seats of one cluster that is not ours: never all workers.
    pub(crate) fn seats(&self) -> Seats {
        Seats::new(self.n_workers / 2)
    }

    /// Asks for a run for the same reason once the servers of the app's sources have answered.
    pub(crate) fn come_back(&self, answered: Answered, app: &AppId, trigger: Trigger) {
        let (queue, app) = (self.queue.clone(), app.clone());
        tokio::spawn(async move {
            // However it ended, the next run finds out what there is.
            let _ = answered.await;
            queue.push(app, Trigger { gave_way: true, ..trigger });
        });
    }

    /// Asks for a run of every app.
    pub(crate) fn wake_all(&self, trigger: Trigger) {
        for known in self.registry.all() {
            self.queue.push(known.id.clone(), trigger);
        }
    }

    /// Asks for a run of every app that may go to another cluster than this one.
    pub(crate) fn wake_travellers(&self) {
        for known in self.registry.all() {
            let stays = known.app.as_ref().is_ok_and(|app| match &app.destination.cluster {
                ClusterRef::Server(server) => server == ClusterRef::IN_CLUSTER_SERVER,
                ClusterRef::Name(_) => false,
            });
            if !stays {
                self.queue.push(known.id.clone(), Trigger::new(Look::Live, "cluster"));
            }
        }
    }

    /// Every cluster that is looked at.
    pub(crate) fn clusters(&self) -> Vec<Arc<Cluster>> {
        self.fleet.clusters()
    }

    /// The address of an app's cluster, also where the app names the cluster by name; else what it says.
    pub(crate) fn server_of(&self, known: &Brief) -> String {
        let named = known.app.as_ref().ok().and_then(|app| self.fleet.address(&app.destination.cluster));
        let written = known.head.as_ref().map(|head| head.spec.destination.server.clone());
        named.map_or_else(|| written.unwrap_or_default(), |server| server.to_string())
    }

    /// An app as metrics name it.
    pub(crate) fn labels_of(&self, known: &Brief) -> AppLabels {
        let project = known.head.as_ref().map(|head| gauges::project_of(head).to_owned());
        AppLabels {
            id: known.id.clone(),
            project: project.unwrap_or_default(),
            server: self.server_of(known),
        }
    }

    /// Leaves an event about an app to be written.
    pub(crate) fn tell(&self, known: &Brief, application: &Application, happening: Happening) {
        let settings = self.world.settings();
        let project = self.world.project_labels(gauges::project_of(application));
        let labels = settings.event_labels.pick(&application.metadata.labels, &project);
        self.outbox.put(Notice::new(application, &self.server_of(known), happening, labels));
    }

    /// Asks for runs of several apps.
    pub(crate) fn wake(&self, apps: BTreeSet<AppId>, trigger: Trigger) {
        for app in apps {
            self.queue.push(app, trigger);
        }
    }

    pub(crate) fn retry_later(&self, app: &AppId) {
        self.queue.push_after(app.clone(), Trigger::new(Look::Live, "retry"), RETRY_DELAY);
    }

    /// The Application is gone: so is everything that is known about it.
    pub(crate) fn forget(&self, app: &AppId) {
        self.wake(self.claims.remove(app), Trigger::new(Look::Live, "claim"));
        self.memories.forget(app);
        self.commits.forget(app);
        self.reports.remove(app);
        self.metrics.forget(app);
        self.findings.forget(app);
        self.orphans.forget(app);
        let instance = app.instance_name(&self.options.namespace);
        for cluster in self.fleet.clusters() {
            cluster.store.forget(&instance);
        }
        self.fleet.forget(app);
    }

    pub(crate) async fn get_application(&self, app: &AppId) -> Result<Option<Manifest>, ApiError> {
        self.home.client.get_at(&application_gvk(), Some(&app.namespace), &app.name).await
    }

    pub(crate) async fn patch_application(
        &self,
        app: &AppId,
        patch: serde_json::Value,
    ) -> Result<Manifest, WriteError> {
        let applied = self.home.gate.write_own(&application_patch(app, patch)).await?;
        applied
            .map(|applied| applied.manifest)
            .ok_or_else(|| WriteError::Api(ApiError::UnknownKind { kind: "Application".to_owned() }))
    }
}

/// Whose permissions an app's syncs use. The error is what a sync then says.
fn impersonation(
    app: &App,
    project: &Project,
    cluster: &Cluster,
    settings: &Settings,
) -> Result<Option<Impersonation>, String> {
    use plumb_crd::settings::Impersonation as Mode;
    let namespace = app.destination.namespace.as_deref();
    let account = || project.service_account(&cluster.server, namespace, &app.id.namespace);
    let act_as = |user| Impersonation { user, groups: Vec::new() };
    match settings.impersonation {
        Mode::Off => Ok(None),
        Mode::WhereNamed => Ok(account().map(act_as)),
        Mode::Enforced => account().map(act_as).map(Some).ok_or_else(|| {
            format!(
                "failed to find a matching service account to impersonate: no matching service account found \
                 for destination server {} and namespace {} in project {}",
                cluster.server,
                namespace.unwrap_or_default(),
                project.name()
            )
        }),
    }
}
