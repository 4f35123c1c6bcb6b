//! The one gate: every write passes it, and there is no other way to write.
//!
//! A write needs a permit. A permit comes from a check of facts that the engine states: whether the app is
//! paused, whether its project permits the object, which app the object belongs to. A deletion also needs a
//! ground with its proof, and a tombstone where Git could not restore the object. When it sends, the gate
//! checks that the lease is still held and that the object is the one of the permit. A request that is in
//! flight when the lease is lost is dropped.

mod refusal;
mod permit;
mod deletion;
mod target;
mod own_write;
mod send;

pub use deletion::{DeletePermit, DeletionGround, TombstoneKept};
pub use own_write::{OwnWrite, PUSHES_CONFIG_MAP, STATE_CONFIG_MAP, TOMBSTONE_PREFIX, TOMBSTONE_TYPE};
pub use permit::{Ownership, ProjectAnswer, WriteFacts, WritePermit};
pub use refusal::{Refusal, WriteError};
pub use send::Gate;
