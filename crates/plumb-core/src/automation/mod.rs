//! When a sync starts by itself: auto-sync, self-heal, taking over what another app let go.
//!
//! [`decide`] is called after every comparison and answers with one decision and its reason. The memory of
//! heals is a [`HealLedger`]: it spaces them out, and ends a tug of war with another writer.

mod decide;
mod ledger;

#[cfg(test)]
mod tests;

pub use decide::{Decision, Evaluation, Idle, Item, LastOperation, Situation, StartKind, SyncStart, decide};
pub use ledger::{HealContext, HealLedger, HealLimits, HealState, Stopped};
