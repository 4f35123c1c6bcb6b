//! The engine: everything that runs share.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use plumb_core::app::{App, AppId, ClusterRef};
use plumb_core::object::{Manifest, ObjectKey};
use plumb_core::project::Project;
use plumb_crd::Application;
use plumb_kube::{ApiError, Impersonation, WriteError};

use crate::apps::claims::Claims;
use crate::apps::context::{AppContext, Purpose, Unavailable};
use crate::apps::deleting_projects::DeletingProjects;
use crate::apps::large_apps::LargeApps;
use crate::apps::registry::Registry;
use crate::apps::requests::{application_gvk, application_patch};
use crate::apps::shown_text::ShownText;
use crate::apps::snapshot::{AppSnapshot, AppSummary};
use crate::cluster::clusters::{ClusterState, Clusters};
use crate::cluster::destination::Cluster;
use crate::cluster::waiting_apps::WaitingApps;
use crate::cluster::witness::ImpersonatedUsers;
use crate::compare::ignored_updates::IgnoredUpdates;
use crate::compare::orphans::Orphans;
use crate::config::app_namespaces::AppNamespaces;
use crate::config::options::Options;
use crate::config::settings::Settings;
use crate::config::store::ConfigStore;
use crate::events::event::{AppEvent, PendingEvent};
use crate::events::writer::Outbox;
use crate::health::events_and_logs::Diagnostics;
use crate::metrics::counters::{AppLabels, Metrics};
use crate::pushes::push_box::PushBox;
use crate::queue::{FirstRuns, Queue, Trigger, TriggerReason};
use crate::set_signals::SetSignals;
use crate::sources::gather::Sources;
use crate::sources::slow_servers::Answered;
use crate::state::app_records::AppRecords;
use crate::state::bursts::BurstDetector;
use crate::state::restart::Restart;
use crate::state::retries::{Retries, Subject};
use crate::state::time_travels::TimeTravels;
use crate::state::tombstone_ledger::TombstoneLedger;

/// Everything that runs share.
pub(crate) struct Engine {
    pub(crate) options: Options,
    /// How many apps run at the same time.
    pub(crate) n_workers: usize,
    /// Since when no plumb had run when this process took the lease; `None` if that is not known.
    pub(crate) down_since: Option<jiff::Timestamp>,
    pub(crate) home: Arc<Cluster>,
    pub(crate) clusters: Clusters,
    pub(crate) app_namespaces: AppNamespaces,
    pub(crate) registry: Registry,
    pub(crate) claims: Claims,
    pub(crate) records: AppRecords,
    pub(crate) queue: Queue,
    pub(crate) first_runs: FirstRuns,
    pub(crate) sources: Arc<Sources>,
    /// Whose turn it is among large apps.
    pub(crate) large_apps: LargeApps,
    pub(crate) config: ConfigStore,
    pub(crate) diagnostics: Diagnostics,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) orphans: Orphans,
    pub(crate) ignored_updates: IgnoredUpdates,
    pub(crate) outbox: Outbox,
    pub(crate) deleting_projects: DeletingProjects,
    pub(crate) restart: Restart,
    /// When the data of each cluster went back in time.
    pub(crate) travels: Arc<TimeTravels>,
    pub(crate) bursts: BurstDetector,
    pub(crate) tombstones: TombstoneLedger,
    pub(crate) retries: Retries,
    /// Apps whose report waits until the kind of reports is served.
    pub(crate) without_report: WaitingApps,
    /// What sets wait for.
    pub(crate) set_signals: SetSignals,
    /// Pushes that wait for the leader.
    pub(crate) pushes: Arc<PushBox>,
    /// The users as whom syncs write.
    pub(crate) impersonated: Arc<ImpersonatedUsers>,
}

impl Engine {
    /// Cleans texts of others before they are written to the cluster.
    pub(crate) fn shown_text(&self) -> ShownText {
        ShownText::hiding(&self.options.cache_dir)
    }

    /// The project, cluster and settings of an app, or why it has none.
    pub(crate) fn context(&self, app: &App) -> Result<AppContext, Unavailable> {
        self.context_for(app, Purpose::Reconcile)
    }

