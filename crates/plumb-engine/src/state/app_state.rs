//! What the engine keeps about one app between two runs. All of it can be lost: the cluster has what matters, and
//! the next run finds the rest again.

use std::collections::BTreeMap;
use std::time::Instant;

use jiff::Timestamp;
use plumb_core::object::{Fingerprint, ObjectKey};

use crate::compare::state::JudgeState;
use crate::health::history::HealthState;
use crate::operation::state::OperationSlot;
use crate::sources::state::GitState;

/// What the engine keeps about one app. Each part is owned by the folder that its type comes from.
#[derive(Default)]
pub(crate) struct AppState {
    /// True if the last run found everything as Git asks, with nothing left to do or to write.
    pub(crate) is_settled: bool,
    pub(crate) git: GitState,
    pub(crate) judge: JudgeState,
    pub(crate) health: HealthState,
    pub(crate) operation: OperationSlot,
    pub(crate) report: ReportState,
    pub(crate) deletion: DeletionState,
}

/// What was written about the app.
#[derive(Default)]
pub(crate) struct ReportState {
    /// Digest of the last `DriftReport`.
    pub(crate) digest: Option<Fingerprint>,
    /// When the first pause of the app or its objects ends. A run is requested for that time.
    pub(crate) pause_ends: Option<Timestamp>,
}

/// How far the deletion of the app is.
#[derive(Default)]
pub(crate) struct DeletionState {
    /// When the next run for the deletion is due if no event comes before.
    pub(crate) next_run: Option<Instant>,
    /// Hooks that failed, and how.
    pub(crate) failed_hooks: BTreeMap<ObjectKey, String>,
}

impl AppState {
    /// Returns the memory that a sync and its failures took.
    pub(crate) fn shrink(&mut self) {
        self.judge.shrink();
        self.health.shrink();
    }
}
