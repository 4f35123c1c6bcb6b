//! Apps that were looked at while not everything of their cluster was known: a kind had just come, or a first list
//! took its time. What had to wait for that is looked at again once all is listed.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use plumb_core::app::AppId;

use crate::cluster::destination::Cluster;
use crate::engine::Engine;
use crate::queue::{Look, Trigger};

/// The apps of one cluster. Cheap to clone; all clones are one.
#[derive(Clone, Debug, Default)]
pub(crate) struct TooEarly(Arc<Mutex<BTreeSet<AppId>>>);

impl TooEarly {
    fn note(&self, app: &AppId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(app.clone());
    }

    fn take(&self) -> BTreeSet<AppId> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Engine {
    /// Asks for another run of an app when its cluster is listed completely.
    pub(crate) fn wake_when_listed(&self, app: &AppId, cluster: &Cluster) {
        cluster.too_early.note(app);
        // It may have been while we looked: then nobody else tells.
        if cluster.store.is_complete() {
            self.wake_too_early(cluster);
        }
    }

    fn wake_too_early(&self, cluster: &Cluster) {
        self.wake(cluster.too_early.take(), Trigger::new(Look::Live, "listed"));
    }
}

/// Wakes the apps that were looked at too early, each time that all of the cluster is listed.
pub(crate) async fn follow_lists(engine: Arc<Engine>, cluster: Arc<Cluster>) {
    let mut complete = cluster.store.completeness();
    while complete.changed().await.is_ok() {
        if *complete.borrow_and_update() {
            engine.wake_too_early(&cluster);
        }
    }
}
