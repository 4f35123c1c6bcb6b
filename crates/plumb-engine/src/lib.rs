//! The loop: gather → decide → act, at most one run per app.
//!
//! The modules are listed from the bottom up: each uses only modules above it. `cargo xtask tidy` checks it.
//! The engine gathers and acts. It does not judge: every judgement is a function of `plumb-core`.

mod queue;
mod pushes;
mod set_signals;
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
mod app_run;
mod status;
mod sync;
mod deletion;
mod reconcile;
mod appsets;
mod triggers;
mod runtime;
mod inspect;

pub use config::options::{Options, RunsIn, WitnessPlace};
pub use events::event::EventFilter;
pub use inspect::{
    DryRuns, InspectError, InspectOptions, Inspector, Judged, Progress, RenderAt, RenderedApp, SurveyOptions,
    Surveyed, method_in_use, survey,
};
pub use metrics::series::{Family, MetricKind, Sample};
pub use plumb_appset::{Provider, RequestsOf, host};
pub use plumb_git::CommitDetails;
pub use plumb_heap::limit_arenas;
pub use plumb_kube::FaultLog;
pub use plumb_render::Tools;
pub use pushes::push::{Push, short_name};
pub use runtime::first_contact::wait_until_reachable;
pub use runtime::handle::{Handle, Stage, WebhookRules};
pub use runtime::lease_identity::identity;
pub use runtime::run::run;
pub use runtime::served::{
    AppFollower, AppNews, ClusterFacts, ClusterNews, KnownApp, Leader, RenderedManifests,
};
pub use runtime::served_sources::{AppWindow, ChartFacts, Refs};
pub use runtime::served_tree::{AppTree, TreeNode};
pub use runtime::start_error::StartError;
pub use sync::tombstones;
