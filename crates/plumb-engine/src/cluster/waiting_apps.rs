//! Apps that run again after an event: all kinds of their cluster are listed, or the kind of reports is served.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;
use plumb_core::app::AppId;

/// The apps that wait for one event. Clones share the set.
#[derive(Clone, Debug, Default)]
pub(crate) struct WaitingApps(Arc<Mutex<BTreeSet<AppId>>>);

impl WaitingApps {
    /// Adds an app. Returns whether it is the first one that waits.
    pub(crate) fn add(&self, app: &AppId) -> bool {
        let mut waiting = self.0.lock();
        let is_first = waiting.is_empty();
        waiting.insert(app.clone());
        is_first
    }

    pub(crate) fn take(&self) -> BTreeSet<AppId> {
        std::mem::take(&mut self.0.lock())
    }
}
