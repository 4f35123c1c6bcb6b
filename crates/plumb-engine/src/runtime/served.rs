//! What the server shows of a leading engine: Applications, their objects and their rendered manifests. It reads what
//! is in memory; only objects that are not kept whole and renderings cost requests.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use plumb_core::app::{App, AppId};
use plumb_core::normalize::keep_ignored;
use plumb_core::object::{GroupVersionKind, Manifest, ObjectKey};
use plumb_core::schema::SchemaSet;
use plumb_crd::application::{Operation, SyncOperation};
use plumb_crd::{Application, SpecProblem, to_app, to_operation};
use plumb_kube::{ClusterClient, Node};
use serde_json::Value;
use tokio::sync::broadcast;

use super::handle::Handle;
use crate::apps::context::{AppContext, Unavailable};
use crate::apps::registry::AppChange;
use crate::apps::snapshot::AppSummary;
use crate::cluster::destination::Cluster;
use crate::engine::Engine;
use crate::queue::{RefreshDepth, Trigger, TriggerReason};
use crate::sources::gather::{FetchPolicy, OperationSources};
use crate::sources::parked::Parked;
use crate::sources::slow_servers::{NotGathered, Patience};

/// Longest time that a request waits for a cluster to which no app was deployed before.
const CONNECTED_WITHIN: Duration = Duration::from_secs(30);

/// The engine while this process leads. It is to be dropped soon: an engine that stops waits for it.
pub struct Leader {
    pub(super) engine: Arc<Engine>,
    pub(super) runtime: tokio::runtime::Handle,
}

/// An Application without the long lists of its status.
pub struct KnownApp(Arc<AppSummary>);

impl KnownApp {
    /// Its namespace.
    pub fn namespace(&self) -> &str {
        &self.0.id.namespace
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.0.id.name
    }

    /// Its resource version.
    pub fn resource_version(&self) -> &str {
        &self.0.resource_version
    }

    /// The Application without the lists of its status; `None` if it cannot be read.
    pub fn head(&self) -> Option<&Application> {
        self.0.head.as_ref().ok()
    }
}

/// A change of an Application.
pub enum AppNews {
    /// It is new or has changed.
    Seen {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// It is gone. This was its last state.
    Gone(Box<Value>),
}

/// The state of a cluster that Applications use.
#[derive(Debug)]
pub enum ClusterNews {
    /// It is connected.
    Connected(ClusterFacts),
    /// It cannot be reached, with the reason.
    Away(String),
}

/// A connected cluster.
#[derive(Debug)]
pub struct ClusterFacts {
    /// The version of its API server.
    pub version: String,
    /// What it serves: `apps/v1`, `apps/v1/Deployment` …
    pub api_versions: Arc<[String]>,
    /// The number of kinds that it serves.
    pub n_kinds: usize,
    /// The number of objects that plumb follows there.
    pub n_objects: usize,
}

/// The changes of Applications.
pub struct AppFollower(broadcast::Receiver<AppChange>);

impl AppFollower {
    /// The next change. `None` if the engine has stopped, or if too many changes were missed.
    pub async fn next(&mut self) -> Option<AppNews> {
        loop {
            let change = self.0.recv().await.ok()?;
            let Some(last) = change.gone else {
                return Some(AppNews::Seen { namespace: change.id.namespace, name: change.id.name });
            };
            if let Ok(last) = &last.wire {
                return Some(AppNews::Gone(Box::new(last.to_json())));
            }
        }
    }
}

/// The manifests that an app renders to.
#[derive(Debug)]
pub struct RenderedManifests {
    /// The objects.
    pub objects: Vec<(ObjectKey, Manifest)>,
    /// The hooks.
    pub hooks: Vec<Manifest>,
    /// The resolved revisions, one per source.
    pub revisions: Vec<String>,
    /// The kind of each source: `Helm`, `Kustomize` …
    pub source_types: Vec<String>,
}

impl Handle {
    /// The engine, if this process leads and knows all Applications.
    pub fn leader(&self) -> Option<Leader> {
        self.leading().map(|(engine, runtime)| Leader { engine, runtime })
    }
}

impl Leader {
    /// All Applications, in no order.
    pub fn apps(&self) -> Vec<KnownApp> {
        self.engine.registry.all().into_iter().map(KnownApp).collect()
    }

    /// One whole Application as JSON.
    pub fn app(&self, namespace: &str, name: &str) -> Option<Value> {
        self.whole(namespace, name).map(|application| application.to_json())
    }

    /// `status.resources` of an Application as JSON text: much cheaper than the whole Application.
    pub fn resources(&self, app: &KnownApp) -> Option<String> {
        self.engine.registry.resources(&app.0.id)
    }

