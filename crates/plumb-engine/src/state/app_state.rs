//! What the engine remembers about one app between two runs. All of it can be lost: the cluster has what
//! matters, and the next run finds the rest again.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use plumb_core::app::AppId;
use plumb_core::automation::{HealLedger, LastOperation};
use plumb_core::drift::{ApiFailure, Finding};
use plumb_core::health::HealthStatus;
use plumb_core::object::{Fingerprint, GroupVersionKind, Manifest, ObjectKey};
use plumb_core::status::{AppStatus, SyncCode};
use plumb_core::sync::OperationPhase;

use crate::compare::verdict_cache::Verdicts;
use crate::health::history::HealthMemory;
use crate::operation::active::ActiveOperation;
use crate::sources::gather::Kept;
use crate::sync::executor::step::Written;

/// What Git asked for before its newest commit.
pub(crate) struct Before {
    pub(crate) kept: Arc<Kept>,
    /// Was the cluster found to be so? Then that is what it had, whether it was applied or somebody made it so.
    pub(crate) was_in_sync: bool,
    /// Of which objects is something newer applied since?
    pub(crate) overwritten: BTreeSet<ObjectKey>,
}

impl Before {
    pub(crate) fn new(kept: Arc<Kept>, was_in_sync: bool) -> Self {
        Self { kept, was_in_sync, overwritten: BTreeSet::new() }
    }
}

/// What the engine remembers about one app.
#[derive(Default)]
pub(crate) struct Memory {
    /// What Git asked for at the last look.
    pub(crate) gathered: Option<Arc<Kept>>,
    /// Was the cluster ever found to be as that asks?
    pub(crate) was_in_sync: bool,
    /// What it asked for before that, as long as that may be what the cluster has.
    pub(crate) before: Option<Before>,
    /// Did the last run find everything as Git asks, with nothing left to do or to say?
    pub(crate) at_rest: bool,
    /// What was tried, object by object.
    pub(crate) attempts: HashMap<ObjectKey, AttemptRecord>,
    /// What was read of an earlier process.
    pub(crate) recalled: Recalled,
    /// Heals, for the tug of war.
    pub(crate) ledger: HealLedger,
    /// Jobs that are known to have finished.
    pub(crate) finished: HashMap<ObjectKey, Finished>,
    /// The verdicts of the last look, as long as they hold.
    pub(crate) verdicts: Verdicts,
    /// The findings of the last judgement; objects without any are left out.
    pub(crate) findings: BTreeMap<ObjectKey, Arc<[Finding]>>,
    /// What the report says that was last written.
    pub(crate) report: Option<Fingerprint>,
    /// The operation that is under way in this process.
    pub(crate) operation: Option<ActiveOperation>,
    /// The last operation that was no dry run, as far as this process saw.
    pub(crate) last_attempt: LastAttempt,
    /// When the last operation that this process knows of began.
    pub(crate) last_start: Option<Timestamp>,
    /// When the first pause of the app or its objects ends; a run is asked for then.
    pub(crate) pause_ends: Option<Timestamp>,
    /// When its deletion is looked at again, if no event comes before.
    pub(crate) deletion_look: Option<Instant>,
    /// Hooks that failed in its deletion, and how.
    pub(crate) failed_hooks: BTreeMap<ObjectKey, String>,
    /// What the operation under way has written.
    pub(crate) written: Written,
    /// An operation that has ended and is not written down yet.
    pub(crate) unwritten: Option<Ended>,
    /// Fingerprints of the schemas that objects were last judged with.
    pub(crate) schemas: HashMap<GroupVersionKind, u64>,
    /// Objects that were read anew because their schema changed. A CRD that gains a default changes what the
    /// server shows of an object without giving it a new version, so no watch tells.
    pub(crate) reread: HashMap<ObjectKey, Arc<Manifest>>,
    /// How its objects are, and since when.
    pub(crate) health: HealthMemory,
}

impl Memory {
    /// Nothing is left to do for now: gives back the room that a sync and its troubles took.
    pub(crate) fn shrink(&mut self) {
        self.attempts.shrink_to_fit();
        self.finished.shrink_to_fit();
        self.verdicts.shrink();
        self.schemas.shrink_to_fit();
        self.reread.shrink_to_fit();
        self.health.shrink();
    }
}

