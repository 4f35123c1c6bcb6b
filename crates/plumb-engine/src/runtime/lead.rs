//! Builds the engine and runs it while this process holds the lease.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use plumb_core::app::ClusterRef;
use plumb_git::{GitLimits, GitOptions};
use plumb_kube::{ClusterClient, Fence, Gate, LiveStore};
use plumb_render::{RendererConfig, Tools};
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};
use tracing::{error, info, warn};

use super::clusters::supervise;
use super::first_project;
use super::handle::{Handle, Stage};
use super::start_error::StartError;
use super::tasks::{self, Workers};
use crate::apps::claims::Claims;
use crate::apps::deleting_projects::DeletingProjects;
use crate::apps::large_apps::LargeApps;
use crate::apps::registry::Registry;
use crate::cluster::clusters::{Clusters, Order};
use crate::cluster::destination::{Cluster, live_options};
use crate::cluster::run_slots::RunSlots;
use crate::cluster::waiting_apps::WaitingApps;
use crate::cluster::witness;
use crate::compare::ignored_updates::IgnoredUpdates;
use crate::compare::orphans::Orphans;
use crate::config::app_namespaces::AppNamespaces;
use crate::config::load::load_settings;
use crate::config::options::Options;
use crate::config::settings::StartSettings;
use crate::config::store::ConfigStore;
use crate::engine::Engine;
use crate::events::writer::Writer;
use crate::health::events_and_logs::Diagnostics;
use crate::metrics::counters::Metrics;
use crate::queue::{FirstRuns, Queue};
use crate::set_signals::SetSignals;
use crate::sources::gather::Sources;
use crate::state::app_records::AppRecords;
use crate::state::bursts::BurstDetector;
use crate::state::restart::Restart;
use crate::state::retries::Retries;
use crate::state::time_travels::TimeTravels;
use crate::state::tombstone_ledger::TombstoneLedger;

/// How many apps run at the same time, unless the options or settings say otherwise.
const WORKERS: usize = 24;
/// How long runs may take to end when plumb stops. What they do can be repeated: the next process goes on.
const RUNS_END_WITHIN: Duration = Duration::from_secs(8);
/// How long the last events may take to be written.
const EVENTS_END_WITHIN: Duration = Duration::from_secs(1);

/// Why an engine ended.
pub(super) enum LeadEnd {
    /// It was asked to stop.
    Stopped,
    /// It lost its lease.
    Lost,
    /// Something changed that only a restart of the engine takes in.
    Restart,
    /// One of its tasks ended, by a defect of plumb.
    TaskEnded,
}

/// What every engine of a process works with.
#[derive(Clone, Copy)]
pub(super) struct Leading<'a> {
    pub(super) client: &'a ClusterClient,
    pub(super) options: &'a Options,
    pub(super) handle: &'a Handle,
    pub(super) fence: &'a Fence,
    pub(super) travels: &'a Arc<TimeTravels>,
}

/// An engine with what belongs to its life.
struct Started {
    engine: Arc<Engine>,
    /// Writes the Kubernetes events.
    events: JoinHandle<()>,
    /// Which registered clusters to follow.
    orders: mpsc::UnboundedReceiver<Order>,
}

/// Runs the engine until there is a reason to stop.
pub(super) async fn lead(
    leading: Leading<'_>,
    down_since: Option<Timestamp>,
    stop: &mut Pin<&mut impl Future<Output = ()>>,
) -> Result<LeadEnd, StartError> {
    let Leading { handle, fence, .. } = leading;
    handle.enter(Stage::Filling);
    let Started { engine, events, orders } = build(leading, down_since).await?;
    handle.working(&engine);
    let mut tasks = JoinSet::new();
    let witness = witness::start(
        &engine.options.witness,
        &engine.options.namespace,
        &engine.home,
        Arc::clone(&engine.impersonated),
    )
    .await
    .map(Arc::new);
    if let Some(witness) = &witness {
        tasks.spawn(Arc::clone(witness).keep(Arc::clone(&engine.home)));
    }
    tasks.spawn(supervise(Arc::clone(&engine), orders));
    let mut workers = Workers::default();
    let started = async {
        tasks::start(&engine, &mut tasks, &mut workers).await;
        handle.enter(Stage::Leading);
        tasks.join_next().await
    };
    let ended = tokio::select! {
        () = stop => {
            info!("stopping");
            LeadEnd::Stopped
        }
        _ = fence.lost() => LeadEnd::Lost,
        reason = engine.restart.asked() => {
            info!("restarting: {reason}");
            LeadEnd::Restart
        }
        ended = started => {
            error!(?ended, "a task of the engine ended unexpectedly");
            LeadEnd::TaskEnded
        }
    };
    // A process that lost its lease stays. Until its tasks have ended, its stage says that the lease is lost.
    if !matches!(ended, LeadEnd::Lost) {
        handle.enter(Stage::Stopping);
    }
    end_runs(&engine, fence, &mut workers).await;
    if let Some(witness) = witness {
        witness.end(&engine.home.gate, fence).await;
    }
    tasks.shutdown().await;
    // Only the engine queues events: dropping it ends the writer.
    drop(engine);
    let _ = tokio::time::timeout(EVENTS_END_WITHIN, events).await;
    Ok(ended)
}

