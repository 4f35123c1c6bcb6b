//! The loop: gather → decide → act, at most one run per app.
//!
//! [`run()`] starts it. A run for one app is [`reconcile`]: it checks the spec, gathers what Git asks
//! ([`sources`]), compares it with the cluster ([`compare`], [`evidence`]), moves the operation along
//! ([`operate`], [`execute`]) and writes down what was seen ([`write`]). What it must not do: judge. Every
//! judgement is a function of `plumb-core`.

mod admission;
mod claims;
mod cluster;
mod compare;
mod deletion;
mod engine;
mod evidence;
mod execute;
mod health;
mod memory;
mod merge_patch;
mod operate;
mod operation;
mod project;
pub mod queue;
mod reconcile;
mod registry;
mod reports;
mod run;
mod schemas;
mod settings;
mod sight;
mod sources;
pub mod tombstones;
mod witness;
mod world;
mod write;

pub use engine::Options;
pub use run::{StartError, run};
pub use witness::WitnessPlace;
