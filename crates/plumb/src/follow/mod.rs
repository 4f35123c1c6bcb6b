//! Watching one Application until something has happened to it.

pub(crate) mod operation;
pub(crate) mod refresh;
pub(crate) mod state;
