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
mod desk;
mod engine;
mod error_text;
mod events;
mod evidence;
mod execute;
mod fleet;
mod follow;
mod handle;
mod health;
mod holder;
mod leaving;
mod links;
mod memory;
mod merge_patch;
mod metrics;
mod moves;
mod neighbours;
mod operate;
mod operation;
mod orphans;
mod packed;
mod patience;
mod poll;
mod project;
mod projects;
mod push;
pub mod queue;
mod recall;
mod reconcile;
mod registry;
mod reports;
mod rest;
mod run;
mod schemas;
mod seats;
mod settings;
mod shelf;
mod sight;
mod sources;
mod tally;
mod too_early;
pub mod tombstones;
mod updates;
mod verdicts;
mod windows;
mod witness;
mod world;
mod write;

pub use desk::{Desk, DeskError, DeskOptions, Judged, Sheet, Wanted};
pub use engine::Options;
pub use events::EventFilter;
pub use handle::{Handle, Stage};
pub use holder::identity;
pub use metrics::{Family, MetricKind, Sample};
pub use plumb_render::Tools;
pub use push::{Push, short_name};
pub use run::{StartError, run};
pub use witness::WitnessPlace;
