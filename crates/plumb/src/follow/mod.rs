//! Watching one Application until it was refreshed, an operation has ended, or it has a state.

pub(crate) mod operation;
pub(crate) mod refresh;
pub(crate) mod state;