    /// The project, cluster and settings of an app for this purpose, or why it has none.
    pub(crate) fn context_for(&self, app: &App, purpose: Purpose) -> Result<AppContext, Unavailable> {
        let settings = self.config.settings();
        let destination = &app.destination.cluster;
        let cluster = match self.clusters.reach(&app.id, destination, settings.in_cluster_enabled) {
            ClusterState::Ready(cluster) => cluster,
            ClusterState::NotYet => return Err(Unavailable::NotYet),
            ClusterState::LeftAlone => return Err(Unavailable::LeftAlone),
            ClusterState::Away(why) => return Err(Unavailable::ClusterAway(why)),
            ClusterState::Unknown(why) => return Err(Unavailable::ClusterUnknown(why)),
            ClusterState::Unclear(why) => return Err(Unavailable::ClusterUnclear(why)),
        };
        let namespace = &self.options.namespace;
        let rules = |settings: &Settings| self.records.rules(app, settings);
        let context = AppContext::of(app, purpose, &self.config, namespace, cluster, rules);
        let mut context = context.map_err(Unavailable::Refused)?;
        context.impersonation = impersonation(app, &context.project, &context.cluster, &context.settings);
        if let Ok(Some(impersonation)) = &context.impersonation {
            self.impersonated.note(&impersonation.user);
        }
        Ok(context)
    }

    /// Restores what an app rendered before this process started, as far as its status tells.
    pub(crate) fn restore_claims(&self, known: &AppSnapshot) {
        let id = &known.id;
        let (Ok(application), Ok(app)) = (&known.wire, &known.app) else { return };
        let Some(cluster) = self.clusters.address(&app.destination.cluster) else { return };
        let instance = id.instance_name(&self.options.namespace);
        self.claims.restore(id, &cluster, &instance, || application.rendered_keys());
    }