/// Ends all runs. Those under way end by themselves. Without the lease they could not do anything more.
async fn end_runs(engine: &Engine, fence: &Fence, workers: &mut Workers) {
    engine.queue.close();
    if fence.check().is_ok() {
        workers.end_within(RUNS_END_WITHIN).await;
    }
    workers.abort().await;
}

/// Builds the engine. Settings are read first: they decide how objects are tracked.
async fn build(leading: Leading<'_>, down_since: Option<Timestamp>) -> Result<Started, StartError> {
    let Leading { client, options, handle, fence, travels } = leading;
    let metrics = handle.metrics();
    let config = ConfigStore::default();
    load_settings(client, &options.namespace, &config).await;
    let settings = config.settings();
    let n_workers = options.workers.or(settings.start.workers).unwrap_or(WORKERS);
    let queue = Queue::default();
    let large_apps = LargeApps::new(queue.clone());
    let sources = sources(options, settings.start, n_workers, &metrics)?;
    let sources = Arc::new(sources.with_turns(large_apps.clone()));
    let store = LiveStore::start(client.clone(), live_options(&config, ClusterRef::IN_CLUSTER_SERVER));
    let gate = Gate::new(client.clone(), fence.clone(), Some(store.clone()));
    first_project::create(client, &gate, &options.namespace).await;
    let (outbox, writer) = Writer::new(options.events.clone(), &metrics);
    let events = tokio::spawn(writer.run(gate.clone()));
    let home = Arc::new(Cluster::home(client.clone(), store, gate, RunSlots::home(n_workers)));
    let (clusters, orders) = Clusters::new(Arc::clone(&home), options.exec_plugins, fence.clone());
    let engine = Arc::new(Engine {
        options: options.clone(),
        n_workers,
        down_since,
        home,
        clusters,
        app_namespaces: AppNamespaces::new(options, &settings),
        registry: Registry::default(),
        claims: Claims::default(),
        records: AppRecords::default(),
        diagnostics: Diagnostics::new(queue.clone()),
        queue,
        first_runs: FirstRuns::default(),
        sources,
        large_apps,
        config,
        metrics,
        orphans: Orphans::default(),
        ignored_updates: IgnoredUpdates::default(),
        outbox,
        deleting_projects: DeletingProjects::default(),
        restart: Restart::default(),
        travels: Arc::clone(travels),
        bursts: BurstDetector::default(),
        tombstones: TombstoneLedger::default(),
        retries: Retries::default(),
        without_report: WaitingApps::default(),
        set_signals: SetSignals::default(),
        pushes: handle.pushes(),
        impersonated: Arc::default(),
    });
    Ok(Started { engine, events, orders })
}

fn sources(
    options: &Options,
    settings: StartSettings,
    n_workers: usize,
    metrics: &Arc<Metrics>,
) -> Result<Sources, StartError> {
    let directory = options.cache_dir.clone();
    let mut renderer = RendererConfig::new(directory.join("render"));
    renderer.tools = Tools {
        helm: options.helm.clone(),
        kustomize: options.kustomize.clone(),
        jsonnet: options.jsonnet.clone(),
        launcher: options.launcher.clone(),
    };
    let level = renderer.sandbox.level();
    info!("sandbox: tools are isolated from {level}");
    for (part, reason) in level.missing() {
        warn!("sandbox: tools are not isolated from {part}, because {reason}; plugins may be refused");
    }
    let tools = renderer.tools.clone();
    tokio::spawn(async move {
        for problem in plumb_render::outdated_tools(&tools).await {
            warn!("{problem}");
        }
    });
    let git = GitOptions {
        local: options.local_repositories.clone(),
        limits: GitLimits { mirrors: options.mirror_space, ..GitLimits::default() },
        ..GitOptions::default()
    };
    Sources::new(&directory, renderer, settings, n_workers, git, options.addresses.clone(), metrics)
        .map_err(|source| StartError::Cache { directory: directory.display().to_string(), source })
}
