//! Apps that ran before all kinds of their cluster were listed.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;
use plumb_core::app::AppId;

/// The apps of one cluster that run again once all its kinds are listed. Clones share the set.
#[derive(Clone, Debug, Default)]
pub(crate) struct WaitingForLists(Arc<Mutex<BTreeSet<AppId>>>);

impl WaitingForLists {
    pub(crate) fn add(&self, app: &AppId) {
        self.0.lock().insert(app.clone());
    }

    pub(crate) fn take(&self) -> BTreeSet<AppId> {
        std::mem::take(&mut self.0.lock())
    }
}
