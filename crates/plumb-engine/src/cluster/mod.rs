//! The destination clusters: which one an app names, how to read it, how to write to it.

pub(crate) mod clusters;
pub(crate) mod destination;
mod label_selector;
pub(crate) mod mutators;
pub(crate) mod registration;
pub(crate) mod run_slots;
pub(crate) mod schemas;
pub(crate) mod waiting_apps;
pub(crate) mod witness;
