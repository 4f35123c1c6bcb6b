//! An operation that has ended and is not written to the Application yet.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use plumb_core::status::{AppStatus, settles_soon, settling_time};

use super::active::ActiveOperation;

/// An operation that has ended.
pub(crate) struct EndedOperation {
    pub(crate) operation: ActiveOperation,
    ended: Instant,
    settling: Duration,
}

impl EndedOperation {
    /// The operation has just ended.
    pub(crate) fn new(operation: ActiveOperation, now: Timestamp) -> Self {
        let took = now.duration_since(operation.record.started_at).unsigned_abs();
        Self { operation, ended: Instant::now(), settling: settling_time(took) }
    }

    /// How long the write may still wait for the app to become healthy.
    pub(crate) fn may_wait(&self) -> Duration {
        self.settling.saturating_sub(self.ended.elapsed())
    }

    /// True if waiting a moment lets one request write both the end and the health that follows.
    pub(crate) fn settles_soon(&self, status: &AppStatus) -> bool {
        settles_soon(self.operation.is_automated(), self.operation.record.phase, status)
            && !self.may_wait().is_zero()
    }
}
