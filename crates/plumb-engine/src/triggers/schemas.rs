//! Requests runs when the schema of a kind changes.

use std::collections::BTreeSet;
use std::sync::Arc;

use tracing::info;

use crate::cluster::destination::Cluster;
use crate::engine::Engine;
use crate::queue::{Trigger, TriggerReason};

/// Watches the schemas of one cluster. An app whose objects have a changed schema runs: the meaning of its fields may have
/// changed.
pub(crate) async fn watch_schemas(engine: Arc<Engine>, cluster: Arc<Cluster>) {
    let mut changes = cluster.client.catalog_changes();
    let mut known = cluster.client.catalog();
    while changes.changed().await.is_ok() {
        let catalog = Arc::clone(&changes.borrow_and_update());
        let is_changed =
            |api_version: &str| known.schemas.get(api_version) != catalog.schemas.get(api_version);
        let mut concerned = BTreeSet::new();
        for app in engine.registry.all() {
            let is_here = app.app.as_ref().is_ok_and(|app| {
                engine.clusters.address(&app.destination.cluster).as_ref() == Some(&cluster.server)
            });
            if !is_here {
                continue;
            }
            // An app that runs just now may use the old schema. Its run is not waited for.
            let state = engine.records.state(&app.id);
            let uses_it = state.try_lock().ok().is_none_or(|state| {
                state.git.current().is_some_and(|stored| stored.set.api_versions().any(is_changed))
            });
            if uses_it {
                concerned.insert(app.id.clone());
            }
        }
        if !concerned.is_empty() {
            info!(apps = concerned.len(), "schemas changed");
        }
        engine.request_runs(concerned, Trigger::live(TriggerReason::Schema));
        known = catalog;
    }
}
