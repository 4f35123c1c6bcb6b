//! What starts a run of an app.

pub(crate) mod initial_lists;
pub(crate) mod poll;
pub(crate) mod sync_windows;
pub(crate) mod watches;
pub(crate) mod webhook;
