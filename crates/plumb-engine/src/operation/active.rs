//! An operation in progress: from `operation` of the Application, through the state machine of the core, to
//! `status.operationState`.

use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;
use plumb_core::app::{Initiator, Operation};
use plumb_core::automation::SyncStart;
use plumb_core::plan::{LastSync, OperationMark, StepId, SyncPhase, SyncRequest};
use plumb_core::status::OperationRecord;
use plumb_core::sync::{OperationPhase, PlannedKinds, ResourceResult, ResultCode, SyncState};
use plumb_crd::application as wire;

use crate::sources::gathered::{Gathered, StoredGathered};
use crate::sources::parked::Parked;

/// A prune that waits for other apps to be gathered, since one of them may ask for the object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SiblingWait {
    pub(crate) since: Instant,
    /// When runs of the others were last requested.
    pub(crate) asked_at: Instant,
}

/// An operation in progress.
pub(crate) struct ActiveOperation {
    /// As the user or the automation requested it.
    pub(crate) wire: wire::Operation,
    /// The validated request.
    pub(crate) asked: Operation,
    /// Phase, message, times and results.
    pub(crate) record: OperationRecord,
    /// When it began. The start in its record is later if another operation began in the same second.
    pub(crate) began_at: Timestamp,
    /// When a failed attempt is retried.
    pub(crate) retry_at: Option<Timestamp>,
    /// What it syncs. Resolved once, so that a new commit during the operation changes nothing. Compressed: an operation
    /// may wait for hours, and many may wait at the same time.
    pub(crate) gathered: Option<Arc<StoredGathered>>,
    /// Set after a failed attempt whose retry resolves Git again: it syncs the current commit, not the requested one.
    pub(crate) follows_git: bool,
    /// When it first asked the sources that it syncs, in this attempt.
    pub(crate) asked_at: Option<Instant>,
    /// The request for these sources that a run has yielded to.
    pub(crate) parked: Parked,
    /// The wait of its prunes for other apps, in this attempt.
    pub(crate) sibling_wait: Option<SiblingWait>,
    /// Revisions that an earlier process resolved for it.
    pub(crate) pinned: Vec<String>,
    /// The last full sync before it; `None` before its first plan. Later its own record is in the place of that one's.
    pub(crate) synced_before: Option<LastSync>,
    /// The kinds that the last attempt was planned with.
    pub(crate) kinds: Option<PlannedKinds>,
    /// Progress of the sync; `None` before the plan was made.
    pub(crate) state: Option<SyncState>,
}

impl ActiveOperation {
    /// An operation that starts now; `last` is the start of the previous one.
    pub(crate) fn begin(
        wire: wire::Operation,
        asked: Operation,
        now: Timestamp,
        last: Option<Timestamp>,
    ) -> Self {
        let record = OperationRecord::begun(now, last, asked.runs_hooks());
        Self {
            wire,
            asked,
            record,
            began_at: now,
            retry_at: None,
            gathered: None,
            follows_git: false,
            asked_at: None,
            parked: Parked::default(),
            sibling_wait: None,
            pinned: Vec::new(),
            synced_before: None,
            kinds: None,
            state: None,
        }
    }

    /// An operation that another process started. If it was waiting for a retry, it is retried without a further wait.
    pub(crate) fn resume(wire: wire::Operation, asked: Operation, state: &wire::OperationState) -> Self {
        let result = state.sync_result.as_deref();
        let pinned = result.map(|result| result.all_revisions().to_vec());
        let results =
            result.map(|result| result.resources.iter().filter_map(result_of).collect()).unwrap_or_default();
        let record = OperationRecord {
            phase: OperationPhase::from_name(&state.phase).unwrap_or(OperationPhase::Running),
            message: state.message.clone(),
            started_at: state.started_at,
            finished_at: None,
            retries: u32::try_from(state.retry_count).unwrap_or(0),
            results: if state.finished_at.is_some() { Vec::new() } else { results },
        };
        let pinned = pinned.unwrap_or_default().into_iter().filter(|revision| !revision.is_empty()).collect();
        let mut active = Self {
            wire,
            asked,
            began_at: record.started_at,
            record,
            retry_at: None,
            gathered: None,
            follows_git: false,
            asked_at: None,
            parked: Parked::default(),
            sibling_wait: None,
            pinned,
            synced_before: None,
            kinds: None,
            state: None,
        };
        if state.finished_at.is_some() && active.resolves_anew() {
            active.follows_git = true;
            active.pinned.clear();
        }
        active
    }

