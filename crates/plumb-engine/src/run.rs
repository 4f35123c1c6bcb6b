//! Starts the engine and keeps it running: the lease, the watches, the workers.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use plumb_core::app::AppId;
use plumb_core::object::{GroupKind, GroupVersionKind, Manifest, ObjectKey};
use plumb_core::tracking::{TRACKING_ANNOTATION, TrackingId, TrackingMethod};
use plumb_crd::{AppProject, Application, DriftReport};
use plumb_kube::{
    Change, Changes, ClusterClient, Connection, Fence, Gate, LeaseKeeper, LeaseOptions, LiveOptions,
    LiveStore, Marks, ObjectEvent, Origin, Role, Selection,
};
use plumb_render::{RendererConfig, Tools};
use tokio::task::JoinSet;
use tracing::{error, info, warn};

use crate::cluster::Cluster;
use crate::engine::{Engine, Options};
use crate::events::Writer;
use crate::handle::{Handle, Stage};
use crate::holder;
use crate::memory::{Fingerprint, Finished};
use crate::metrics::Metrics;
use crate::neighbours;
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
    /// Another application controller works on the same Applications.
    #[error("another application controller is at work in namespace {namespace}: {found}")]
    Beside {
        /// Where.
        namespace: String,
        /// Its pods and leases.
        found: String,
    },
    /// A watch that everything rests on could not go on, such as that of a kind that is not served.
    #[error("follow Applications, projects and settings")]
    Watch,
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
const SETTINGS: [&str; 6] = [
    "argocd-cm",
    "argocd-cmd-params-cm",
    "argocd-ssh-known-hosts-cm",
    "argocd-tls-certs-cm",
    "argocd-gpg-keys-cm",
    plumb_crd::settings::PLUGINS_CONFIG_MAP,
];
/// How long the watches may take for their first lists before apps are looked at all the same.
const FIRST_LISTS: Duration = Duration::from_secs(20);
/// Events of one change come together; this is how long they are gathered.
const BATCH: Duration = Duration::from_millis(2);

/// Objects of nobody change all the time, and it is not urgent how many there are.
const ORPHANS_BATCH: Duration = Duration::from_secs(1);

/// How long runs may take to end when plumb stops. What they do can be repeated: the next start goes on.
const GOODBYE: Duration = Duration::from_secs(8);
/// How long the last events may take.
const LAST_EVENTS: Duration = Duration::from_secs(1);

/// Runs until `stop` is done.
pub async fn run(
    connection: Connection,
    options: Options,
    handle: Handle,
    stop: impl Future<Output = ()>,
) -> Result<(), StartError> {
    let client = connection.client()?;
    client.discover().await?;
    refuse_beside_others(&client, &options).await?;
    let lease = LeaseKeeper::start_with(
        client.clone(),
        LeaseOptions::new(&options.namespace, "plumb", &options.identity),
        holder::is_gone,
    );
    handle.connected(&client, &options.namespace, lease.fence());
    handle.enter(Stage::StandingBy);
    observe_requests(&client, &handle.metrics());
    tokio::pin!(stop);
    info!(identity = options.identity, "waiting for the lease");
    tokio::select! {
        () = lease.leading() => {}
        () = &mut stop => {
            info!("stopping");
            lease.release().await;
            return Ok(());
        }
    }
    info!("leading");
    let fence = lease.fence();
    let mut ended = Ok(Ended::StartAgain);
    while matches!(ended, Ok(Ended::StartAgain)) {
        // Somebody may have come while we waited.
        ended = match refuse_beside_others(&client, &options).await {
            Ok(()) => lead(&client, &options, &handle, &fence, &mut stop).await,
            Err(error) => Err(error),
        };
    }
    handle.enter(Stage::Stopping);
    lease.release().await;
    ended.map(drop)
}

/// Why an engine ended.
enum Ended {
    /// It was asked to, or has lost its lease.
    Stopped,
    /// Something changed that only a new start takes in.
    StartAgain,
}

