//! Starts the engine and keeps it running: the lease, the watches, the workers, the handle for the outside.

mod clusters;
mod deliver_pushes;
pub(crate) mod first_contact;
mod first_project;
mod gauges;
pub(crate) mod handle;
mod lead;
pub(crate) mod lease_identity;
mod memory_trim;
mod other_controllers;
pub(crate) mod run;
pub(crate) mod served;
mod served_project;
pub(crate) mod served_sources;
pub(crate) mod served_tree;
pub(crate) mod start_error;
mod tasks;
mod watchdog;
mod witness_guard;
mod worker;
