//! The engine: everything that runs share, and the loops that start them.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use plumb_core::app::{App, AppId, ClusterRef};
use plumb_core::object::Manifest;
use plumb_crd::Application;
use plumb_kube::{ApiError, WriteError};
use tokio::sync::Notify;

use crate::claims::Claims;
use crate::cluster::Cluster;
use crate::events::{EventFilter, Happening, Notice, Outbox};
use crate::health::Testimonies;
use crate::memory::Memories;
use crate::metrics::{AppLabels, Metrics, gauges};
use crate::orphans::Orphans;
use crate::project::Ground;
use crate::queue::{Look, Queue, Trigger};
use crate::registry::{Known, Registry};
use crate::reports::Reports;
use crate::sources::Sources;
use crate::tally::Tally;
use crate::updates::Updates;
use crate::witness::WitnessPlace;
use crate::world::World;
use crate::write::{application_gvk, application_patch};

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
    /// How many apps are looked at at the same time.
    pub workers: usize,
    /// How often Git is asked where no webhook tells.
    pub poll: Duration,
    /// Which Kubernetes events are written.
    pub events: EventFilter,
    /// Start although another application controller is at work in the same namespace.
    pub beside_others: bool,
    /// Where the API server reaches the witness.
    pub witness: WitnessPlace,
}

/// Everything that runs share.
pub(crate) struct Engine {
    pub(crate) options: Options,
    pub(crate) home: Arc<Cluster>,
    pub(crate) registry: Registry,
    pub(crate) claims: Claims,
    pub(crate) memories: Memories,
    pub(crate) queue: Queue,
    pub(crate) sources: Sources,
    pub(crate) world: World,
    pub(crate) reports: Reports,
    pub(crate) testimonies: Testimonies,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) findings: Tally,
    pub(crate) orphans: Orphans,
    pub(crate) updates: Updates,
    pub(crate) outbox: Outbox,
    /// Something changed that only a new start takes in.
    pub(crate) start_again: Notify,
}

/// After trouble with the API server, an app is looked at again then.
const RETRY_DELAY: Duration = Duration::from_secs(3);

impl Engine {
    /// What an app stands on, or everything that is wrong with it.
    pub(crate) fn ground(&self, app: &App) -> Result<Ground, Vec<String>> {
        let cluster = self.cluster(&app.destination.cluster).map_err(|problem| vec![problem])?;
        Ground::of(app, &self.world, &self.options.namespace, cluster)
    }

    fn cluster(&self, destination: &ClusterRef) -> Result<Arc<Cluster>, String> {
        if destination.is_in_cluster() {
            return Ok(Arc::clone(&self.home));
        }
        Err(match destination {
            ClusterRef::Server(server) => {
                format!("error getting cluster by server \"{server}\": cluster \"{server}\" not found")
            }
            ClusterRef::Name(name) => format!("there are no clusters with this name: {name}"),
        })
    }

    /// Every cluster that is looked at.
    pub(crate) fn clusters(&self) -> Vec<Arc<Cluster>> {
        vec![Arc::clone(&self.home)]
    }

    /// The address of an app's cluster, also where the app names the cluster by name; else what it says.
    pub(crate) fn server_of(&self, known: &Known) -> String {
        let named = known.app.as_ref().ok().and_then(|app| self.cluster(&app.destination.cluster).ok());
        let written = known.wire.as_ref().map(|wire| wire.spec.destination.server.clone());
        named.map_or_else(|| written.unwrap_or_default(), |cluster| cluster.server.to_string())
    }

    /// An app as metrics name it.
    pub(crate) fn labels_of(&self, known: &Known) -> AppLabels {
        let project = known.wire.as_ref().map(|wire| gauges::project_of(wire).to_owned());
        AppLabels {
            id: known.id.clone(),
            project: project.unwrap_or_default(),
            server: self.server_of(known),
        }
    }

    /// Leaves an event about an app to be written.
    pub(crate) fn tell(&self, known: &Known, application: &Application, happening: Happening) {
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
        self.reports.remove(app);
        self.metrics.forget(app);
        self.findings.forget(app);
        self.orphans.forget(app);
        self.home.store.forget(&app.instance_name(&self.options.namespace));
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
