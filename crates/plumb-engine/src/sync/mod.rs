//! Syncs an app: starts an operation, plans it, carries out its steps.

pub(crate) mod advance;
pub(crate) mod automation;
pub(crate) mod executor;
pub(crate) mod observe;
pub mod tombstones;
pub(crate) mod transient_errors;
