//! The loop: gather → decide → act, at most one run per app.
//!
//! The modules are listed from the bottom up: each uses only modules above it. `cargo xtask tidy` checks it.
//! The engine gathers and acts. It does not judge: every judgement is a function of `plumb-core`.

pub mod queue;
mod metrics;
mod events;
mod config;
mod cluster;
mod apps;
mod sources;
mod health;
mod compare;
mod operation;
mod state;
mod engine;
mod status;
mod sync;
mod deletion;
mod reconcile;
mod triggers;
mod runtime;
mod inspect;

pub use cluster::witness::WitnessPlace;
pub use engine::Options;
pub use events::event::EventFilter;
pub use inspect::{Desk, DeskError, DeskOptions, Judged, Sheet, Wanted};
pub use metrics::series::{Family, MetricKind, Sample};
pub use plumb_render::Tools;
pub use runtime::handle::{Handle, Stage};
pub use runtime::lease_identity::identity;
pub use runtime::run::{StartError, run};
pub use sync::tombstones;
pub use triggers::webhook::{Push, short_name};
