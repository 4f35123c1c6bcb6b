//! The one gate: every write passes it, and there is no other way to write.
//!
//! A write needs a permit, and a permit is the result of a judgement over facts that the engine states: is the
//! app paused, does its project allow the object, is the object ours. A deletion needs a proof on top. The
//! gate itself adds what only the moment of sending can tell: that the lease is still held, and that what is
//! sent is what was judged. A request that is in flight when the lease is lost is dropped.

mod refusal;
mod permit;
mod deletion;
mod target;
mod own_write;
mod send;

pub use deletion::{DeletePermit, DeletionGround, TombstoneKept};
pub use own_write::{OwnWrite, TOMBSTONE_PREFIX, TOMBSTONE_TYPE};
pub use permit::{Ownership, ProjectAnswer, WriteFacts, WritePermit};
pub use refusal::{Refusal, WriteError};
pub use send::Gate;
