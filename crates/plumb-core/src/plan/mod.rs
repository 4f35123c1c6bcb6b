//! What a sync will do, as a value: phases, waves, steps, each with its reason and what it waits for.
//!
//! Decides the order, which objects are written how, which are deleted and under which guard. It knows nothing
//! of time passing, of health, or of how a step is carried out: [`crate::sync`] moves a plan along, and the
//! engine executes its steps. A plan is printable ([`rows`]), serialisable and comparable; a dry run stops here.

mod approval;
mod build;
mod budget;
mod data;
mod destination;
mod history;
mod input;
mod mark;
mod order;
mod proof;
mod request;
mod step;
mod table;
mod tombstone;
mod tombstone_limits;

#[cfg(test)]
pub(crate) mod tests;

pub use crate::health::HOOK_FINALIZER;
pub use approval::{approval, approval_of, approves};
pub use budget::PruneBudget;
pub use build::build;
pub use data::{data_lost_with, never_deleted, others_lose_with};
pub use destination::lacks_metadata;
pub use history::{CommitPair, LastSync, ReplacedHistory, SourceAtSync, commit_pairs};
pub use input::{
    LiveFacts, NamespaceFacts, ObjectFacts, Owner, PlanInput, Refusal, RefusedObject, ServedVersions,
};
pub(crate) use mark::named;
pub use mark::{OPERATION_ANNOTATION, OperationMark};
pub use order::{Stage, kind_rank};
pub use proof::{DeletionProof, NoProof};
pub use request::{AppOptions, SyncRequest};
pub use step::{
    Action, ConfirmReason, Group, Hook, HowToApply, Payload, Plan, PruneGuard, Skip, Step, StepId, SyncPhase,
    WaitsFor, Why,
};
pub use table::{Row, row_of, rows};
pub use tombstone::{Tombstone, TombstoneReason};
pub use tombstone_limits::{KeptTombstone, TombstoneLimits, exceeding};
