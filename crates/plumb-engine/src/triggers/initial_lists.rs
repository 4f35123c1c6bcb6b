//! Requests runs of apps that ran before all kinds of their cluster were listed: a kind had just appeared, or a first list
//! took long.

use std::sync::Arc;

use crate::cluster::destination::Cluster;
use crate::engine::Engine;

/// Requests the runs each time that all kinds of the cluster are listed.
pub(crate) async fn watch_lists(engine: Arc<Engine>, cluster: Arc<Cluster>) {
    let mut complete = cluster.store.completeness();
    while complete.changed().await.is_ok() {
        if *complete.borrow_and_update() {
            engine.run_waiting_for_lists(&cluster);
        }
    }
}