    /// Which claims of other apps on objects of this cluster count: those that the project of the claiming app permits. The
    /// projects are looked up now, so a change of a project or of the app takes effect at once.
    pub(crate) fn permits_claim<'e>(
        &'e self,
        cluster: &'e Cluster,
    ) -> impl Fn(&AppId, &ObjectKey) -> bool + Sync + 'e {
        let known: Mutex<HashMap<AppId, Option<Arc<Project>>>> = Mutex::default();
        move |app, key| {
            let mut known = known.lock();
            let project = known.entry(app.clone()).or_insert_with(|| self.project_for_claims(app, cluster));
            project.as_ref().is_some_and(|project| project.permits_object(key, &cluster.target()).is_ok())
        }
    }

    /// The project that decides about the claims of an app on this cluster; `None` if the app may not write there at all.
    fn project_for_claims(&self, id: &AppId, cluster: &Cluster) -> Option<Arc<Project>> {
        let known = self.registry.summary(id)?;
        if let Ok(app) = &known.app {
            let context = self.context(app).ok()?;
            let may_write = context.cluster.server == cluster.server && context.impersonation.is_ok();
            return may_write.then_some(context.project);
        }
        // The spec is invalid for now. What the app rendered before is still its own.
        let project = self.config.project(known.head.as_ref().ok()?.project()).ok()?;
        project.permits_app_namespace(&id.namespace, &self.options.namespace).then_some(project)
    }

    /// Why the project does not permit an app to touch this object now, if so. Unlike the context of a run, this takes changes
    /// of the project into account that arrived since the run began.
    pub(crate) fn denies_now(&self, app: &App, context: &AppContext, key: &ObjectKey) -> Option<String> {
        let target = context.cluster.target();
        let current = self.registry.summary(&app.id);
        let current = current.as_ref().and_then(|known| known.app.as_ref().ok()).map(|app| &app.project);
        if let Some(moved) = current.filter(|project| **project != app.project) {
            return Some(format!("the application moved to project {moved}"));
        }
        let Ok(project) = self.config.project(&app.project) else {
            return Some(format!("project {} cannot be used any more", app.project));
        };
        if Arc::ptr_eq(&project, &context.project) {
            return context.denies(key);
        }
        let refusals = project.check_app(app, &target, &self.options.namespace);
        let refusal = || project.permits_object(key, &target).err().map(|refusal| refusal.to_string());
        refusals.into_iter().next().or_else(refusal)
    }

    /// Requests a run for the same reason once the servers of the app's sources have answered.
    pub(crate) fn run_when_answered(&self, answered: Answered, app: &AppId, trigger: Trigger) {
        let (queue, app) = (self.queue.clone(), app.clone());
        tokio::spawn(async move {
            // The next run finds out how it ended.
            answered.wait().await;
            queue.push(app, trigger);
        });
    }

    /// Requests a run of every app.
    pub(crate) fn request_all(&self, trigger: Trigger) {
        for known in self.registry.all() {
            self.queue.push(known.id.clone(), trigger);
        }
    }

    /// Requests a run of every app that may be deployed to a registered cluster.
    pub(crate) fn request_remote(&self) {
        for known in self.registry.all() {
            let stays = known.app.as_ref().is_ok_and(|app| match &app.destination.cluster {
                ClusterRef::Server(server) => server == ClusterRef::IN_CLUSTER_SERVER,
                ClusterRef::Name(_) => false,
            });
            if !stays {
                self.queue.push(known.id.clone(), Trigger::live(TriggerReason::Cluster));
            }
        }
    }

    /// The address of an app's cluster, also if the app names it by name; else what the spec says.
    pub(crate) fn server_of(&self, known: &AppSummary) -> String {
        let named = known.app.as_ref().ok().and_then(|app| self.clusters.address(&app.destination.cluster));
        let written = known.head.as_ref().map(|head| head.spec.destination.server.clone());
        named.map_or_else(|| written.unwrap_or_default(), |server| server.to_string())
    }

    /// An app as metrics name it.
    pub(crate) fn labels_of(&self, known: &AppSummary) -> AppLabels {
        let project = known.head.as_ref().map(|head| head.project().to_owned());
        AppLabels {
            id: known.id.clone(),
            project: project.unwrap_or_default(),
            server: self.server_of(known),
        }
    }

    /// Queues a Kubernetes event about an app.
    pub(crate) fn record_event(&self, known: &AppSummary, application: &Application, event: AppEvent) {
        let settings = self.config.settings();
        let project = self.config.project_labels(application.project());
        let labels = settings.event_labels.pick(&application.metadata.labels, &project);
        self.outbox.put(PendingEvent::new(application, &self.server_of(known), event, labels));
    }

    /// Requests runs of several apps.
    pub(crate) fn request_runs(&self, apps: BTreeSet<AppId>, trigger: Trigger) {
        for app in apps {
            self.queue.push(app, trigger);
        }
    }

    /// Requests another run of an app when all kinds of its cluster are listed.
    pub(crate) fn run_when_listed(&self, app: &AppId, cluster: &Cluster) {
        cluster.waiting_for_lists.add(app);
        // The last list may have ended in between, and then nothing else requests the run.
        if cluster.store.is_complete() {
            self.run_waiting_for_lists(cluster);
        }
    }

    /// Requests the runs that waited for the lists of this cluster.
    pub(crate) fn run_waiting_for_lists(&self, cluster: &Cluster) {
        self.request_runs(cluster.waiting_for_lists.take(), Trigger::live(TriggerReason::Listed));
    }

    /// Requests another run of an app after the API server failed, unless one is requested already. If the fault is to be
    /// logged, it returns how many times it occurred since it was last logged.
    pub(crate) fn retry_later(&self, app: &AppId, subject: Subject) -> Option<u64> {
        let fault = self.retries.failed(app, subject, Instant::now());
        if let Some(wait) = fault.wait {
            self.queue.push_after(app.clone(), Trigger::live(TriggerReason::Retry), wait);
        }
        fault.told
    }

    /// Drops everything that is known about an Application that is gone.
    pub(crate) fn forget(&self, app: &AppId) {
        self.request_runs(self.claims.remove(app), Trigger::live(TriggerReason::Claim));
        self.request_runs(self.records.remove(app), Trigger::live(TriggerReason::Move));
        self.metrics.forget(app);
        self.retries.forget(app);
        self.orphans.forget(app);
        self.large_apps.forget(app);
        let instance = app.instance_name(&self.options.namespace);
        for cluster in self.clusters.connected() {
            cluster.store.forget(&instance);
            cluster.run_slots.forget(app);
        }
        self.clusters.forget(app);
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
