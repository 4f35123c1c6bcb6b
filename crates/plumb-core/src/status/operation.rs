//! `operationState`, from one moment to the next.

use jiff::{SignedDuration, Timestamp};

use crate::app::RetryPolicy;
use crate::plan::{OperationMark, Refusal};
use crate::sync::{AfterFailure, OperationPhase, ResourceResult, Transition, Try, after_failure};

/// The part of `operationState` that moves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationRecord {
    /// `phase`.
    pub phase: OperationPhase,
    /// `message`.
    pub message: String,
    /// `startedAt`; retries do not change it.
    pub started_at: Timestamp,
    /// `finishedAt`; with phase `Running` it means that a retry is waited for.
    pub finished_at: Option<Timestamp>,
    /// `retryCount`.
    pub retries: u32,
    /// `syncResult.resources`.
    pub results: Vec<ResourceResult>,
}

/// What follows a change of the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum After {
    /// It continues.
    GoOn,
    /// It is tried again at this time: build the plan again with [`OperationRecord::retried`].
    RetryAt(Timestamp),
    /// It has ended: write the record and clear `operation` in one patch.
    Ended,
}

impl OperationRecord {
    /// An operation that begins now. Times on the wire have whole seconds, and the mark of hooks is made
    /// from this one, so it is cut here. `last` is when the operation before it began: two that may run hooks
    /// never begin at the same time, so that the hooks of one are never taken for the other's.
    pub fn begun(now: Timestamp, last: Option<Timestamp>, runs_hooks: bool) -> Self {
        let earliest = last.map(whole_seconds).map(|last| {
            let next = last.checked_add(SignedDuration::from_secs(1)).unwrap_or(last);
            // Operations without hooks may start at the same time, but not before an earlier one with hooks.
            if runs_hooks { next } else { last }
        });
        let now = whole_seconds(now);
        Self {
            phase: OperationPhase::Running,
            message: String::new(),
            started_at: earliest.map_or(now, |earliest| earliest.max(now)),
            finished_at: None,
            retries: 0,
            results: Vec::new(),
        }
    }

    /// The mark of its hooks. `app_uid` is the uid of the Application.
    pub fn mark(&self, app_uid: &str, revision: impl Into<String>) -> OperationMark {
        OperationMark {
            app_uid: app_uid.to_owned(),
            started_at: self.started_at,
            retry: self.retries,
            revision: revision.into(),
        }
    }

    /// The record after a transition, and what follows.
    pub fn after(&self, transition: &Transition, policy: &RetryPolicy, now: Timestamp) -> (Self, After) {
        let record = Self { results: transition.state.results().to_vec(), ..self.clone() };
        match transition.phase {
            OperationPhase::Running | OperationPhase::Terminating => {
                let message = transition.message.clone();
                (Self { phase: transition.phase, message, finished_at: None, ..record }, After::GoOn)
            }
            OperationPhase::Succeeded => {
                let message = if record.retries > 0 {
                    format!("{} (retried {} times).", transition.message, record.retries)
                } else {
                    transition.message.clone()
                };
                let finished_at = Some(record.end(now));
                (Self { phase: transition.phase, message, finished_at, ..record }, After::Ended)
            }
            OperationPhase::Failed | OperationPhase::Error => {
                record.failed(transition.phase, &transition.message, transition.may_retry, policy, now)
            }
        }
    }

    /// The record after there was no plan.
    pub fn refused(&self, refusal: &Refusal, policy: &RetryPolicy, now: Timestamp) -> (Self, After) {
        let results = refusal.objects.iter().map(ResourceResult::refused).collect();
        let record = Self { results, ..self.clone() };
        record.failed(OperationPhase::Failed, &refusal.message, true, policy, now)
    }

    /// The record after the engine could not do its work (comparison failed, project missing …).
    pub fn erred(&self, message: &str, policy: &RetryPolicy, now: Timestamp) -> (Self, After) {
        self.clone().failed(OperationPhase::Error, message, true, policy, now)
    }

    /// The record after a newer revision came while a retry was waited for: the newer one is synced instead.
    pub fn superseded(&self, newer: &str, now: Timestamp) -> (Self, After) {
        let message =
            format!("superseded by {newer}, because this one was waiting to be retried: {}", self.message);
        let finished_at = Some(self.end(now));
        (Self { phase: OperationPhase::Failed, message, finished_at, ..self.clone() }, After::Ended)
    }

    /// The record after a user terminated it while nothing was running: it waited for a retry, or there was no plan.
    pub fn terminated(&self, now: Timestamp) -> (Self, After) {
        let message = "Operation terminated".to_owned();
        let finished_at = Some(self.end(now));
        (Self { phase: OperationPhase::Failed, message, finished_at, ..self.clone() }, After::Ended)
    }

    /// The record when the time of a retry has come.
    #[must_use]
    pub fn retried(&self) -> Self {
        Self {
            phase: OperationPhase::Running,
            message: format!("Retrying operation. Attempt #{}", self.retries),
            finished_at: None,
            results: Vec::new(),
            ..self.clone()
        }
    }

    /// Nothing ends before it began.
    fn end(&self, now: Timestamp) -> Timestamp {
        whole_seconds(now).max(self.started_at)
    }

    fn failed(
        self,
        phase: OperationPhase,
        message: &str,
        may_retry: bool,
        policy: &RetryPolicy,
        now: Timestamp,
    ) -> (Self, After) {
        let last = Try { phase, message, retries: self.retries, may_retry, ended_at: self.end(now) };
        let finished_at = Some(last.ended_at);
        match after_failure(&last, policy) {
            AfterFailure::Ended { phase, message } => {
                (Self { phase, message, finished_at, ..self }, After::Ended)
            }
            AfterFailure::Retry { at, retries, message } => {
                let phase = OperationPhase::Running;
                (Self { phase, message, finished_at, retries, ..self }, After::RetryAt(at))
            }
        }
    }
}

fn whole_seconds(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap_or(at)
}
