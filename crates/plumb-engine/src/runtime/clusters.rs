//! Follows one registered cluster: gets in, notices when it goes away and when it comes back.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use plumb_kube::{ApiError, Backoff, ClusterClient, Connection, Gate, LiveStore};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tracing::{info, warn};

use crate::cluster::clusters::{Condition, Order, StartId};
use crate::cluster::destination::{Cluster, live_options, observe_requests};
use crate::cluster::registration::Registration;
use crate::engine::Engine;
use crate::queue::{RefreshDepth, Trigger, TriggerReason};
use crate::triggers::initial_lists::watch_lists;
use crate::triggers::objects::watch_objects;
use crate::triggers::schemas::watch_schemas;
use plumb_core::error_chain::error_chain;

/// How long the watches may take for their first lists before apps are looked at all the same: what is not
/// listed then is asked for one by one.
const FIRST_LISTS: Duration = Duration::from_secs(20);
/// A connection that breaks is put back at once in nearly all cases; only then does it matter.
const GRACE: Duration = Duration::from_secs(1);
const BACKOFF_FIRST: Duration = Duration::from_millis(500);
const BACKOFF_MOST: Duration = Duration::from_secs(15);
/// How long watches may take to stand again after the server answers.
const CATCH_UP: Duration = Duration::from_secs(10);
/// A server that does not answer its version within this is away.
const PROBE_TIMEOUT: Duration = Duration::from_secs(15);

/// Starts and ends the tasks of clusters as ordered, for ever.
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
    info!(%server, name = registration.name, "following a cluster");
    let access = registration.access();
    let client =
        Connection::from_registered(&access, engine.clusters.exec).and_then(|connection| connection.client());
    let client = match client {
        Ok(client) => client,
        Err(error) => {
            // Only another Secret can help, and that is another start.
            note(&engine, id, Condition::Away(error_chain(&error)));
            return std::future::pending().await;
        }
    };
    observe_requests(&client, &engine.metrics, Arc::clone(server));
    get_in(&engine, id, &client).await;
    let mut options = live_options(&engine.config, server);
    options.namespaces.clone_from(&registration.namespaces);
    options.cluster_scoped = registration.cluster_resources;
    let store = LiveStore::start(client.clone(), options);
    let changes = store.subscribe();
    if tokio::time::timeout(FIRST_LISTS, store.wait_complete()).await.is_err() {
        for (kind, trouble) in store.unlisted() {
            warn!(%server, %kind, ?trouble, "not listed yet; nothing of this kind is called absent");
        }
    }
    let gate = Gate::new(client.clone(), engine.clusters.fence.clone(), Some(store.clone()));
    let cluster = Arc::new(Cluster::registered(&registration, client, store, gate, engine.run_slots()));
    note(&engine, id, Condition::Up(Arc::clone(&cluster)));
    tokio::join!(
        watch_objects(Arc::clone(&engine), Arc::clone(&cluster), changes),
        watch_schemas(Arc::clone(&engine), Arc::clone(&cluster)),
        watch_lists(Arc::clone(&engine), Arc::clone(&cluster)),
        watch_over(&engine, id, &cluster),
    );
}

/// Asks what the cluster serves until it answers.
async fn get_in(engine: &Engine, id: StartId, client: &ClusterClient) {
    let mut backoff = Backoff::new(BACKOFF_FIRST, BACKOFF_MOST);
    loop {
        match client.discover().await {
            Ok(_) => return,
            Err(error) => {
                warn!(server = client.server(), error = error_chain(&error), "cluster not reached");
                note(engine, id, Condition::Away(error_chain(&error)));
            }
        }
        tokio::time::sleep(backoff.next_wait()).await;
    }
}

/// Notices when the watches lose the server, and when it answers again.
async fn watch_over(engine: &Engine, id: StartId, cluster: &Arc<Cluster>) {
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
            warn!(server = %cluster.server, error = error_chain(&error), "cluster lost");
            note(engine, id, Condition::Away(error_chain(&error)));
            let mut backoff = Backoff::new(BACKOFF_FIRST, BACKOFF_MOST);
            while probe(&cluster.client).await.is_err() {
                tokio::time::sleep(backoff.next_wait()).await;
            }
        }
        cluster.client.retry_watches();
        // What changed meanwhile is told by the watches: apps are looked at when these stand again.
        let _ = tokio::time::timeout(CATCH_UP, lost.wait_for(Option::is_none)).await;
        info!(server = %cluster.server, "cluster reached again");
        note(engine, id, Condition::Up(Arc::clone(cluster)));
    }
}

async fn probe(client: &ClusterClient) -> Result<(), ApiError> {
    match tokio::time::timeout(PROBE_TIMEOUT, client.probe()).await {
        Ok(answer) => answer,
        Err(_) => Err(ApiError::TimedOut { request: "GET /version".to_owned(), after: PROBE_TIMEOUT }),
    }
}

fn note(engine: &Engine, id: StartId, condition: Condition) {
    let concerned = engine.clusters.note(id, condition);
    // Whoever asked for a newer commit meanwhile was told that nothing can be compared: look at Git as well.
    engine.request_runs(concerned, Trigger::new(RefreshDepth::Git, TriggerReason::Cluster));
}
