//! Deleting an app: `PreDelete` hooks, its objects from the last wave to the first, `PostDelete` hooks, finalizers.
//!
//! [`next`] keeps no state: it derives the next step from the remaining finalizers and the live objects. Call
//! it again when something changed.

mod cascade;
mod decide;
mod finalizers;
mod hooks;
mod step;

#[cfg(test)]
mod tests;

pub use decide::next;
pub use finalizers::{
    CASCADE, CASCADE_BACKGROUND, CASCADE_FOREGROUND, FINALIZERS, POST_DELETE, POST_DELETE_CLEANUP,
    PRE_DELETE, PRE_DELETE_CLEANUP, finalizers_for,
};
pub use hooks::hook_keys;
pub use step::{Deletion, DeletionCommand, DeletionStep};
