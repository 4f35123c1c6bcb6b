//! What the watches and the readers of one store share.

use std::sync::Arc;
use std::time::Instant;

use parking_lot::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
use tokio::sync::{Notify, watch};

use super::options::LiveOptions;
use super::record::Change;
use super::state::State;
use crate::client::ClusterClient;

/// Is told of a change; `false`: it does not want to hear more.
pub(super) type Follower = Box<dyn Fn(&Change) -> bool + Send>;

pub(super) struct Core {
    pub(super) client: ClusterClient,
    pub(super) options: LiveOptions,
    pub(super) state: RwLock<State>,
    pub(super) subscribers: Mutex<Vec<Follower>>,
    /// The kinds may have changed.
    pub(super) look_again: Notify,
    /// What is left out may have changed.
    pub(super) reconsider: Notify,
    /// Did the first discovery succeed, and every watch finish its first list?
    pub(super) complete: watch::Sender<bool>,
    pub(super) complete_since: Mutex<Option<Instant>>,
    pub(super) discovered: watch::Sender<bool>,
    /// What keeps a watch from the server.
    pub(super) lost: watch::Sender<Option<Arc<str>>>,
}

impl Core {
    pub(super) fn state(&self) -> RwLockReadGuard<'_, State> {
        self.state.read()
    }

    pub(super) fn state_mut(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write()
    }

    pub(super) fn tell(&self, change: &Change) {
        let mut subscribers = self.subscribers.lock();
        subscribers.retain(|told| told(change));
    }

    /// A watch lost the server, or found it again.
    pub(super) fn tell_lost(&self) {
        // Read under the channel's lock: two watches may tell at the same moment, and the later word must not be
        // the older one.
        self.lost.send_if_modified(|known| {
            let lost: Option<Arc<str>> = self.state().lost().map(Into::into);
            let changed = *known != lost;
            *known = lost;
            changed
        });
    }

    /// Something about completeness may have changed.
    pub(super) fn progressed(&self) {
        // Read under the channel's lock, as in `tell_lost`.
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
