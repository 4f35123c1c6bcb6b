//! One repository: the state that readers see, what requesters ask for, and which callers share fetches.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
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

/// How long a mirror that was just made is not made again because of objects that cannot be read.
const AS_GOOD_AS_NEW: Duration = Duration::from_mins(1);

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
    /// When this process last made it, other than by fetching what is new.
    made: Mutex<Option<Instant>>,
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
            made: Mutex::default(),
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
            for name in held {
                self.ask(name);
            }
        }
        current.clone()
    }

    /// True if something of the mirror could not be read and it must be made again. A mirror that was made a moment ago and
    /// that no one else wrote to is as good as it gets: what cannot be read is like this on the server.
    pub(super) fn is_damaged(&self) -> bool {
        let was_made_lately = self.made.lock().is_some_and(|made| made.elapsed() < AS_GOOD_AS_NEW);
        let is_intact = || {
            let current = self.current.lock().clone();
            current.is_some_and(|current| disk::is_intact(&self.directory, &current.state))
        };
        self.damaged.load(Ordering::Relaxed) && !(was_made_lately && is_intact())
    }

    /// Notes that the mirror was made again.
    pub(super) fn note_made(&self) {
        *self.made.lock() = Some(Instant::now());
        self.damaged.store(false, Ordering::Relaxed);
    }

    /// The state that readers see, and whether the files on disk are those that plumb left there. If another process has
    /// fetched since, readers see its state from now on. The caller holds the disk.
    pub(super) fn checked(&self) -> (Option<Arc<Current>>, bool) {
        let Some(current) = self.current() else { return (None, false) };
        if disk::is_intact(&self.directory, &current.state) {
            return (Some(current), true);
        }
        match disk::load(&self.directory).map(Arc::new) {
            Some(newer) => {
                *self.current.lock() = Some(Arc::clone(&newer));
                (Some(newer), true)
            }
            None => (Some(current), false),
        }
    }

    /// When it was last used.
    pub(super) fn used(&self) -> Instant {
        *self.used.lock()
    }

    /// Notes that a requester asks for a ref or commit besides branches and tags. Returns whether it is new: requests before
    /// this one did not ask the server for it.
    pub(super) fn ask(&self, name: &str) -> bool {
        let mut asked = self.asked.lock();
        let is_new = asked.insert(name.to_owned(), Instant::now()).is_none();
        if asked.len() > MOST_ASKED {
            let oldest = asked.iter().min_by_key(|(_, at)| **at).map(|(name, _)| name.clone());
            oldest.and_then(|name| asked.remove(&name));
        }
        is_new
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