/// Works until there is a reason not to.
async fn lead(
    client: &ClusterClient,
    options: &Options,
    handle: &Handle,
    fence: &Fence,
    stop: &mut Pin<&mut impl Future<Output = ()>>,
) -> Result<Ended, StartError> {
    handle.enter(Stage::Filling);
    let metrics = handle.metrics();
    let sources = sources(options, &metrics)?;
    let world = World::default();
    load_settings(client, &options.namespace, &world).await;
    let store = LiveStore::start(client.clone(), live_options(&world));
    let gate = Gate::new(client.clone(), fence.clone(), Some(store.clone()));
    let (outbox, writer) = Writer::new(options.events.clone(), &metrics);
    let events = tokio::spawn(writer.run(gate.clone()));
    let home = Cluster::new(
        plumb_core::app::ClusterRef::IN_CLUSTER_SERVER,
        plumb_core::app::ClusterRef::IN_CLUSTER_NAME,
        client.clone(),
        store,
        gate,
    );
    let queue = Queue::default();
    let engine = Arc::new(Engine {
        options: options.clone(),
        home: Arc::new(home),
        registry: crate::registry::Registry::default(),
        claims: crate::claims::Claims::default(),
        memories: crate::memory::Memories::default(),
        testimonies: crate::health::Testimonies::new(queue.clone()),
        queue,
        sources,
        world,
        reports: crate::reports::Reports::default(),
        metrics,
        findings: crate::tally::Tally::default(),
        orphans: crate::orphans::Orphans::default(),
        updates: crate::updates::Updates::default(),
        outbox,
        start_again: tokio::sync::Notify::new(),
    });
    handle.working(&engine);
    let mut tasks = JoinSet::new();
    let witness =
        witness::start(&engine.options.witness, &engine.options.namespace, &engine.home, &mut tasks).await;
    let mut workers = JoinSet::new();
    let started = async {
        start(&engine, &mut tasks, &mut workers).await;
        handle.enter(Stage::Leading);
        tasks.join_next().await
    };
    let ended = tokio::select! {
        () = stop => {
            info!("stopping");
            Ok(Ended::Stopped)
        }
        lost = fence.lost() => {
            error!(%lost, "stopping: another instance leads now");
            Ok(Ended::Stopped)
        }
        () = engine.start_again.notified() => {
            info!("the settings for tracking changed: every object is looked at anew");
            Ok(Ended::StartAgain)
        }
        ended = started => {
            error!(?ended, "stopping: a task ended by itself");
            Err(StartError::Watch)
        }
    };
    handle.enter(Stage::Stopping);
    engine.queue.close();
    // A run that is under way ends by itself; without the lease it could not do anything more anyway.
    if fence.check().is_ok() {
        let all = async { while workers.join_next().await.is_some() {} };
        if tokio::time::timeout(GOODBYE, all).await.is_err() {
            warn!(
                runs = workers.len(),
                "runs that take too long are cut off; the next start goes on with them"
            );
        }
    }
    workers.shutdown().await;
    if let Some(witness) = witness {
        witness.withdraw(&engine.home.gate).await;
    }
    tasks.shutdown().await;
    // With the engine goes the only one who leaves events.
    drop(engine);
    let _ = tokio::time::timeout(LAST_EVENTS, events).await;
    ended
}

/// Two controllers on the same Applications would undo each other's work.
async fn refuse_beside_others(client: &ClusterClient, options: &Options) -> Result<(), StartError> {
    match neighbours::find(client, &options.namespace, Timestamp::now()).await {
        Ok(found) if found.is_empty() => Ok(()),
        Ok(found) if options.beside_others => {
            warn!(found = found.join(", "), "another application controller is at work here");
            Ok(())
        }
        Ok(found) => {
            let (namespace, found) = (options.namespace.clone(), found.join(", "));
            Err(StartError::Beside { namespace, found })
        }
        Err(error) => {
            // Without the permission to look nothing speaks against it.
            warn!(%error, "whether another application controller is at work here cannot be told");
            Ok(())
        }
    }
}

/// Counts every request, on behalf of the app whose run it belongs to.
fn observe_requests(client: &ClusterClient, metrics: &Arc<Metrics>) {
    let metrics = Arc::clone(metrics);
    let server = plumb_core::app::ClusterRef::IN_CLUSTER_SERVER;
    client.observe_requests(Arc::new(move |request| metrics.request(server, request)));
}

fn sources(options: &Options, metrics: &Arc<Metrics>) -> Result<Sources, StartError> {
    let directory = options.cache_dir.clone();
    let mut renderer = RendererConfig::new(directory.join("render"));
    renderer.tools = Tools {
        helm: options.helm.clone(),
        kustomize: options.kustomize.clone(),
        jsonnet: options.jsonnet.clone(),
    };
    Sources::new(&directory, renderer, metrics)
        .map_err(|source| StartError::Cache { directory: directory.display().to_string(), source })
}

