//! Deleting an app: hooks before, its objects from the last wave to the first, hooks after, then it may go.
//!
//! [`next`] keeps no state: it looks at the finalizers that are left and at what lives, and says what to do
//! now. Call it again when something changed.

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
