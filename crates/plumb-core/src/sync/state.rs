//! The state of a sync.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::result::Results;
use super::{OperationPhase, ResourceResult};
use crate::plan::{Group, Plan, Step, StepId};

/// The state of a sync. What must survive a restart is in the results; the rest is about commands that are
/// under way in this process.
#[derive(Clone, Debug)]
pub struct SyncState {
    pub(super) plan: Arc<Plan>,
    pub(super) limits: SyncLimits,
    pub(super) results: Results,
    /// Commands that move a step along and have not been answered.
    pub(super) in_flight: BTreeSet<StepId>,
    /// Deletions of old hooks among them: their answer is not recorded as a result.
    pub(super) making_room: BTreeSet<StepId>,
    /// Clean-up commands that have not been answered; they hold up only the end.
    pub(super) cleaning: BTreeSet<StepId>,
    /// Hooks whose finalizer was removed, or could not be.
    pub(super) released: BTreeSet<StepId>,
    /// Old hook objects that are being deleted and whose finalizer was removed.
    pub(super) freed: BTreeSet<StepId>,
    /// Hooks whose object was deleted at the end, or could not be.
    pub(super) cleaned: BTreeSet<StepId>,
    /// How often cleaning a hook up was refused.
    pub(super) refused: BTreeMap<StepId, u8>,
    /// When steps were applied, for the wait on new kinds.
    pub(super) applied_at: BTreeMap<StepId, Timestamp>,
    /// It is being stopped: why, for the operation's message.
    pub(super) stopping: Option<String>,
}

/// Limits on a sync, from the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncLimits {
    /// The longest an operation may take, retries included; `None` is without end.
    pub timeout: Option<Duration>,
    /// How long to wait for a new CRD to be served before continuing anyway.
    pub crd_wait: Duration,
}

impl Default for SyncLimits {
    fn default() -> Self {
        Self { timeout: None, crd_wait: Duration::from_secs(3) }
    }
}

impl SyncState {
    /// A sync that begins.
    pub fn start(plan: Arc<Plan>, limits: SyncLimits) -> Self {
        Self::resume(plan, limits, Vec::new())
    }

    /// A sync that continues after a restart: the plan built again (with the same [`crate::plan::OperationMark`]),
    /// and the results that were recorded.
    pub fn resume(plan: Arc<Plan>, limits: SyncLimits, recorded: Vec<ResourceResult>) -> Self {
        let mut results = Results::default();
        for result in recorded {
            results.set(result);
        }
        Self {
            plan,
            limits,
            results,
            in_flight: BTreeSet::new(),
            making_room: BTreeSet::new(),
            cleaning: BTreeSet::new(),
            released: BTreeSet::new(),
            freed: BTreeSet::new(),
            cleaned: BTreeSet::new(),
            refused: BTreeMap::new(),
            applied_at: BTreeMap::new(),
            stopping: None,
        }
    }

    /// What is carried out.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// For `operationState.syncResult.resources`.
    pub fn results(&self) -> &[ResourceResult] {
        self.results.list()
    }

    /// Is a command unanswered?
    pub fn is_busy(&self) -> bool {
        !self.in_flight.is_empty() || !self.cleaning.is_empty()
    }

    pub(super) fn progress(&self, step: &Step) -> Progress {
        if self.in_flight.contains(&step.id) {
            return Progress::InFlight;
        }
        match self.results.get(&step.id).map(|result| result.phase) {
            None => Progress::Pending,
            Some(OperationPhase::Running | OperationPhase::Terminating) => Progress::Running,
            Some(OperationPhase::Succeeded) => Progress::Succeeded,
            Some(OperationPhase::Failed | OperationPhase::Error) => Progress::Failed,
        }
    }

    pub(super) fn any(&self, group: &Group, progress: Progress) -> bool {
        group.steps.iter().any(|step| self.progress(step) == progress)
    }
}

/// The progress of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// Not begun.
    Pending,
    /// A command is under way.
    InFlight,
    /// Applied, not healthy yet.
    Running,
    /// Done.
    Succeeded,
    /// Failed.
    Failed,
}
