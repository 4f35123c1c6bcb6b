//! An operation under way, from the request to `status.operationState`.

pub(crate) mod active;