    pub(super) fn whole(&self, namespace: &str, name: &str) -> Option<Application> {
        let id = AppId { namespace: namespace.to_owned(), name: name.to_owned() };
        self.engine.registry.get(&id)?.wire.clone().ok()
    }

    /// True if Applications of this namespace are reconciled.
    pub fn permits_namespace(&self, namespace: &str) -> bool {
        self.engine.app_namespaces.permit(namespace)
    }

    /// True if Applications of other namespaces than the control plane's may be reconciled.
    pub fn permits_other_namespaces(&self) -> bool {
        self.engine.app_namespaces.to_watch().is_none()
    }

    /// The changes of Applications from now on.
    pub fn follow(&self) -> AppFollower {
        AppFollower(self.engine.registry.follow())
    }

    /// Notes an Application that the server has just written, so that the next read shows it, and requests its run.
    pub fn note_written(&self, manifest: &Manifest) {
        if let Some((known, Some(trigger))) = self.engine.registry.note(manifest) {
            self.engine.queue.push(known.id.clone(), trigger);
        }
    }

    /// Why the destination or the project of an Application is not permitted, if so.
    pub fn refusal(&self, application: &Application) -> Option<String> {
        let app = match to_app(application) {
            Ok(app) => app,
            Err(problems) => {
                return Some(problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "));
            }
        };
        match self.engine.context(&app) {
            Ok(_) | Err(Unavailable::NotYet | Unavailable::LeftAlone | Unavailable::ClusterAway(_)) => None,
            Err(Unavailable::ClusterUnknown(why) | Unavailable::ClusterUnclear(why)) => Some(why),
            Err(Unavailable::Refused(whys)) => Some(whys.join("; ")),
        }
    }

    /// Why a user's sync may not start now, if a sync window says so.
    pub fn manual_sync_window(&self, application: &Application) -> Option<String> {
        let app = to_app(application).ok()?;
        let context = self.engine.context(&app).ok()?;
        let now = jiff::Timestamp::now();
        context.operation_window(&app, plumb_core::project::SyncTrigger::Manual, now, now)
    }

    /// Why a sync of an app may not bring its own manifests, if it may not.
    pub fn refuses_local_manifests(&self, application: &Application) -> Option<String> {
        let app = to_app(application).ok()?;
        self.engine.context(&app).ok()?.project.refuses_local_manifests()
    }

    /// Waits until the cluster of an Application is connected: the first app that names it has it connected. Ends with an error
    /// if that takes too long. Whether the cluster can be reached at all, `render` tells.
    pub fn connected(
        &self,
        application: &Application,
    ) -> impl Future<Output = Result<(), String>> + Send + use<> {
        let app = to_app(application);
        let engine = Arc::downgrade(&self.engine);
        let mut changes = self.engine.clusters.changes();
        let connected = async move {
            let Ok(app) = app else { return };
            while let Some(engine) = engine.upgrade() {
                let is_starting = matches!(engine.context(&app), Err(Unavailable::NotYet));
                // An engine that stops waits for its users.
                drop(engine);
                if !is_starting || changes.changed().await.is_err() {
                    return;
                }
            }
        };
        async {
            let late = |_| "its cluster is being connected, which takes long; try again".to_owned();
            tokio::time::timeout(CONNECTED_WITHIN, connected).await.map_err(late)
        }
    }

    fn context_of(&self, application: &Application) -> Option<AppContext> {
        let app = to_app(application).ok()?;
        self.engine.context(&app).ok()
    }

    fn cluster_of(&self, application: &Application) -> Option<Arc<Cluster>> {
        self.context_of(application).map(|context| context.cluster)
    }

    /// The objects that refer to an object by name; `None` if its cluster is not connected.
    pub fn referrers(&self, application: &Application, key: &ObjectKey) -> Option<Vec<Node>> {
        let cluster = self.cluster_of(application)?;
        Some(cluster.store.referrers(key))
    }

    /// The client of the cluster of an app, and the runtime on which it must be used.
    pub fn cluster_client(
        &self,
        application: &Application,
    ) -> Option<(ClusterClient, tokio::runtime::Handle)> {
        self.cluster_of(application).map(|cluster| (cluster.client.clone(), self.runtime.clone()))
    }

    /// The client that writes for an app: as the service account of its project, if syncs impersonate one. The error says why
    /// there is none.
    pub fn acting_client(
        &self,
        application: &Application,
    ) -> Result<(ClusterClient, tokio::runtime::Handle), String> {
        let Some(context) = self.context_of(application) else {
            return Err("the cluster of the application is not connected".to_owned());
        };
        let client = context.acting_client().ok_or_else(|| {
            let why = context.impersonation.as_ref().err().map(String::as_str).unwrap_or_default();
            format!("the project has no service account that may write: {why}")
        })?;
        Ok((client, self.runtime.clone()))
    }

    /// The address of the cluster of an app; `None` if it is not connected.
    pub fn server_of_app(&self, application: &Application) -> Option<String> {
        self.context_of(application).map(|context| context.target().server.to_owned())
    }

    /// An object of an app, or one below it, as it is in the cluster. Of what the project of the app does not permit nothing
    /// is told: `is_child` says that the object is below one of the app's.
    pub async fn live(
        &self,
        application: &Application,
        key: &ObjectKey,
        is_child: bool,
    ) -> Result<Option<Manifest>, String> {
        let Some(context) = self.context_of(application) else {
            return Err("the cluster of the application is not connected".to_owned());
        };
        if !may_show(&context, key, !is_child) {
            return Ok(None);
        }
        let cluster = context.cluster;
        if let Some(kept) = cluster.store.get_kept(key) {
            return Ok(Some(kept));
        }
        let key = key.clone();
        let read = self.runtime.spawn(async move { cluster.store.get_whole(&key).await });
        match read.await {
            Ok(Ok(live)) => Ok(live.map(Arc::unwrap_or_clone)),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("reading the object was aborted".to_owned()),
        }
    }

    /// The schemas of the custom resources among these kinds, as the cluster of an app has them. The kinds of Kubernetes
    /// are left out.
    pub async fn custom_schemas(
        &self,
        application: &Application,
        mut kinds: BTreeSet<GroupVersionKind>,
    ) -> Result<Arc<SchemaSet>, String> {
        kinds.retain(|kind| kind.group.contains('.') && !kind.group.ends_with(".k8s.io"));
        if kinds.is_empty() {
            return Ok(Arc::default());
        }
        let Some(cluster) = self.cluster_of(application) else {
            return Err("the cluster of the application is not connected".to_owned());
        };
        let read = self.runtime.spawn(async move { cluster.schemas.with(kinds).await });
        match read.await {
            Ok(Ok(schemas)) => Ok(schemas),
            Ok(Err(error)) => Err(format!("cannot read the schemas: {error}")),
            Err(_) => Err("reading the schemas was aborted".to_owned()),
        }
    }

    /// An object as a sync would leave it, with the live values where the ignore rules of the app and of the settings say that
    /// differences do not count.
    pub fn without_ignored(
        &self,
        application: &Application,
        key: &ObjectKey,
        predicted: Manifest,
        live: &Manifest,
    ) -> Manifest {
        let Some(context) = self.context_of(application) else { return predicted };
        let ignored = context.rules.rules.of(key, Some(&predicted), Some(live));
        if ignored.is_empty() {
            return predicted;
        }
        keep_ignored(&predicted, live, &ignored, &SchemaSet::default())
    }

    /// Why the project of an app does not permit an object, if so.
    pub fn denies(&self, application: &Application, key: &ObjectKey) -> Option<String> {
        let unknown = || Some("the project or the cluster of the application is not known now".to_owned());
        self.context_of(application).map_or_else(unknown, |context| context.denies(key))
    }

    /// Renders an app at the revisions that it tracks, or at these.
    pub async fn render(
        &self,
        application: Application,
        revisions: Vec<String>,
    ) -> Result<RenderedManifests, String> {
        self.render_as_of(application, revisions, RefreshDepth::Git).await
    }

    /// The manifests of an app as it was compared last: no repository is asked whether there is a new commit.
    pub async fn last_rendered(&self, application: Application) -> Result<RenderedManifests, String> {
        self.render_as_of(application, Vec::new(), RefreshDepth::Live).await
    }

    async fn render_as_of(
        &self,
        application: Application,
        revisions: Vec<String>,
        depth: RefreshDepth,
    ) -> Result<RenderedManifests, String> {
        let engine = Arc::downgrade(&self.engine);
        let rendering =
            self.runtime.spawn(async move { render(engine, &application, &revisions, depth).await });
        rendering.await.unwrap_or_else(|_| Err("the rendering was aborted".to_owned()))
    }

    /// The state of the clusters that Applications use, by address.
    pub fn clusters(&self) -> BTreeMap<String, ClusterNews> {
        let connected = self.engine.clusters.connected();
        let up = connected.iter().map(|cluster| {
            let catalog = cluster.client.catalog();
            let facts = ClusterFacts {
                version: shown_version(&catalog.server.git_version),
                api_versions: cluster.api_versions(),
                n_kinds: catalog.kinds.len(),
                n_objects: cluster.store.counts().values().sum(),
            };
            (cluster.server.to_string(), ClusterNews::Connected(facts))
        });
        let away = self.engine.clusters.unreachable();
        let away = away.into_iter().map(|(server, why)| (server.to_string(), ClusterNews::Away(why)));
        up.chain(away).collect()
    }

    /// The client of a connected cluster, and the runtime on which it must be used.
    pub fn client_of_server(&self, server: &str) -> Option<(ClusterClient, tokio::runtime::Handle)> {
        let connected = self.engine.clusters.connected();
        let cluster = connected.iter().find(|cluster| &*cluster.server == server)?;
        Some((cluster.client.clone(), self.runtime.clone()))
    }

    /// Requests a comparison of all Applications on a cluster.
    pub fn refresh_cluster(&self, server: &str) {
        let apps =
            self.engine.registry.all().into_iter().filter(|known| self.engine.server_of(known) == server);
        let trigger = Trigger::live(TriggerReason::Cluster);
        self.engine.request_runs(apps.map(|known| known.id.clone()).collect(), trigger);
    }

    /// The address of the cluster of an Application.
    pub fn server_of(&self, app: &KnownApp) -> String {
        self.engine.server_of(&app.0)
    }
}

/// A version without what vendors add to it: `v1.36.3+k3s1` is `v1.36.3`.
fn shown_version(git_version: &str) -> String {
    let text = git_version.trim_start_matches('v');
    let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
    format!("v{}", text.get(..end).unwrap_or_default())
}

/// May the app of this context show the object? Its own objects must be permitted. What is below them, such as a pod, may be
/// of a kind that the app may not write, but not in a namespace that is closed to it.
fn may_show(context: &AppContext, key: &ObjectKey, is_own: bool) -> bool {
    match key.namespace.as_deref() {
        Some(namespace) if !is_own => context.permits_namespace(namespace),
        Some(_) | None => context.denies(key).is_none(),
    }
}

async fn render(
    engine: Weak<Engine>,
    application: &Application,
    revisions: &[String],
    depth: RefreshDepth,
) -> Result<RenderedManifests, String> {
    let engine = engine.upgrade().ok_or("the engine has stopped")?;
    let (app, context) = prepared(&engine, application)?;
    let since = Instant::now();
    let mut parked = Parked::default();
    let gathered = if revisions.is_empty() {
        let policy = FetchPolicy { depth, since, patience: Patience::Endless };
        engine.sources.gather(application, &app, &context, policy, None, &mut parked).await
    } else {
        let written = Operation { sync: Some(Box::<SyncOperation>::default()), ..Operation::default() };
        let operation = to_operation(&written).map_err(|problems| joined(&problems))?;
        let asked = OperationSources { operation: &operation, written: &written, revisions };
        let patience = (since, Patience::Endless);
        engine.sources.gather_for_operation(application, &app, &context, asked, patience, &mut parked).await
    };
    let gathered = gathered.map_err(|why| match &why {
        NotGathered::Failed(error) if error.is_inaccessible() => {
            format!("repository not accessible: {}", why.message())
        }
        NotGathered::Failed(_) | NotGathered::Waiting(_) => why.message(),
    })?;
    let desired = gathered.desired.get();
    let objects = desired.objects.iter().map(|(key, object)| (key.clone(), object.manifest.clone()));
    Ok(RenderedManifests {
        objects: objects.collect(),
        hooks: desired.hooks.iter().map(|hook| hook.manifest.clone()).collect(),
        revisions: gathered.revisions.clone(),
        source_types: gathered.source_types.clone(),
    })
}

/// An app and what it is reconciled with, or why that is not known.
pub(super) fn prepared(engine: &Engine, application: &Application) -> Result<(App, AppContext), String> {
    let app = to_app(application).map_err(|problems| joined(&problems))?;
    let context = engine.context(&app).map_err(|why| match why {
        Unavailable::NotYet => "its cluster is being connected".to_owned(),
        Unavailable::LeftAlone => "reconciliation of its cluster is turned off".to_owned(),
        Unavailable::ClusterAway(why)
        | Unavailable::ClusterUnknown(why)
        | Unavailable::ClusterUnclear(why) => why,
        Unavailable::Refused(whys) => whys.join("; "),
    })?;
    Ok((app, context))
}

fn joined(problems: &[SpecProblem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::shown_version;

    #[test]
    fn versions_are_shown_as_argo_cd_shows_them() {
        for (version, expected) in
            [("v1.36.3", "v1.36.3"), ("v1.34.1+k3s1", "v1.34.1"), ("v1.33.4-gke.100", "v1.33.4")]
        {
            assert_eq!(shown_version(version), expected);
        }
    }
}