    /// True if the next attempt resolves Git again: with `retry.refresh`, or if the operation names no revision.
    pub(crate) fn resolves_anew(&self) -> bool {
        self.asked.retry.refresh || self.asked.revisions.is_empty()
    }

    /// Starts the next attempt.
    pub(crate) fn retry(&mut self) {
        self.record = self.record.retried();
        self.retry_at = None;
        self.state = None;
        self.asked_at = None;
        self.sibling_wait = None;
        if self.resolves_anew() {
            self.follows_git = true;
            self.gathered = None;
            self.pinned.clear();
        }
    }

    /// Forgets the plan, and renders the same revisions again: what they were planned with has changed.
    pub(crate) fn plan_again(&mut self) {
        self.pinned = self.revisions();
        self.gathered = None;
        self.state = None;
        self.asked_at = None;
        self.sibling_wait = None;
    }

    /// True if a user requested it.
    pub(crate) fn is_by_user(&self) -> bool {
        !self.is_automated()
    }

    /// True if the automation requested it.
    pub(crate) fn is_automated(&self) -> bool {
        self.asked.initiated_by == Initiator::Automated
    }

    /// True if it syncs the whole app and is not a dry run.
    pub(crate) fn is_full(&self) -> bool {
        self.asked.selected.is_none() && !self.asked.dry_run
    }

    /// The part that shapes the plan.
    pub(crate) fn request(&self) -> SyncRequest {
        SyncRequest::of(&self.asked)
    }

    /// The operation and its attempt, as hooks are annotated.
    pub(crate) fn mark(&self, app_uid: &str) -> OperationMark {
        let revision = self.revisions().first().cloned().unwrap_or_default();
        self.record.mark(app_uid, revision)
    }

    /// What it syncs, decompressed.
    pub(crate) fn load(&self) -> Option<Arc<Gathered>> {
        self.gathered.as_ref().and_then(StoredGathered::load)
    }

    /// The revisions that it syncs to, one per source.
    pub(crate) fn revisions(&self) -> Vec<String> {
        self.gathered.as_ref().map_or_else(|| self.pinned.clone(), |gathered| gathered.revisions.clone())
    }

    /// `status.operationState`.
    pub(crate) fn to_wire(&self, spec: &wire::ApplicationSpec) -> wire::OperationState {
        let (source, sources) = match &self.wire.sync {
            Some(sync) if sync.source.is_some() || !sync.sources.is_empty() => {
                (sync.source.clone(), sync.sources.clone())
            }
            _ if spec.sources.is_empty() => (spec.source.clone(), Vec::new()),
            _ => (None, spec.sources.clone()),
        };
        let revisions = self.revisions();
        let is_multi = !sources.is_empty();
        let managed = spec.sync_policy.as_ref().and_then(|policy| policy.managed_namespace_metadata.clone());
        let sync_result = wire::SyncOperationResult {
            resources: self.record.results.iter().map(wire_result).collect(),
            revision: if is_multi { String::new() } else { revisions.first().cloned().unwrap_or_default() },
            source,
            sources,
            revisions: if is_multi { revisions } else { Vec::new() },
            managed_namespace_metadata: managed,
        };
        wire::OperationState {
            operation: self.wire.clone(),
            phase: self.record.phase.name().to_owned(),
            message: self.record.message.clone(),
            sync_result: Some(Box::new(sync_result)),
            started_at: self.record.started_at,
            finished_at: self.record.finished_at,
            retry_count: i64::from(self.record.retries),
        }
    }
}

