//! Starts the engine and keeps it running: the lease, the watches, the workers.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use plumb_core::app::AppId;
use plumb_core::object::{GroupKind, GroupVersionKind, Manifest, ObjectKey};
use plumb_core::tracking::{TRACKING_ANNOTATION, TrackingId, TrackingMethod, TrackingSettings};
use plumb_crd::{AppProject, Application, DriftReport};
use plumb_kube::{
    Change, ClusterClient, Connection, Gate, LeaseKeeper, LeaseOptions, LiveOptions, LiveStore, Marks,
    ObjectEvent, Origin, Role, Selection,
};
use plumb_render::{RendererConfig, Tools};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tracing::{error, info, warn};

use crate::cluster::Cluster;
use crate::engine::{Engine, Options};
use crate::memory::{Fingerprint, Finished};
use crate::queue::{Look, Queue, Trigger};
use crate::reconcile::reconcile;
use crate::sources::Sources;
use crate::witness;
use crate::world::{SettingsKind, World};

/// Why the engine could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The cluster cannot be reached as configured.
    #[error("connect to the cluster")]
    Connect(#[from] plumb_kube::ConnectError),
    /// The cluster does not say what it serves.
    #[error("ask the API server what it serves")]
    Discover(#[from] plumb_kube::ApiError),
    /// The cache directory cannot be used.
    #[error("use the cache directory {directory}")]
    Cache {
        /// Which one.
        directory: String,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
}

/// The `ConfigMaps` that settings are read from.
const SETTINGS: [&str; 3] = ["argocd-cm", "argocd-cmd-params-cm", "argocd-ssh-known-hosts-cm"];
/// How long the watches may take for their first lists before apps are looked at all the same.
const FIRST_LISTS: Duration = Duration::from_secs(20);
/// Events of one change come together; this is how long they are gathered.
const BATCH: Duration = Duration::from_millis(2);

/// Runs until `stop` is done.
pub async fn run(
    connection: Connection,
    options: Options,
    stop: impl Future<Output = ()>,
) -> Result<(), StartError> {
    let client = connection.client()?;
    client.discover().await?;
    let lease =
        LeaseKeeper::start(client.clone(), LeaseOptions::new(&options.namespace, "plumb", &options.identity));
    tokio::pin!(stop);
    info!(identity = options.identity, "waiting for the lease");
    tokio::select! {
        () = lease.leading() => {}
        () = &mut stop => return Ok(()),
    }
    let fence = lease.fence();
    info!("leading");
    let sources = sources(&options)?;
    let world = World::default();
    load_settings(&client, &options.namespace, &world).await;
    let store = LiveStore::start(client.clone(), live_options(&world.settings().tracking));
    let gate = Gate::new(client.clone(), fence.clone(), Some(store.clone()));
    let home = Cluster::new(
        plumb_core::app::ClusterRef::IN_CLUSTER_SERVER,
        plumb_core::app::ClusterRef::IN_CLUSTER_NAME,
        client,
        store,
        gate,
    );
    let queue = Queue::default();
    let engine = Arc::new(Engine {
        options,
        home: Arc::new(home),
        registry: crate::registry::Registry::default(),
        claims: crate::claims::Claims::default(),
        memories: crate::memory::Memories::default(),
        testimonies: crate::health::Testimonies::new(queue.clone()),
        queue,
        sources,
        world,
        reports: crate::reports::Reports::default(),
    });
    let mut tasks = JoinSet::new();
    let witness =
        witness::start(&engine.options.witness, &engine.options.namespace, &engine.home, &mut tasks).await;
    start(&engine, &mut tasks).await;
    tokio::select! {
        () = &mut stop => info!("stopping"),
        lost = fence.lost() => error!(%lost, "stopping: another instance leads now"),
        Some(ended) = tasks.join_next() => error!(?ended, "stopping: a task ended by itself"),
    }
    engine.queue.close();
    if let Some(witness) = witness {
        witness.withdraw(&engine.home.gate).await;
    }
    tasks.shutdown().await;
    lease.release().await;
    Ok(())
}

fn sources(options: &Options) -> Result<Sources, StartError> {
    let directory = options.cache_dir.clone();
    let mut renderer = RendererConfig::new(directory.join("render"));
    renderer.tools = Tools {
        helm: options.helm.clone(),
        kustomize: options.kustomize.clone(),
        jsonnet: options.jsonnet.clone(),
    };
    Sources::new(&directory, renderer)
        .map_err(|source| StartError::Cache { directory: directory.display().to_string(), source })
}

fn live_options(tracking: &TrackingSettings) -> LiveOptions {
    let tracking = tracking.clone();
    let mut options = LiveOptions::new(Arc::new(move |marks: &Marks<'_>| {
        if tracking.method == TrackingMethod::Label {
            return marks.label(&tracking.label_key).map(str::to_owned).filter(|app| !app.is_empty());
        }
        let id: TrackingId = marks.annotation(TRACKING_ANNOTATION)?.parse().ok()?;
        Some(id.app).filter(|app| !app.is_empty())
    }));
    for kind in ["MutatingWebhookConfiguration", "MutatingAdmissionPolicy"] {
        options.keep_whole.insert(GroupKind::new("admissionregistration.k8s.io", kind));
    }
    options
}

async fn start(engine: &Arc<Engine>, tasks: &mut JoinSet<()>) {
    let store = &engine.home.store;
    let changes = store.subscribe();
    if tokio::time::timeout(FIRST_LISTS, store.wait_complete()).await.is_err() {
        for (kind, trouble) in store.unlisted() {
            warn!(%kind, ?trouble, "not listed yet; nothing of this kind is called absent");
        }
    }
    load_reports(engine).await;
    let (projects_known, wait_for_projects) = tokio::sync::oneshot::channel();
    tasks.spawn(follow_projects(Arc::clone(engine), projects_known));
    // Without projects every app would be refused for a moment.
    let _ = tokio::time::timeout(FIRST_LISTS, wait_for_projects).await;
    tasks.spawn(follow_changes(Arc::clone(engine), changes));
    tasks.spawn(follow_settings(Arc::clone(engine), SettingsKind::ConfigMap));
    tasks.spawn(follow_settings(Arc::clone(engine), SettingsKind::Secret));
    tasks.spawn(follow_schemas(Arc::clone(engine)));
    tasks.spawn(follow_applications(Arc::clone(engine)));
    tasks.spawn(poll(Arc::clone(engine)));
    for _ in 0..engine.options.workers {
        tasks.spawn(work(Arc::clone(engine)));
    }
}

async fn work(engine: Arc<Engine>) {
    while let Some(job) = engine.queue.next().await {
        // On the heap: a run holds a lot, and there are many workers.
        Box::pin(reconcile(&engine, &job)).await;
    }
}

/// Reads the settings once before anything else: they decide how objects are tracked.
async fn load_settings(client: &ClusterClient, namespace: &str, world: &World) {
    for name in SETTINGS {
        let key = ObjectKey {
            group: String::new(),
            kind: "ConfigMap".to_owned(),
            namespace: Some(namespace.to_owned()),
            name: name.to_owned(),
        };
        match client.get(&key).await {
            Ok(Some(object)) => {
                world.note_settings(SettingsKind::ConfigMap, name, Some(&object));
            }
            Ok(None) => {}
            Err(error) => warn!(%error, name, "settings cannot be read; defaults count"),
        }
    }
}

/// Follows `ConfigMaps` or Secrets with settings, and looks at every app anew when they change.
async fn follow_settings(engine: Arc<Engine>, kind: SettingsKind) {
    let (name, labels) = match kind {
        SettingsKind::ConfigMap => ("ConfigMap", None),
        SettingsKind::Secret => ("Secret", Some("argocd.argoproj.io/secret-type".to_owned())),
    };
    let gvk = GroupVersionKind::from_api_version("v1", name);
    let selection = Selection { namespace: Some(engine.options.namespace.clone()), labels, fields: None };
    let tracking = engine.world.settings().tracking.clone();
    let Ok(mut stream) = engine.home.client.watch_objects(&gvk, selection) else { return };
    while let Some(event) = stream.next().await {
        let is_ours = |name: &str| kind == SettingsKind::Secret || SETTINGS.contains(&name);
        let changed = match event {
            ObjectEvent::Seen(object) => {
                let name = object.name().unwrap_or_default().to_owned();
                is_ours(&name) && engine.world.note_settings(kind, &name, Some(&object))
            }
            ObjectEvent::Gone { key, .. } => {
                is_ours(&key.name) && engine.world.note_settings(kind, &key.name, None)
            }
            ObjectEvent::Listed => false,
            ObjectEvent::Trouble(trouble) => {
                warn!(trouble, "watch of settings");
                false
            }
        };
        if !changed {
            continue;
        }
        if engine.world.settings().tracking != tracking {
            error!("the tracking method changed: restart plumb, so that it looks at every object anew");
        }
        let apps = engine.registry.all();
        engine.wake(apps.iter().map(|known| known.id.clone()).collect(), Trigger::new(Look::Git, "settings"));
    }
}

async fn load_reports(engine: &Engine) {
    let gvk = GroupVersionKind::from_api_version(DriftReport::API_VERSION, DriftReport::KIND);
    match engine
        .home
        .client
        .list(&gvk, &Selection { namespace: Some(engine.options.namespace.clone()), ..Selection::default() })
        .await
    {
        Ok(reports) => {
            for manifest in reports {
                if let (Some(id), Ok(report)) = (id_of(&manifest), DriftReport::from_json(manifest.value())) {
                    engine.reports.found(id, report);
                }
            }
        }
        Err(error) => warn!(%error, "earlier reports are not known: times start anew"),
    }
}

async fn follow_projects(engine: Arc<Engine>, known: tokio::sync::oneshot::Sender<()>) {
    let gvk = GroupVersionKind::from_api_version(AppProject::API_VERSION, AppProject::KIND);
    let selection = Selection { namespace: Some(engine.options.namespace.clone()), ..Selection::default() };
    let mut known = Some(known);
    let Ok(mut stream) = engine.home.client.watch_objects(&gvk, selection) else { return };
    while let Some(event) = stream.next().await {
        let changed = match event {
            ObjectEvent::Seen(manifest) => engine.world.note_project(&manifest),
            ObjectEvent::Gone { key, .. } => {
                engine.world.forget_project(&key.name);
                Some(key.name)
            }
            ObjectEvent::Listed => {
                if let Some(known) = known.take() {
                    let _ = known.send(());
                }
                None
            }
            ObjectEvent::Trouble(trouble) => {
                warn!(trouble, "watch of projects");
                None
            }
        };
        if let Some(project) = changed {
            let apps = engine
                .registry
                .all()
                .into_iter()
                .filter(|known| known.app.as_ref().is_ok_and(|app| app.project == project));
            engine.wake(apps.map(|known| known.id.clone()).collect(), Trigger::new(Look::Live, "project"));
        }
    }
}

async fn follow_applications(engine: Arc<Engine>) {
    let gvk = GroupVersionKind::from_api_version(Application::API_VERSION, Application::KIND);
    let selection = Selection { namespace: Some(engine.options.namespace.clone()), ..Selection::default() };
    let Ok(mut stream) = engine.home.client.watch_objects(&gvk, selection) else { return };
    while let Some(event) = stream.next().await {
        match event {
            ObjectEvent::Seen(manifest) => {
                if let Some((id, Some(trigger))) = engine.registry.note(&manifest) {
                    engine.queue.push(id, trigger);
                }
            }
            ObjectEvent::Gone { key, .. } => {
                let id = AppId { namespace: key.namespace.unwrap_or_default(), name: key.name };
                engine.registry.forget(&id);
                engine.queue.push(id, Trigger::new(Look::Live, "gone"));
            }
            ObjectEvent::Listed => info!(apps = engine.registry.all().len(), "applications known"),
            ObjectEvent::Trouble(trouble) => warn!(trouble, "watch of applications"),
        }
    }
}

/// Wakes the apps whose objects have a schema that changed: what they mean may have changed with it.
async fn follow_schemas(engine: Arc<Engine>) {
    let mut changes = engine.home.client.catalog_changes();
    let mut known = engine.home.client.catalog();
    while changes.changed().await.is_ok() {
        let catalog = Arc::clone(&changes.borrow_and_update());
        let is_changed =
            |api_version: &str| known.schemas.get(api_version) != catalog.schemas.get(api_version);
        let mut concerned = BTreeSet::new();
        for app in engine.registry.all() {
            let memory = engine.memories.of(&app.id);
            let memory = memory.lock().await;
            let uses_it = memory.gathered.as_ref().is_some_and(|gathered| {
                gathered
                    .desired
                    .get()
                    .objects
                    .values()
                    .any(|object| is_changed(object.manifest.api_version()))
            });
            if uses_it {
                concerned.insert(app.id.clone());
            }
        }
        if !concerned.is_empty() {
            info!(apps = concerned.len(), "schemas changed");
        }
        engine.wake(concerned, Trigger::new(Look::Live, "schema"));
        known = catalog;
    }
}

/// Wakes the apps that a change of the cluster concerns.
async fn follow_changes(engine: Arc<Engine>, mut changes: mpsc::UnboundedReceiver<Change>) {
    let mut batch = Vec::new();
    while changes.recv_many(&mut batch, 1024).await > 0 {
        let mut apps = BTreeSet::new();
        for change in batch.drain(..) {
            apps.extend(concerned(&engine, &change).await);
        }
        for app in apps {
            engine.queue.push_after(app, Trigger::new(Look::Live, "live"), BATCH);
        }
    }
}

async fn concerned(engine: &Engine, change: &Change) -> Vec<AppId> {
    let mut apps = Vec::new();
    for touched in &change.touched {
        // The run that wrote it looks at it by itself.
        if change.origin == Origin::Written && touched.role == Role::Tracked {
            continue;
        }
        let Some(id) = engine.registry.by_instance(&touched.instance, &engine.options.namespace) else {
            continue;
        };
        if change.key.kind == "Job" && touched.role != Role::Child {
            note_finished(engine, &id, change).await;
        }
        apps.push(id);
    }
    apps
}

/// Remembers a Job that ended: it may be collected before anybody looks.
async fn note_finished(engine: &Engine, app: &AppId, change: &Change) {
    let Some(job) = change.last.as_deref().cloned().or_else(|| engine.home.store.get_kept(&change.key))
    else {
        return;
    };
    let Some((succeeded, at)) = ended(&job) else { return };
    let memory = engine.memories.of(app);
    let mut memory = memory.lock().await;
    let desired = memory
        .gathered
        .as_ref()
        .and_then(|gathered| gathered.desired.get().objects.get(&change.key))
        .map(|object| Fingerprint::of(&object.manifest));
    memory.finished.insert(change.key.clone(), Finished { at, succeeded, desired });
}

fn ended(job: &Manifest) -> Option<(bool, Timestamp)> {
    let conditions = job.value().pointer("/status/conditions")?.as_array()?;
    conditions.iter().find_map(|condition| {
        let succeeded = match condition["type"].as_str()? {
            "Complete" => true,
            "Failed" => false,
            _ => return None,
        };
        let at = condition["lastTransitionTime"]
            .as_str()
            .and_then(|at| at.parse().ok())
            .unwrap_or_else(Timestamp::now);
        (condition["status"] == "True").then_some((succeeded, at))
    })
}

/// Asks Git from time to time, where no webhook tells; spread out, so that not all apps ask at once.
async fn poll(engine: Arc<Engine>) {
    let poll = engine.options.poll;
    if poll.is_zero() {
        return std::future::pending().await;
    }
    loop {
        tokio::time::sleep(poll).await;
        let apps = engine.registry.all();
        let n_apps = u32::try_from(apps.len().max(1)).unwrap_or(u32::MAX);
        let spread = (poll / 2).min(Duration::from_mins(1));
        for (position, known) in (0u32..).zip(apps) {
            engine.queue.push_after(
                known.id.clone(),
                Trigger::new(Look::Git, "poll"),
                spread * position / n_apps,
            );
        }
    }
}

fn id_of(manifest: &Manifest) -> Option<AppId> {
    Some(AppId { namespace: manifest.namespace()?.to_owned(), name: manifest.name()?.to_owned() })
}
