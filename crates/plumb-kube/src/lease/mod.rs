//! Leader election with a `coordination.k8s.io` Lease and a fence: one process writes at a time.
//!
//! The holder renews the Lease. Every other process waits until it has seen the same state of it for the
//! Lease's whole duration *by its own clock* (the clocks of two machines need not agree). The fence closes at
//! a deadline well before that moment, so a holder that cannot renew stops writing before another process
//! starts.
//!
//! A process that loses the Lease and gets it again begins a new term. The fence of the earlier term stays
//! closed: what was read in that term may have been changed by another leader since.

mod wire;
mod fence;
mod keeper;

pub use fence::{Fence, FenceLost, Leadership};
pub use keeper::{LeaseKeeper, LeaseOptions, LeaseReleaser};