/// The operation that the automation starts.
pub(crate) fn automated(
    start: &SyncStart,
    spec: &wire::ApplicationSpec,
    revisions: &[String],
) -> wire::Operation {
    let is_multi = !spec.sources.is_empty();
    let policy = spec.sync_policy.as_ref();
    let resources = start.selected.iter().flatten().map(|selector| wire::SyncOperationResource {
        group: selector.group.clone(),
        kind: selector.kind.clone(),
        name: selector.name.clone(),
        namespace: selector.namespace.clone().unwrap_or_default(),
    });
    wire::Operation {
        sync: Some(Box::new(wire::SyncOperation {
            revision: if is_multi { String::new() } else { revisions.first().cloned().unwrap_or_default() },
            revisions: if is_multi { revisions.to_vec() } else { Vec::new() },
            prune: start.prune,
            resources: resources.collect(),
            sync_options: policy.map(|policy| policy.sync_options.clone()).unwrap_or_default(),
            auto_heal_attempts_count: i64::from(start.heal_attempts),
            ..wire::SyncOperation::default()
        })),
        initiated_by: wire::OperationInitiator { automated: true, ..wire::OperationInitiator::default() },
        retry: policy.and_then(|policy| policy.retry.clone()).unwrap_or_else(|| {
            // Argo CD's default for automated syncs.
            wire::RetryStrategy { limit: 5, ..wire::RetryStrategy::default() }
        }),
        ..wire::Operation::default()
    }
}

/// Keeps a user's request to terminate an operation that arrived while plumb was writing its progress.
pub(crate) fn keep_request_to_end(before: Option<&wire::OperationState>, after: &mut wire::OperationState) {
    let terminating = OperationPhase::Terminating;
    let is_requested = before
        .is_some_and(|before| before.phase() == Some(terminating) && before.started_at == after.started_at);
    if is_requested && after.phase() == Some(OperationPhase::Running) {
        terminating.name().clone_into(&mut after.phase);
    }
}

fn wire_result(result: &ResourceResult) -> wire::ResourceResult {
    let key = &result.id.key;
    wire::ResourceResult {
        group: key.group.clone(),
        version: result.version.clone(),
        kind: key.kind.clone(),
        namespace: key.namespace_or_empty().to_owned(),
        name: key.name.clone(),
        status: result.status.map(|status| status.name().to_owned()).unwrap_or_default(),
        message: result.message.clone(),
        hook_type: if result.is_hook { result.id.phase.name().to_owned() } else { String::new() },
        hook_phase: result.phase.name().to_owned(),
        sync_phase: result.id.phase.name().to_owned(),
        images: result.images.clone(),
    }
}

/// A result that an earlier process, or Argo CD, recorded; `None` if it is not valid.
fn result_of(result: &wire::ResourceResult) -> Option<ResourceResult> {
    let phase = SyncPhase::from_name(&result.sync_phase).unwrap_or(SyncPhase::Sync);
    Some(ResourceResult {
        id: StepId { phase, key: result.key() },
        version: result.version.clone(),
        status: ResultCode::from_name(&result.status),
        message: result.message.clone(),
        is_hook: !result.hook_type.is_empty(),
        phase: OperationPhase::from_name(&result.hook_phase)?,
        images: result.images.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(phase: &str, started_at: &str) -> wire::OperationState {
        wire::OperationState {
            phase: phase.to_owned(),
            started_at: started_at.parse().unwrap(),
            ..wire::OperationState::default()
        }
    }

    #[test]
    fn progress_does_not_undo_a_request_to_terminate() {
        const THEN: &str = "2026-01-01T00:00:00Z";
        const LATER: &str = "2026-01-01T00:01:00Z";
        for (before, after, expected) in [
            (state("Terminating", THEN), state("Running", THEN), "Terminating"),
            (state("Running", THEN), state("Running", THEN), "Running"),
            // The operation has ended.
            (state("Terminating", THEN), state("Failed", THEN), "Failed"),
            // The request was for another operation.
            (state("Terminating", THEN), state("Running", LATER), "Running"),
        ] {
            let mut after = after;
            keep_request_to_end(Some(&before), &mut after);
            assert_eq!(after.phase, expected);
        }
    }
}
