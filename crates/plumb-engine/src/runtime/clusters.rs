//! Connects to registered clusters, and detects when one becomes unreachable and reachable again.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plumb_kube::{ApiError, Backoff, ClusterClient, Connection, FaultLog, Gate, LiveStore};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tracing::{info, warn};

use crate::cluster::clusters::{Condition, Order, StartId};
use crate::cluster::destination::{Cluster, live_options, observe_requests};
use crate::cluster::registration::Registration;
use crate::cluster::run_slots::RunSlots;
use crate::engine::Engine;
use crate::queue::{RefreshDepth, Trigger, TriggerReason};
use crate::triggers::initial_lists::watch_lists;
use crate::triggers::objects::watch_objects;
use crate::triggers::schemas::watch_schemas;
use crate::triggers::time_travel::watch_time;
use plumb_core::error_chain::error_chain;

/// How long to wait for the initial lists before apps are reconciled. Objects of kinds that are not listed by then are
/// read one by one.
const FIRST_LISTS: Duration = Duration::from_secs(20);
/// Most broken connections recover at once. Only one that stays broken for this time is probed.
const GRACE: Duration = Duration::from_secs(1);
const BACKOFF_FIRST: Duration = Duration::from_millis(500);
const BACKOFF_MOST: Duration = Duration::from_secs(15);
/// How long watches may take to recover after the API server answers.
const CATCH_UP: Duration = Duration::from_secs(10);
/// An API server that does not return its version within this time is unreachable.
const PROBE_TIMEOUT: Duration = Duration::from_secs(15);

/// Starts and stops the tasks of clusters as ordered, forever.
pub(super) async fn supervise(engine: Arc<Engine>, mut orders: mpsc::UnboundedReceiver<Order>) {
    let mut tasks = JoinSet::new();
    let mut running: HashMap<StartId, AbortHandle> = HashMap::new();
    loop {
        tokio::select! {
            order = orders.recv() => match order {
                Some(Order::Start(id, registration)) => {
                    let task = tasks.spawn(maintain(Arc::clone(&engine), id, registration));
                    running.insert(id, task);
                }
                Some(Order::Stop(id)) => {
                    if let Some(task) = running.remove(&id) {
                        task.abort();
                    }
                }
                None => return,
            },
            Some(_) = tasks.join_next() => {}
        }
    }
}

async fn maintain(engine: Arc<Engine>, id: StartId, registration: Arc<Registration>) {
    let server = &registration.server;
    info!(%server, name = registration.name, "connecting to a cluster");
    let access = registration.access();
    let client =
        Connection::from_registered(&access, engine.clusters.exec).and_then(|connection| connection.client());
    let client = match client {
        Ok(client) => client,
        Err(error) => {
            // Only a change of the Secret can help, and that starts a new task.
            set_condition(&engine, id, Condition::Away(error_chain(&error)));
            return std::future::pending().await;
        }
    };
    observe_requests(&client, &engine.metrics, Arc::clone(server));
    wait_until_reachable(&engine, id, &client).await;
    let mut options = live_options(&engine.config, server);
    options.namespaces.clone_from(&registration.namespaces);
    options.cluster_scoped = registration.cluster_resources;
    let store = LiveStore::start(client.clone(), options);
    let changes = store.subscribe();
    if tokio::time::timeout(FIRST_LISTS, store.wait_complete()).await.is_err() {
        for (kind, trouble) in store.unlisted() {
            warn!(
                %server, %kind, ?trouble,
                "initial list incomplete; objects of this kind will not be treated as missing"
            );
        }
    }
    let gate = Gate::new(client.clone(), engine.clusters.fence.clone(), Some(store.clone()));
    let run_slots = RunSlots::registered(engine.n_workers);
    let cluster = Arc::new(Cluster::registered(&registration, client, store, gate, run_slots));
    set_condition(&engine, id, Condition::Up(Arc::clone(&cluster)));
    tokio::join!(
        watch_objects(Arc::clone(&engine), Arc::clone(&cluster), changes),
        watch_schemas(Arc::clone(&engine), Arc::clone(&cluster)),
        watch_lists(Arc::clone(&engine), Arc::clone(&cluster)),
        watch_connection(&engine, id, &cluster),
        watch_time(Arc::clone(&engine), id, Arc::clone(&cluster)),
    );
}

/// Repeats discovery until the API server answers.
async fn wait_until_reachable(engine: &Engine, id: StartId, client: &ClusterClient) {
    let mut backoff = Backoff::new(BACKOFF_FIRST, BACKOFF_MOST);
    let mut faults = FaultLog::default();
    loop {
        match client.discover().await {
            Ok(_) => return,
            Err(error) => {
                if let Some(times) = faults.fault(Instant::now()) {
                    let error = error_chain(&error);
                    warn!(server = client.server(), error, times, "cannot reach the cluster; trying again");
                }
                set_condition(engine, id, Condition::Away(error_chain(&error)));
            }
        }
        tokio::time::sleep(backoff.next_wait()).await;
    }
}

/// Detects when the watches lose the API server, and when it answers again.
async fn watch_connection(engine: &Engine, id: StartId, cluster: &Arc<Cluster>) {
    let mut lost = cluster.store.lost();
    loop {
        if lost.wait_for(Option::is_some).await.is_err() {
            return std::future::pending().await;
        }
        tokio::time::sleep(GRACE).await;
        if lost.borrow().is_none() {
            continue;
        }
        if let Err(error) = probe(&cluster.client).await {
            warn!(server = %cluster.server, error = error_chain(&error), "lost the connection to the cluster");
            set_condition(engine, id, Condition::Away(error_chain(&error)));
            let mut backoff = Backoff::new(BACKOFF_FIRST, BACKOFF_MOST);
            while probe(&cluster.client).await.is_err() {
                tokio::time::sleep(backoff.next_wait()).await;
            }
        }
        cluster.client.retry_watches();
        // The watches report what changed in the meantime, so apps are reconciled after they have recovered.
        let _ = tokio::time::timeout(CATCH_UP, lost.wait_for(Option::is_none)).await;
        info!(server = %cluster.server, "the cluster is reachable again");
        set_condition(engine, id, Condition::Up(Arc::clone(cluster)));
    }
}

async fn probe(client: &ClusterClient) -> Result<(), ApiError> {
    match tokio::time::timeout(PROBE_TIMEOUT, client.probe()).await {
        Ok(answer) => answer,
        Err(_) => Err(ApiError::TimedOut { request: "GET /version".to_owned(), after: PROBE_TIMEOUT }),
    }
}

fn set_condition(engine: &Engine, id: StartId, condition: Condition) {
    let apps = engine.clusters.note(id, condition);
    // Poll Git too: a refresh that was requested during an outage could not compare anything.
    engine.request_runs(apps, Trigger::new(RefreshDepth::Git, TriggerReason::Cluster));
}
