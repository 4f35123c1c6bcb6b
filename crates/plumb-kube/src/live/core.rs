//! The state that the watches and the readers of one store share.

use std::sync::Arc;
use std::time::Instant;

use parking_lot::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
use tokio::sync::{Notify, watch};

use super::options::LiveOptions;
use super::record::Change;
use super::state::State;
use crate::client::ClusterClient;

/// Called for each change; returns `false` to unsubscribe.
pub(super) type Subscriber = Box<dyn Fn(&Change) -> bool + Send>;

pub(super) struct Core {
    pub(super) client: ClusterClient,
    pub(super) options: LiveOptions,
    pub(super) state: RwLock<State>,
    pub(super) subscribers: Mutex<Vec<Subscriber>>,
    /// The kinds may have changed.
    pub(super) look_again: Notify,
    /// The kinds that are excluded may have changed.
    pub(super) reconsider: Notify,
    /// The server answers again after an outage.
    pub(super) came_back: Notify,
    /// True once discovery succeeded and every watch finished its first list.
    pub(super) complete: watch::Sender<bool>,
    pub(super) complete_since: Mutex<Option<Instant>>,
    pub(super) discovered: watch::Sender<bool>,
    /// The error of a watch that cannot reach the server.
    pub(super) lost: watch::Sender<Option<Arc<str>>>,
    /// How the data of the server went back in time, once it did.
    pub(super) rewound: watch::Sender<Option<Arc<str>>>,
    /// How many lists have ended.
    pub(super) lists: watch::Sender<u64>,
}

impl Core {
    pub(super) fn state(&self) -> RwLockReadGuard<'_, State> {
        self.state.read()
    }

    pub(super) fn state_mut(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write()
    }

    pub(super) fn publish(&self, change: &Change) {
        let mut subscribers = self.subscribers.lock();
        subscribers.retain(|subscriber| subscriber(change));
    }

    /// Publishes whether a watch cannot reach the server.
    pub(super) fn publish_lost(&self) {
        // Read under the channel's lock: two watches may publish at the same moment, and the later value must
        // not be the older one.
        self.lost.send_if_modified(|known| {
            let lost: Option<Arc<str>> = self.state().lost().map(Into::into);
            let changed = *known != lost;
            *known = lost;
            changed
        });
    }

    /// Publishes that the data of the server went back in time. The first evidence stays.
    pub(super) fn publish_rewound(&self, evidence: String) {
        self.rewound.send_if_modified(|known| {
            let is_new = known.is_none();
            if is_new {
                *known = Some(evidence.into());
            }
            is_new
        });
    }

    /// Publishes whether the store is complete.
    pub(super) fn publish_complete(&self) {
        // Read under the channel's lock, as in `publish_lost`.
        self.complete.send_if_modified(|known| {
            let complete = *self.discovered.borrow() && self.state().unlisted().is_empty();
            let changed = std::mem::replace(known, complete) != complete;
            if changed && complete {
                let mut since = self.complete_since.lock();
                *since = Some(Instant::now());
            }
            changed
        });
    }
}
