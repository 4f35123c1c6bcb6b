//! The live objects of one cluster: starting the watches, completeness, changes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use plumb_core::object::{GroupKind, Manifest};
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::changes::{Changes, channel};
use super::core::Core;
use super::feeder::ingest;
use super::options::LiveOptions;
use super::record::{Change, Origin};
use super::sample::detect;
use super::supervise::supervise;
use crate::client::ClusterClient;
use crate::feed::Head;

/// The live objects of one cluster. Cheap to clone; the watches end when the last clone is dropped.
#[derive(Clone)]
pub struct LiveStore {
    pub(super) core: Arc<Core>,
    _watches: Arc<Watches>,
}

struct Watches([AbortHandle; 2]);

impl Drop for Watches {
    fn drop(&mut self) {
        self.0.iter().for_each(AbortHandle::abort);
    }
}

impl LiveStore {
    /// Starts to watch a cluster.
    pub fn start(client: ClusterClient, options: LiveOptions) -> Self {
        let core = Arc::new(Core {
            client,
            options,
            state: RwLock::default(),
            subscribers: Mutex::default(),
            look_again: Notify::new(),
            reconsider: Notify::new(),
            came_back: Notify::new(),
            complete: watch::Sender::new(false),
            complete_since: Mutex::default(),
            discovered: watch::Sender::new(false),
            lost: watch::Sender::new(None),
            rewound: watch::Sender::new(None),
            lists: watch::Sender::new(0),
        });
        let watches = tokio::spawn(supervise(Arc::clone(&core)));
        let samples = tokio::spawn(detect(Arc::clone(&core)));
        let tasks = [watches.abort_handle(), samples.abort_handle()];
        Self { core, _watches: Arc::new(Watches(tasks)) }
    }

    /// The cluster's client.
    pub fn client(&self) -> &ClusterClient {
        &self.core.client
    }

    // --- completeness ------------------------------------------------------------------------------------

    /// True once every watch finished its first list. Only then is an object that is not in the store known
    /// to be missing.
    pub fn is_complete(&self) -> bool {
        *self.core.complete.borrow()
    }

    /// How long ago the store last became complete; `None` if it never was.
    pub fn complete_for(&self) -> Option<Duration> {
        let since = self.core.complete_since.lock();
        since.map(|since| since.elapsed())
    }

    /// Waits until it is complete.
    pub async fn wait_complete(&self) {
        let mut complete = self.core.complete.subscribe();
        // The sender lives as long as `self`.
        let _ = complete.wait_for(|complete| *complete).await;
    }

    /// True if the store is complete now or within this time. The kind of a new CRD is listed within moments.
    pub async fn is_complete_within(&self, time: Duration) -> bool {
        tokio::time::timeout(time, self.wait_complete()).await.is_ok()
    }

    /// Whether the store is complete, as a channel.
    pub fn completeness(&self) -> watch::Receiver<bool> {
        self.core.complete.subscribe()
    }

    /// The kinds whose first list is not complete, with the last error if there was one.
    pub fn unlisted(&self) -> Vec<(GroupKind, Option<String>)> {
        self.core.state().unlisted()
    }

    /// True if this kind is watched and its first list is complete.
    pub fn is_listed(&self, kind: &GroupKind) -> bool {
        let state = self.core.state();
        state.table_of(kind).is_some_and(|(_, table)| table.scopes.iter().all(|scope| scope.listed))
    }

    /// The error while a watch cannot reach the server: the store may then be out of date. A single broken
    /// connection shows here for a moment.
    pub fn lost(&self) -> watch::Receiver<Option<Arc<str>>> {
        self.core.lost.subscribe()
    }

    // --- reading again -----------------------------------------------------------------------------------

    /// Waits until the data of the server went back in time, as after a restore of etcd from a backup, and returns the
    /// evidence. The store then shows what is no longer so: it has to be replaced by a new one.
    pub async fn went_back(&self) -> Arc<str> {
        let mut rewound = self.core.rewound.subscribe();
        let evidence = rewound.wait_for(Option::is_some).await.ok().and_then(|evidence| evidence.clone());
        match evidence {
            Some(evidence) => evidence,
            // Not expected: the sender lives as long as `self`.
            None => std::future::pending().await,
        }
    }

    /// Discovers the kinds of the cluster again and lists the objects of these kinds again, and waits for that, not longer
    /// than `within`. A kind whose list began less than a moment ago is not listed again: many callers cost one list.
    pub async fn read_again(&self, kinds: &BTreeSet<GroupKind>, within: Duration) {
        let read = async {
            if let Err(error) = self.core.client.discover().await {
                tracing::debug!(%error, "cannot discover the cluster's kinds again");
            }
            let mut lists = self.core.lists.subscribe();
            let asked = self.core.state_mut().list_again(kinds, Instant::now());
            // The sender lives as long as `self`.
            let _ = lists.wait_for(|_| self.core.state().have_listed(&asked)).await;
        };
        let _ = tokio::time::timeout(within, read).await;
    }

    // --- changes -----------------------------------------------------------------------------------------

    /// Every change from now on. Pending changes of one object are merged.
    pub fn subscribe(&self) -> Changes {
        let (outlet, changes) = channel();
        self.each(move |change| outlet.send(change.clone()));
        changes
    }

    /// Calls `subscriber` for every single change from now on, until it returns `false`. It must be fast.
    pub fn each(&self, subscriber: impl Fn(&Change) -> bool + Send + 'static) {
        self.core.subscribers.lock().push(Box::new(subscriber));
    }

    /// Checks again which kinds to watch, after the options' `excluded` changed.
    pub fn reconsider(&self) {
        self.core.reconsider.notify_one();
    }

    /// Puts an object that the server returned from a write into the store, so that the next comparison sees
    /// it. A later state that is in the store stays.
    pub fn observe_written(&self, object: &Manifest) {
        self.observe(object, Origin::Written);
    }

    pub(super) fn observe(&self, object: &Manifest, origin: Origin) {
        let gvk = object.gvk();
        let kind = gvk.group_kind();
        // Skip the work for a kind that is not watched.
        if self.core.state().table_of(&kind).is_none() {
            return;
        }
        let Ok(raw) = serde_json::to_string(object.value()) else { return };
        let Ok(head) = serde_json::from_str::<Head<'_>>(&raw) else { return };
        let change = ingest(&self.core, &kind, &raw, &head, |state, seen| {
            state.put_answer(seen, &gvk.version, origin)
        });
        if let Some(change) = change {
            self.core.publish(&change);
        }
    }

    /// Forgets the keys that an app wanted.
    pub fn forget(&self, instance: &str) {
        let mut state = self.core.state_mut();
        let instance = state.intern(instance);
        state.want(&instance, Vec::new());
    }
}
