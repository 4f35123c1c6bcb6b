//! Starts the engine and keeps it running: the lease, the watches, the workers.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use jiff::Timestamp;
use plumb_core::app::ClusterRef;
use plumb_core::object::{Manifest, ObjectKey};
use plumb_crd::install::default_project;
use plumb_kube::{ClusterClient, Connection, Fence, Gate, LeaseKeeper, LeaseOptions, LiveStore, OwnWrite};
use plumb_render::sandbox::FileIsolation;
use plumb_render::{RendererConfig, Tools};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tracing::{error, info, warn};

use crate::cluster::clusters::Fleet;
use crate::cluster::destination::{Cluster, live_options, observe_requests};
use crate::cluster::run_slots::Seats;
use crate::cluster::witness;
use crate::config::settings::StartSettings;
use crate::config::store::World;
use crate::deletion::project::let_go;
use crate::engine::{AppNamespaces, Engine, Options};
use crate::events::writer::Writer;
use crate::metrics::counters::Metrics;
use crate::queue::Queue;
use crate::reconcile::run::reconcile;
use crate::runtime::clusters::tend;
use crate::runtime::handle::{Handle, Stage};
use crate::runtime::lease_identity;
use crate::runtime::memory_trim::give_memory_back;
use crate::runtime::other_controllers;
use crate::sources::gather::Sources;
use crate::triggers::initial_lists::follow_lists;
use crate::triggers::poll::poll;
use crate::triggers::sync_windows::follow_windows;
use crate::triggers::watches::{
    SETTINGS, follow_applications, follow_changes, follow_config_maps, follow_projects, follow_schemas,
    follow_secrets, load_reports,
};

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

/// How many apps are looked at at the same time, unless somebody says otherwise.
const WORKERS: usize = 24;

