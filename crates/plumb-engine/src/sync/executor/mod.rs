//! Executes the steps of a sync.

pub(crate) mod apply;
pub(crate) mod step;
