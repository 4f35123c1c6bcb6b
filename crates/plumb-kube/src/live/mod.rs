//! What the cluster holds: one watch per kind, everything indexed, and only what an app tracks or wants (and
//! pods, whose state explains the rest) kept whole.

mod record;
mod refs;
mod state;
mod changes;
mod options;
mod marks;
mod core;
mod feeder;
mod supervise;
mod store;
mod snapshot;
mod queries;

pub use changes::Changes;
pub use marks::owner_by;
pub use options::{LiveOptions, OwnerOf, never_watched};
pub use queries::StoreSize;
pub use record::{Change, Node, Origin, Role, Touched, Uid};
pub use snapshot::{AllListed, Snapshot};
pub use store::LiveStore;
