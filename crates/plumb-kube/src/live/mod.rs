//! What the cluster holds: one watch per kind, everything indexed, and only what an app tracks or wants (and
//! pods, whose state explains the rest) kept whole.

mod changes;
mod feeder;
mod marks;
mod pack;
mod record;
mod refs;
mod state;
mod store;
mod supervise;

pub use changes::Changes;
pub use marks::owner_by;
pub use record::{Change, Node, Origin, Role, Touched, Uid};
pub use store::{LiveOptions, LiveStore, OwnerOf, Snapshot, StoreSize, never_watched};