/// The last operation that was no dry run. The status has room for one operation, and a dry run takes its place.
#[derive(Default)]
pub(crate) enum LastAttempt {
    /// Nobody knows: a dry run was the last one when this process began.
    #[default]
    Unknown,
    /// There was none.
    None,
    Known(LastOperation),
}

/// What was read of an earlier process; each is tried once.
#[derive(Default)]
pub(crate) struct Recalled {
    /// What the last successful sync applied.
    pub(crate) last_sync: bool,
    /// Which Jobs ran while nobody looked.
    pub(crate) unseen_runs: bool,
    /// What it found.
    pub(crate) findings: bool,
}

/// An operation that has ended.
pub(crate) struct Ended {
    pub(crate) operation: ActiveOperation,
    at: Instant,
    settling: Duration,
}

/// How long the end of a sync may wait to be written down while what it wrote gets well, so that one request says
/// both. A write of an Application costs the server as much as five of a `ConfigMap`, so where many apps sync at
/// once a second one holds up the very controllers that are waited for. The longer the operation took, the busier
/// the server is.
const SETTLING: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(3);
/// So many times as long as the operation took.
const SETTLING_FACTOR: u32 = 4;

impl Ended {
    /// It has ended just now.
    pub(crate) fn new(operation: ActiveOperation, now: Timestamp) -> Self {
        let took = now.duration_since(operation.record.started_at).unsigned_abs();
        let settling = took.saturating_mul(SETTLING_FACTOR).clamp(*SETTLING.start(), *SETTLING.end());
        Self { operation, at: Instant::now(), settling }
    }

    /// How long it may still wait.
    pub(crate) fn may_wait(&self) -> Duration {
        self.settling.saturating_sub(self.at.elapsed())
    }

    /// Is it likely that the app's health changes in a moment, so that one request can say both? Only where
    /// nobody waits for the word: a person's sync and one that failed are written down at once.
    pub(crate) fn settles_soon(&self, status: &AppStatus) -> bool {
        self.operation.is_automated()
            && self.operation.record.phase == OperationPhase::Succeeded
            && status.sync == SyncCode::Synced
            && status.health.status == HealthStatus::Progressing
            && !self.may_wait().is_zero()
    }
}

/// The last try to write an object.
#[derive(Clone, Debug)]
pub(crate) struct AttemptRecord {
    /// Fingerprint of what was written.
    pub(crate) desired: Fingerprint,
    /// Fingerprint of what was written first from the same commit: see [`asked`](crate::compare::run::asked).
    pub(crate) asked: Fingerprint,
    /// The commit, if what it renders may vary.
    pub(crate) commit: Option<u64>,
    /// What it was rendered from, if this process saw it and the same could render differently: see [`Gathered::origin`](crate::sources::gather::Gathered::origin).
    pub(crate) origin: Option<u64>,
    pub(crate) result: AttemptResult,
}

/// How it went.
#[derive(Clone, Debug)]
pub(crate) enum AttemptResult {
    Applied,
    Refused(Box<ApiFailure>),
    Failed,
}

/// A run that is known to have finished.
#[derive(Clone, Debug)]
pub(crate) struct Finished {
    /// When; `None` where nobody was there to see it.
    pub(crate) at: Option<Timestamp>,
    pub(crate) succeeded: bool,
    /// Fingerprint of what Git asked for when it ran; `None` if it is not known.
    pub(crate) desired: Option<Fingerprint>,
}

/// The memories of all apps. The queue hands an app to one worker at a time, so a lock is never waited for
/// except by whoever notes an event in between.
#[derive(Clone, Default)]
pub(crate) struct Memories(Arc<Mutex<HashMap<AppId, Arc<tokio::sync::Mutex<Memory>>>>>);

impl Memories {
    pub(crate) fn of(&self, app: &AppId) -> Arc<tokio::sync::Mutex<Memory>> {
        let mut memories = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(memories.entry(app.clone()).or_default())
    }

    pub(crate) fn forget(&self, app: &AppId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(app);
    }
}
