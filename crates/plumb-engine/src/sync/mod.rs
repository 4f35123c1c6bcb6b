//! Syncs an app: finds or starts an operation, plans it, carries out its steps.

pub(crate) mod advance;
pub(crate) mod automation;
mod carry_out;
pub(crate) mod executor;
mod history;
pub(crate) mod kinds;
pub(crate) mod namespace_contents;
pub(crate) mod observe;
mod plan;
pub(crate) mod requested;
pub(crate) mod sibling_apps;
mod slow_writes;
pub mod tombstones;
mod transient_errors;
