//! Tombstones: copies of deleted objects, so that `plumb undo` can restore them.

mod secret;
mod store;

pub use secret::{APP_LABEL, APP_NAMESPACE_LABEL, StoredTombstone, TombstoneNote, notes, read_all, secrets};
pub(crate) use store::sweep;
pub(super) use store::{is_copy_waived, write};
