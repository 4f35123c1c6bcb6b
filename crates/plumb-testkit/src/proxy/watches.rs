//! The watches that run through the proxy, and how they end.

use std::{collections::HashMap, sync::Arc};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::oneshot;

use super::rules::{Recorded, Requests};

/// How a running watch ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// As the API server ends one whose time is up: the body is complete.
    Clean,
    /// The connection breaks in the middle.
    Broken,
    /// One last event says that the version is too old (410), then the body is complete.
    Gone,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Watches {
    running: Arc<Mutex<Running>>,
}

#[derive(Debug, Default)]
struct Running {
    next: u64,
    watches: HashMap<u64, (Recorded, oneshot::Sender<Ending>)>,
}

/// Held by a watch's body; dropping it takes the watch off the list.
pub(super) struct Registered {
    id: u64,
    running: Arc<Mutex<Running>>,
}

impl Watches {
    /// Puts a watch on the list. The receiver hears when it is to end.
    pub(super) fn register(&self, request: Recorded) -> (Registered, oneshot::Receiver<Ending>) {
        let (sender, receiver) = oneshot::channel();
        let mut running = lock(&self.running);
        let id = running.next;
        running.next += 1;
        running.watches.insert(id, (request, sender));
        (Registered { id, running: Arc::clone(&self.running) }, receiver)
    }

    pub(super) fn count(&self, requests: &Requests) -> usize {
        lock(&self.running).watches.values().filter(|(request, _)| requests.fits(request)).count()
    }

    pub(super) fn end(&self, requests: &Requests, ending: Ending) -> usize {
        let mut running = lock(&self.running);
        let ids: Vec<u64> = running
            .watches
            .iter()
            .filter(|(_, (request, _))| requests.fits(request))
            .map(|(id, _)| *id)
            .collect();
        let mut ended = 0;
        for id in ids {
            if let Some((_, sender)) = running.watches.remove(&id) {
                // A watch whose client left at this moment has ended by itself.
                ended += usize::from(sender.send(ending).is_ok());
            }
        }
        ended
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        lock(&self.running).watches.remove(&self.id);
    }
}

fn lock(running: &Mutex<Running>) -> MutexGuard<'_, Running> {
    // Nothing in here can leave the list half changed.
    running.lock()
}
