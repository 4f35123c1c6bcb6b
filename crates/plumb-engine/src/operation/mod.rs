//! An operation under way, from the request in `operation` to `status.operationState`.

pub(crate) mod active;
pub(crate) mod ended;
pub(crate) mod state;
