//! What the engine keeps about one app between two runs. All of it can be lost: the cluster has what matters, and
//! the next run finds the rest again.

use std::collections::BTreeMap;
use std::time::Instant;

use jiff::Timestamp;
use plumb_core::object::ObjectKey;
use plumb_core::status::WrittenReport;

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
    /// The last `DriftReport`.
    pub(crate) written: Option<WrittenReport>,
    /// When the next one is due. A run is requested for that time.
    pub(crate) next_report: Option<Timestamp>,
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
    /// Forgets the live objects: their cluster shows another past than the one that was seen. What they were judged by, and
    /// the versions of what was written, mean nothing there.
    pub(crate) fn forget_cluster(&mut self) {
        self.is_settled = false;
        self.judge = JudgeState::default();
        self.health = HealthState::default();
        self.operation.written.lock().clear();
        if let Some(active) = &mut self.operation.active {
            active.plan_again();
        }
    }

    /// Returns the memory that a sync and its failures took.
    pub(crate) fn shrink(&mut self) {
        self.judge.shrink();
        self.health.shrink();
    }
}
