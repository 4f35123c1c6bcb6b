//! A sync as a state machine: `(plan, observed state, now) → what to do next`.
//!
//! [`next`] is called on every event (a step's outcome, a watch event, a timer) and returns the commands
//! to start and the operation's phase and message. It never waits and reads no clock. Everything it needs
//! after a restart is in `operationState.syncResult.resources` and in the live objects: a killed engine
//! builds the plan again, calls [`SyncState::resume`], and continues.

mod begin;
mod command;
pub mod deletion;
mod dry_run;
mod finish;
mod kinds;
mod message;
mod next;
mod observed;
mod operation;
mod recording;
mod result;
mod settle;
mod siblings;
mod slow_writes;
mod state;

#[cfg(test)]
mod tests;

pub use command::{Command, StepOutcome, Success, Verb};
pub use kinds::{KindChange, PlannedKinds, ServedAs};
pub use message::applied_word;
pub use next::{Transition, next};
pub use observed::{Observation, Observed, ObservedObject, Trouble};
pub use operation::{AfterFailure, Try, after_failure, retry_policy};
pub use recording::{must_be_recorded, newer_revision};
pub use result::{OperationPhase, ResourceResult, ResultCode};
pub use siblings::{PruneDecision, SiblingEnd, SiblingFacts, may_prune};
pub use slow_writes::{SLOW_WRITE, slow_writes};
pub use state::{SyncLimits, SyncState};
