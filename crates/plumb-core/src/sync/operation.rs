//! What happens after a try of an operation has failed.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::OperationPhase;
use crate::app::{Backoff, RetryPolicy};

/// One failed attempt of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Try<'a> {
    /// `Failed` or `Error`.
    pub phase: OperationPhase,
    /// Its message.
    pub message: &'a str,
    /// How many tries came before it (`retryCount`).
    pub retries: u32,
    /// May it be tried again at all? Not after it was stopped or superseded.
    pub may_retry: bool,
    /// When it ended.
    pub ended_at: Timestamp,
}

/// What happens after a failed try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AfterFailure {
    /// The operation has ended: write the phase and message, and clear `operation`.
    Ended {
        /// `Failed` or `Error`.
        phase: OperationPhase,
        /// For `operationState.message`.
        message: String,
    },
    /// It is tried again: phase `Running` with `finishedAt` set, and at `at` everything starts over with
    /// results cleared and `retryCount` = `retries`.
    Retry {
        /// When.
        at: Timestamp,
        /// The new `retryCount`.
        retries: u32,
        /// For `operationState.message`.
        message: String,
    },
}

/// The effective policy: the operation's own, else the default of its kind (5 tries for automated syncs,
/// none for manual ones).
pub fn retry_policy(policy: Option<&RetryPolicy>, automated: bool) -> RetryPolicy {
    policy.cloned().unwrap_or_else(|| RetryPolicy {
        limit: Some(if automated { 5 } else { 0 }),
        backoff: Backoff::default(),
        refresh: false,
    })
}

/// Try again, or end. The announced wait is the actual one (Argo CD announces one wait and uses
/// the next longer one).
pub fn after_failure(last: &Try<'_>, policy: &RetryPolicy) -> AfterFailure {
    let exhausted = policy.limit.is_some_and(|limit| last.retries >= limit);
    if !last.may_retry || exhausted {
        let message = if last.retries > 0 {
            format!("{} (retried {} times).", last.message, last.retries)
        } else {
            last.message.to_owned()
        };
        return AfterFailure::Ended { phase: last.phase, message };
    }
    let retries = last.retries.saturating_add(1);
    let wait = wait_before(&policy.backoff, last.retries);
    let at = last.ended_at.saturating_add(SignedDuration::try_from(wait).unwrap_or(SignedDuration::MAX));
    let at = at.unwrap_or(Timestamp::MAX);
    let message = format!("{}. Retrying attempt #{retries} at {}.", last.message, clock_time(at));
    AfterFailure::Retry { at, retries, message }
}

/// The wait before try number `n` (from 0).
pub(super) fn wait_before(backoff: &Backoff, n: u32) -> Duration {
    let factor = backoff.factor.max(1).checked_pow(n).unwrap_or(u32::MAX);
    backoff.duration.checked_mul(factor).unwrap_or(backoff.max).min(backoff.max)
}

/// `3:04PM`, in UTC: the form that scripts know.
fn clock_time(at: Timestamp) -> String {
    let time = at.to_zoned(jiff::tz::TimeZone::UTC).time();
    let (hour, half) = match time.hour() {
        0 => (12, "AM"),
        hour @ 1..=11 => (hour, "AM"),
        12 => (12, "PM"),
        hour => (hour.saturating_sub(12), "PM"),
    };
    format!("{hour}:{:02}{half}", time.minute())
}
