//! When a sync starts without a user: auto-sync, self-heal, and taking over an object that another app no longer renders.
//!
//! [`decide`] is called after every comparison and returns one decision and its reason. Earlier
//! heals are kept in a [`HealLedger`]: it delays repeated heals, and stops when another writer keeps undoing them.

mod decide;
mod item;
mod last_sync;
mod ledger;

#[cfg(test)]
mod tests;

pub use decide::{Decision, Evaluation, Idle, Item, LastOperation, Situation, StartKind, SyncStart, decide};
pub use item::{DesiredFacts, ItemFacts};
pub use last_sync::{LastSync, sync_follows};
pub use ledger::{HealContext, HealLedger, HealLimits, HealState, Stopped};
