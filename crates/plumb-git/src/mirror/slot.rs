//! One repository: the state that readers see, what requesters ask for, and which callers share fetches.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use plumb_core::app::CommitId;

use super::contained::Contained;
use super::disk::{self, Current};
use super::error::FetchError;
use super::readable::Fetched;

/// How long a ref or commit besides branches and tags is kept after a requester asked for it.
const KEPT: Duration = Duration::from_hours(1);
/// Most such refs and commits of one repository. Each is an argument of every fetch.
const MOST_ASKED: usize = 1000;
/// How long a repository that does not fit the limits is not fetched again, unless its refs change.
const REFUSED: Duration = Duration::from_mins(10);

/// One repository.
pub(super) struct Slot {
    pub(super) directory: PathBuf,
    /// Callers with the same credentials share fetches; so do callers with the same credentials and extra
    /// commit.
    pub(super) lanes: Mutex<HashMap<String, Arc<Lane>>>,
    /// Held while the mirror on disk is changed.
    pub(super) disk: tokio::sync::Mutex<()>,
    pub(super) current: Mutex<Option<Arc<Current>>>,
    pub(super) damaged: Arc<AtomicBool>,
    /// The commits that are known to be on branches and tags.
    pub(super) contained: Arc<Contained>,
    /// Refs and commits besides branches and tags, and when a requester last asked for them.
    asked: Mutex<HashMap<String, Instant>>,
    /// What the server advertised when the repository did not fit the limits.
    refused: Mutex<Option<(Instant, String, FetchError)>>,
    /// When it was last used.
    used: Mutex<Instant>,
}

/// Callers that share fetches.
#[derive(Default)]
pub(super) struct Lane {
    /// When the server was last requested, and the result.
    pub(super) served: tokio::sync::Mutex<Option<(Instant, Result<Fetched, FetchError>)>>,
}

/// What requesters asked for lately, besides branches and tags.
pub(super) struct Asked {
    /// Full names of refs.
    pub(super) refs: BTreeSet<String>,
    /// Hashes of commits.
    pub(super) commits: BTreeSet<String>,
}

impl Slot {
    pub(super) fn new(directory: PathBuf) -> Self {
        Self {
            directory,
            lanes: Mutex::default(),
            disk: tokio::sync::Mutex::default(),
            current: Mutex::default(),
            damaged: Arc::default(),
            contained: Arc::default(),
            asked: Mutex::default(),
            refused: Mutex::default(),
            used: Mutex::new(Instant::now()),
        }
    }

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
        *self.used.lock() = Instant::now();
        let mut current = self.current.lock();
        if current.is_none() {
            *current = disk::load(&self.directory).map(Arc::new);
            let held =
                current.iter().flat_map(|current| current.state.others.iter().chain(&current.state.commits));
            held.for_each(|name| self.ask(name));
        }
        current.clone()
    }

    /// When it was last used.
    pub(super) fn used(&self) -> Instant {
        *self.used.lock()
    }

    /// Notes that a requester asks for a ref or commit besides branches and tags.
    pub(super) fn ask(&self, name: &str) {
        let mut asked = self.asked.lock();
        asked.insert(name.to_owned(), Instant::now());
        if asked.len() > MOST_ASKED {
            let oldest = asked.iter().min_by_key(|(_, at)| **at).map(|(name, _)| name.clone());
            oldest.and_then(|name| asked.remove(&name));
        }
    }

    /// What requesters asked for lately.
    pub(super) fn asked(&self) -> Asked {
        let mut asked = self.asked.lock();
        asked.retain(|_, at| at.elapsed() < KEPT);
        let (commits, refs) = asked.keys().cloned().partition(|name| name.parse::<CommitId>().is_ok());
        Asked { refs, commits }
    }

    /// Why the repository is not fetched again although the server has something new: it did not fit the limits, and
    /// its refs are the same.
    pub(super) fn refusal(&self, advertised: &str) -> Option<FetchError> {
        let refused = self.refused.lock();
        let (at, digest, error) = refused.as_ref()?;
        (digest == advertised && at.elapsed() < REFUSED).then(|| error.clone())
    }

    /// Notes that the repository does not fit the limits.
    pub(super) fn refuse(&self, advertised: &str, error: &FetchError) {
        *self.refused.lock() = Some((Instant::now(), advertised.to_owned(), error.clone()));
    }
}
