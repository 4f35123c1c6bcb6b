//! One repository: the state that readers see, and which callers share fetches.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use parking_lot::Mutex;

use super::disk::{self, Current};
use super::error::FetchError;
use super::readable::Fetched;

/// One repository.
pub(super) struct Slot {
    pub(super) directory: PathBuf,
    /// Callers with the same credentials share fetches; so do callers with the same credentials and extra
    /// commit or ref.
    pub(super) lanes: Mutex<HashMap<String, Arc<Lane>>>,
    /// Held while the mirror on disk is changed.
    pub(super) disk: tokio::sync::Mutex<()>,
    pub(super) current: Mutex<Option<Arc<Current>>>,
    pub(super) damaged: Arc<AtomicBool>,
}

/// Callers that share fetches.
#[derive(Default)]
pub(super) struct Lane {
    /// When the server was last requested, and the result.
    pub(super) served: tokio::sync::Mutex<Option<(Instant, Result<Fetched, FetchError>)>>,
}

impl Slot {
    pub(super) fn lane(&self, name: String) -> Arc<Lane> {
        let mut lanes = self.lanes.lock();
        Arc::clone(lanes.entry(name).or_default())
    }

    /// The last caller removes the lane: over time there may be any number of commits.
    pub(super) fn leave_lane(&self, name: &str, lane: Arc<Lane>) {
        let mut lanes = self.lanes.lock();
        drop(lane);
        if lanes.get(name).is_some_and(|lane| Arc::strong_count(lane) == 1) {
            lanes.remove(name);
        }
    }

    /// The state that readers see, loaded from disk the first time.
    pub(super) fn current(&self) -> Option<Arc<Current>> {
        let mut current = self.current.lock();
        if current.is_none() {
            *current = disk::load(&self.directory).map(Arc::new);
        }
        current.clone()
    }
}
