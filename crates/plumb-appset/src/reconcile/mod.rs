//! What a set writes: Applications to create, change and delete, and its own status.
//!
//! [`decide`] takes what was generated and what exists. It decides everything before anything is written, so a process
//! that is killed in between decides the same again.

mod policy;
mod budget;
mod ownership;
mod destinations;
mod validate;
mod ignored;
mod update;
mod requeue;
mod steps;
mod rollout;
mod conditions;
mod removal;
mod decide;

pub use budget::{BUDGET_ANNOTATION, DeletionBudget};
pub use conditions::{Failure, conclude, unreadable_conditions};
pub use decide::{Before, Decision, Situation, Write, decide};
pub use destinations::Destinations;
pub use ownership::{is_owned_by, owner_of};
pub use policy::{Policy, Rules};
pub use removal::{Removal, RemovalStep, remove};
pub use requeue::requeue_after;
pub use validate::wrong_names;
