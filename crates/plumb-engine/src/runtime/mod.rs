//! Starts the engine and keeps it running.

pub(crate) mod clusters;
pub(crate) mod gauges;
pub(crate) mod handle;
pub(crate) mod lease_identity;
pub(crate) mod memory_trim;
pub(crate) mod other_controllers;
pub(crate) mod run;