/// How long the watches may take for their first lists before apps are looked at all the same.
const FIRST_LISTS: Duration = Duration::from_secs(20);

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
        lease_identity::is_gone,
    );
    handle.connected(&client, &options, lease.fence());
    handle.enter(Stage::StandingBy);
    observe_requests(&client, &handle.metrics(), ClusterRef::IN_CLUSTER_SERVER.into());
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
    let mut away_since = lease.last_renewed();
    let mut ended = Ok(Ended::StartAgain);
    while matches!(ended, Ok(Ended::StartAgain)) {
        // Somebody may have come while we waited.
        ended = match refuse_beside_others(&client, &options).await {
            Ok(()) => lead(&client, &options, &handle, &fence, away_since.take(), &mut stop).await,
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
    away_since: Option<Timestamp>,
    stop: &mut Pin<&mut impl Future<Output = ()>>,
) -> Result<Ended, StartError> {
    handle.enter(Stage::Filling);
    let metrics = handle.metrics();
    let world = World::default();
    load_settings(client, &options.namespace, &world).await;
    let settings = world.settings();
    let sources = Arc::new(sources(options, settings.start, &metrics)?);
    let n_workers = options.workers.or(settings.start.workers).unwrap_or(WORKERS);
    let store = LiveStore::start(client.clone(), live_options(&world, ClusterRef::IN_CLUSTER_SERVER));
    let gate = Gate::new(client.clone(), fence.clone(), Some(store.clone()));
    make_default_project(client, &gate, &options.namespace).await;
    let (outbox, writer) = Writer::new(options.events.clone(), &metrics);
    let events = tokio::spawn(writer.run(gate.clone()));
    let home = Arc::new(Cluster::home(client.clone(), store, gate, Seats::new(n_workers)));
    let (fleet, orders) = Fleet::new(Arc::clone(&home), options.exec_plugins, fence.clone());
    let app_namespaces = AppNamespaces::new(options, &world.settings());
    let queue = Queue::default();
    let engine = Arc::new(Engine {
        options: options.clone(),
        n_workers,
        away_since,
        home,
        fleet,
        app_namespaces,
        registry: crate::apps::registry::Registry::default(),
        claims: crate::apps::claims::Claims::default(),
        commits: crate::apps::followed_commits::Commits::default(),
        memories: crate::state::app_state::Memories::default(),
        testimonies: crate::health::events_and_logs::Testimonies::new(queue.clone()),
        queue,
        sources,
        world,
        reports: crate::apps::previous_reports::Reports::default(),
        metrics,
        findings: crate::metrics::finding_counts::Tally::default(),
        orphans: crate::compare::orphans::Orphans::default(),
        updates: crate::compare::ignored_updates::Updates::default(),
        outbox,
        leaving: crate::deletion::project::Leaving::default(),
        start_again: tokio::sync::Notify::new(),
        rest: crate::runtime::memory_trim::Rest::default(),
    });
    handle.working(&engine);
    let mut tasks = JoinSet::new();
    let witness =
        witness::start(&engine.options.witness, &engine.options.namespace, &engine.home, &mut tasks).await;
    tasks.spawn(tend(Arc::clone(&engine), orders));
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
            info!("somebody asks for it, or settings of tracking or permissions changed: every object is looked at anew");
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

/// Makes the project `default` where there is none, as Argo CD does when it starts. One that is there stays as it is,
/// whatever it permits.
async fn make_default_project(client: &ClusterClient, gate: &Gate, namespace: &str) {
    let Ok(project) = Manifest::new(default_project(namespace)) else { return };
    let Some(key) = project.key() else { return };
    if !matches!(client.get(&key).await, Ok(None)) {
        return;
    }
    let create = OwnWrite::Create { manifest: project, field_manager: "plumb".to_owned() };
    match gate.write_own(&create).await {
        Ok(_) => info!("made the project `default`, which permits everything"),
        Err(error) => warn!(%error, "the project `default` could not be made"),
    }
}

/// Two controllers on the same Applications would undo each other's work.
async fn refuse_beside_others(client: &ClusterClient, options: &Options) -> Result<(), StartError> {
    match other_controllers::find(client, &options.namespace, Timestamp::now()).await {
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

fn sources(
    options: &Options,
    settings: StartSettings,
    metrics: &Arc<Metrics>,
) -> Result<Sources, StartError> {
    let directory = options.cache_dir.clone();
    let mut renderer = RendererConfig::new(directory.join("render"));
    renderer.tools = Tools {
        helm: options.helm.clone(),
        kustomize: options.kustomize.clone(),
        jsonnet: options.jsonnet.clone(),
    };
    if renderer.sandbox.file_isolation() == FileIsolation::InspectionOnly {
        warn!("the kernel has no Landlock: tools are held by inspection only, and plugins are refused");
    }
    Sources::new(&directory, renderer, settings, metrics)
        .map_err(|source| StartError::Cache { directory: directory.display().to_string(), source })
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
    // Without projects and clusters every app would be refused for a moment.
    let (projects_listed, projects) = oneshot::channel();
    let (secrets_listed, secrets) = oneshot::channel();
    tasks.spawn(follow_projects(Arc::clone(engine), projects_listed));
    tasks.spawn(follow_secrets(Arc::clone(engine), secrets_listed));
    let _ = tokio::time::timeout(FIRST_LISTS, async { tokio::join!(projects, secrets) }).await;
    tasks.spawn(follow_changes(Arc::clone(engine), Arc::clone(&engine.home), changes));
    tasks.spawn(follow_schemas(Arc::clone(engine), Arc::clone(&engine.home)));
    tasks.spawn(follow_lists(Arc::clone(engine), Arc::clone(&engine.home)));
    tasks.spawn(follow_config_maps(Arc::clone(engine)));
    tasks.spawn(follow_applications(Arc::clone(engine)));
    tasks.spawn(poll(Arc::clone(engine)));
    tasks.spawn(follow_windows(Arc::clone(engine)));
    tasks.spawn(let_go(Arc::clone(engine)));
    tasks.spawn(sweep(Arc::clone(engine)));
    tasks.spawn(give_memory_back(Arc::clone(engine)));
    for _ in 0..engine.n_workers {
        workers.spawn(work(Arc::clone(engine)));
    }
}

async fn work(engine: Arc<Engine>) {
    while let Some(job) = engine.queue.next().await {
        // On the heap: a run holds a lot, and there are many workers. A run that panics is one app's trouble: the
        // worker is there for the others.
        let _measured = engine.metrics.job(job.waited);
        let run = AssertUnwindSafe(Box::pin(reconcile(&engine, &job)));
        if run.catch_unwind().await.is_err() {
            error!(app = %job.app, "a run was cut off by a defect of plumb; the app is looked at again with the next event or poll");
        }
        engine.rest.note_run();
    }
}

/// Reads the settings once before anything else: they decide how objects are tracked.
pub(crate) async fn load_settings(client: &ClusterClient, namespace: &str, world: &World) {
    for name in SETTINGS {
        let key = ObjectKey::new("", "ConfigMap", Some(namespace.to_owned()), name);
        match client.get(&key).await {
            Ok(Some(object)) => {
                world.note_config_map(name, Some(&object));
            }
            Ok(None) => {}
            Err(error) => warn!(%error, name, "settings cannot be read; defaults count"),
        }
    }
}
/// Once a day, what was kept of deleted objects long enough goes.
async fn sweep(engine: Arc<Engine>) {
    loop {
        let keep = engine.world.settings().keep_tombstones;
        let (home, namespace) = (&engine.home, &engine.options.namespace);
        crate::sync::tombstones::sweep(&home.client, &home.gate, namespace, keep, Timestamp::now()).await;
        tokio::time::sleep(Duration::from_hours(24)).await;
    }
}
