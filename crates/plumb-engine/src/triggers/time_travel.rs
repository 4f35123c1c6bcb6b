//! Reads everything anew when the data of a cluster went back in time, as after a restore of etcd from a backup.

use std::sync::Arc;
use std::time::Instant;

use plumb_core::app::AppId;
use tracing::warn;

use crate::cluster::clusters::StartId;
use crate::cluster::destination::Cluster;
use crate::engine::Engine;
use crate::queue::{Trigger, TriggerReason};
use crate::state::time_travels::Response;

/// Watches the home cluster. It holds the Applications and the settings, so the whole engine starts over.
pub(crate) async fn watch_home_time(engine: Arc<Engine>) {
    let evidence = note(&engine, &engine.home).await;
    engine.restart.ask(format!("the data of the home cluster went back in time: {evidence}"));
    std::future::pending::<()>().await;
}

/// Watches a registered cluster. It is connected again, and its apps forget what they knew about its objects.
pub(crate) async fn watch_time(engine: Arc<Engine>, id: StartId, cluster: Arc<Cluster>) {
    note(&engine, &cluster).await;
    for app in engine.clusters.start_over(id) {
        tokio::spawn(start_over(Arc::clone(&engine), app));
    }
    std::future::pending::<()>().await;
}

/// Waits until the data of a cluster went back in time and it is time to read everything again. Returns the evidence.
async fn note(engine: &Engine, cluster: &Cluster) -> Arc<str> {
    let evidence = cluster.store.went_back().await;
    let server = &cluster.server;
    let Response { pause, is_believed } = engine.travels.note(server, Instant::now());
    let pause_seconds = pause.as_secs();
    if is_believed {
        warn!(
            %server, %evidence, pause_seconds,
            "the data of the API server went back in time, as after a restore of etcd: plumb reads everything again"
        );
    } else {
        warn!(
            %server, %evidence, pause_seconds,
            "the lists of the API server are older than its watches, also after plumb read everything again several \
             times; plumb goes on with what it has, and reads everything again after the pause"
        );
    }
    tokio::time::sleep(pause).await;
    evidence
}

/// Waits for a run under way, which may still use the old picture.
async fn start_over(engine: Arc<Engine>, app: AppId) {
    let state = engine.records.state(&app);
    state.lock().await.forget_cluster();
    engine.queue.push(app, Trigger::live(TriggerReason::Cluster));
}
