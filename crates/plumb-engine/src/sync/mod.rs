//! Syncs an app: finds or starts an operation, plans it, carries out its steps.

pub(crate) mod advance;
pub(crate) mod automation;
mod carry_out;
pub(crate) mod executor;
pub(crate) mod observe;
mod plan;
pub(crate) mod requested;
mod sibling_apps;
pub mod tombstones;
mod transient_errors;
