//! The channel from the store to its subscribers. Pending changes of one object are merged into one, so a
//! slow subscriber never has more pending changes than there are objects.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Weak};

use parking_lot::{Mutex, MutexGuard};
use plumb_core::object::ObjectKey;
use tokio::sync::Notify;

use super::record::{Change, Origin};

/// The changes that one subscriber has not received yet.
#[derive(Default)]
struct Inbox {
    waiting: Mutex<Waiting>,
    arrived: Notify,
}

#[derive(Default)]
struct Waiting {
    /// In the order of their first change. Every key in here has an entry in `changes`.
    order: VecDeque<ObjectKey>,
    changes: HashMap<ObjectKey, Change>,
    /// The sender was dropped.
    closed: bool,
}

/// Capacity that is kept. The capacity of a burst is freed when it is over.
const ROOM: usize = 256;

impl Waiting {
    fn take(&mut self) -> Option<Change> {
        let change = self.changes.remove(&self.order.pop_front()?);
        if self.order.is_empty() && self.order.capacity() > ROOM {
            self.order.shrink_to(ROOM);
            self.changes.shrink_to(ROOM);
        }
        change
    }
}

impl Inbox {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock()
    }
}

/// The sending end.
pub(super) struct Outlet(Weak<Inbox>);

impl Outlet {
    /// Queues a change; `false` if the receiver was dropped.
    pub(super) fn send(&self, change: Change) -> bool {
        let Some(inbox) = self.0.upgrade() else { return false };
        {
            let mut waiting = inbox.waiting();
            if let Some(earlier) = waiting.changes.get_mut(&change.key) {
                merge(earlier, change);
            } else {
                waiting.order.push_back(change.key.clone());
                waiting.changes.insert(change.key.clone(), change);
            }
        }
        inbox.arrived.notify_one();
        true
    }
}

impl Drop for Outlet {
    fn drop(&mut self) {
        if let Some(inbox) = self.0.upgrade() {
            inbox.waiting().closed = true;
            inbox.arrived.notify_one();
        }
    }
}

/// The later state counts; the apps of both changes are kept.
fn merge(earlier: &mut Change, later: Change) {
    let mut touched = std::mem::take(&mut earlier.touched);
    touched.extend(later.touched.iter().cloned());
    touched.sort();
    touched.dedup();
    let origin = match (earlier.origin, later.origin) {
        (Origin::Written, Origin::Written) => Origin::Written,
        (Origin::Watched, _) | (_, Origin::Watched) => Origin::Watched,
    };
    let last = later.last.clone().or_else(|| earlier.last.take());
    *earlier = Change { origin, touched, last, ..later };
}

/// The receiving end: every change since the subscription, in the order of each object's first pending
/// change.
pub struct Changes(Arc<Inbox>);

pub(super) fn channel() -> (Outlet, Changes) {
    let inbox = Arc::new(Inbox::default());
    (Outlet(Arc::downgrade(&inbox)), Changes(inbox))
}

impl Changes {
    /// The next change; `None` once the store was dropped.
    pub async fn recv(&mut self) -> Option<Change> {
        loop {
            {
                let mut waiting = self.0.waiting();
                if let Some(change) = waiting.take() {
                    return Some(change);
                }
                if waiting.closed {
                    return None;
                }
            }
            // There is one receiver, so `Notify` keeps a notification that comes before this line.
            self.0.arrived.notified().await;
        }
    }

    /// The next change, if one is pending.
    pub fn try_recv(&mut self) -> Option<Change> {
        self.0.waiting().take()
    }

    /// Waits for a change and receives all pending ones, at most `most`. Returns their number, 0 once the
    /// store was dropped.
    pub async fn recv_many(&mut self, batch: &mut Vec<Change>, most: usize) -> usize {
        let Some(first) = self.recv().await else { return 0 };
        batch.push(first);
        let mut n_taken = 1;
        while n_taken < most
            && let Some(change) = self.try_recv()
        {
            batch.push(change);
            n_taken += 1;
        }
        n_taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::record::{Role, Touched, Uid};

    fn change(name: &str, version: u64, origin: Origin, instance: &str) -> Change {
        Change {
            key: ObjectKey::new("", "ConfigMap", Some("web".to_owned()), name),
            uid: Uid::new("u"),
            resource_version: version,
            gone: false,
            origin,
            touched: vec![Touched { instance: instance.into(), role: Role::Tracked }],
            last: None,
        }
    }

    #[tokio::test]
    async fn changes_of_one_object_are_merged_and_keep_every_app() {
        let (outlet, mut changes) = channel();
        for version in 0..1000 {
            assert!(outlet.send(change("a", version, Origin::Written, "one")));
        }
        outlet.send(change("b", 7, Origin::Written, "one"));
        outlet.send(change("a", 1000, Origin::Watched, "two"));
        outlet.send(change("a", 1001, Origin::Written, "one"));
        let mut batch = Vec::new();
        assert_eq!(changes.recv_many(&mut batch, 10).await, 2, "one for each object");
        let first = &batch[0];
        assert_eq!((first.key.name.as_str(), first.resource_version), ("a", 1001));
        assert_eq!((first.origin, first.touched.len()), (Origin::Watched, 2));
        assert!(changes.try_recv().is_none());
    }

    #[tokio::test]
    async fn both_ends_learn_that_the_other_is_gone() {
        let (outlet, mut changes) = channel();
        outlet.send(change("a", 1, Origin::Watched, "one"));
        drop(outlet);
        assert!(changes.recv().await.is_some(), "what was sent is still there");
        assert!(changes.recv().await.is_none());
        let (outlet, changes) = channel();
        drop(changes);
        assert!(!outlet.send(change("a", 1, Origin::Watched, "one")));
    }
}
