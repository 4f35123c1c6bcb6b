//! What plumb wrote to the cluster before, object by object, and what follows from it.
//!
//! The engine records each apply. This module answers from the records: what was applied last, whether a newer
//! commit changes anything, and whether a Job that is gone had finished.

mod history;
mod jobs;

#[cfg(test)]
mod tests;

pub use history::{
    AttemptRecord, AttemptResult, FinishedJob, LastApply, LastAttempt, Rendering, WriteHistory,
};
pub use jobs::{EVENT_RETENTION, LastSeenJob, finished, has_finished_unseen, is_job};