pub(crate) fn live_options(world: &World) -> LiveOptions {
    let tracking = world.settings().tracking.clone();
    let mut options = LiveOptions::new(Arc::new(move |marks: &Marks<'_>| {
        if tracking.method == TrackingMethod::Label {
            return marks.label(&tracking.label_key).map(str::to_owned).filter(|app| !app.is_empty());
        }
        let id: TrackingId = marks.annotation(TRACKING_ANNOTATION)?.parse().ok()?;
        Some(id.app).filter(|app| !app.is_empty())
    }));
    let world = world.clone();
    options.excluded = Arc::new(move |kind| {
        world.settings().filter.excludes(kind, plumb_core::app::ClusterRef::IN_CLUSTER_SERVER)
    });
    for kind in ["MutatingWebhookConfiguration", "MutatingAdmissionPolicy"] {
        options.keep_whole.insert(GroupKind::new("admissionregistration.k8s.io", kind));
    }
    options
}

async fn start(engine: &Arc<Engine>, tasks: &mut JoinSet<()>, workers: &mut JoinSet<()>) {
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
    tasks.spawn(sweep(Arc::clone(engine)));
    for _ in 0..engine.options.workers {
        workers.spawn(work(Arc::clone(engine)));
    }
}

async fn work(engine: Arc<Engine>) {
    while let Some(job) = engine.queue.next().await {
        // On the heap: a run holds a lot, and there are many workers.
        Box::pin(reconcile(&engine, &job)).await;
    }
}

/// Reads the settings once before anything else: they decide how objects are tracked.
pub(crate) async fn load_settings(client: &ClusterClient, namespace: &str, world: &World) {
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
            engine.start_again.notify_one();
        }
        engine.home.store.reconsider();
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
            ObjectEvent::Gone { key, .. } => engine.world.forget_project(&key.name),
            ObjectEvent::Listed => {
                if let Some(known) = known.take() {
                    let _ = known.send(());
                }
                BTreeSet::new()
            }
            ObjectEvent::Trouble(trouble) => {
                warn!(trouble, "watch of projects");
                BTreeSet::new()
            }
        };
        if !changed.is_empty() {
            let apps = engine
                .registry
                .all()
                .into_iter()
                .filter(|known| known.app.as_ref().is_ok_and(|app| changed.contains(&app.project)));
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
async fn follow_changes(engine: Arc<Engine>, mut changes: Changes) {
    let mut batch = Vec::new();
    while changes.recv_many(&mut batch, 1024).await > 0 {
        let mut apps = BTreeSet::new();
        let mut lookers = BTreeSet::new();
        let settings = engine.world.settings();
        for change in batch.drain(..) {
            if change.origin == Origin::Watched {
                let labels = [&*engine.home.server, &change.key.group, &change.key.kind];
                engine.metrics.cluster_events.increment(labels);
            }
            let home = &engine.home;
            if engine.updates.may_ignore(&home.server, &home.store, &settings, &change) {
                engine.metrics.unchanged.increment([&*engine.home.server]);
                continue;
            }
            apps.extend(concerned(&engine, &change).await);
            if change.touched.is_empty()
                && let Some(namespace) = &change.key.namespace
            {
                lookers.extend(engine.orphans.lookers(&engine.home.server, namespace));
            }
        }
        for app in lookers.difference(&apps) {
            engine.queue.push_after(app.clone(), Trigger::new(Look::Live, "orphans"), ORPHANS_BATCH);
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
        // One trigger for all: what one app of the round asks a server, the others need not ask again.
        let trigger = Trigger::new(Look::Git, "poll");
        for (position, known) in (0u32..).zip(apps) {
            engine.queue.push_after(known.id.clone(), trigger, spread * position / n_apps);
        }
    }
}

/// Once a day, what was kept of deleted objects long enough goes.
async fn sweep(engine: Arc<Engine>) {
    loop {
        let keep = engine.world.settings().keep_tombstones;
        let (home, namespace) = (&engine.home, &engine.options.namespace);
        crate::tombstones::sweep(&home.client, &home.gate, namespace, keep, Timestamp::now()).await;
        tokio::time::sleep(Duration::from_hours(24)).await;
    }
}

fn id_of(manifest: &Manifest) -> Option<AppId> {
    Some(AppId { namespace: manifest.namespace()?.to_owned(), name: manifest.name()?.to_owned() })
}
