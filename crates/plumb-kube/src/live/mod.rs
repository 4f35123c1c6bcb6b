//! The live objects of a cluster: one watch per kind and an index of all objects. Objects that an app tracks
//! or wants, and pods, whose state explains that of the workloads, are kept whole.

mod record;
mod refs;
mod state;
mod changes;
mod options;
mod marks;
mod core;
mod rewind;
mod feeder;
mod sample;
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
