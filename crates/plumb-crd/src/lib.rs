//! What stands on the wire: the objects of `argoproj.io/v1alpha1` and `plumb.dev/v1alpha1`, their custom
//! resource definitions, and their way into the core's types.
//!
//! Reading is tolerant where Argo CD is (absent, `null` and empty mean the same, unknown fields are passed
//! over) and exact where it is not: a value of the wrong type is an error that names its field. Writing is
//! exact: the names, the required fields even when empty, times in whole seconds of UTC.
//!
//! This crate knows no client: it turns JSON into values and values into JSON.

pub mod wire;

pub mod application;
pub mod application_set;
pub mod convert;
pub mod crds;
pub mod drift_report;
pub mod install;
pub mod metadata;
pub mod project;
pub mod settings;
pub mod witness;
pub mod yaml;

pub use application::Application;
pub use application_set::ApplicationSet;
pub use convert::{
    SpecProblem, source_with_overrides, to_app, to_leaving_app, to_operation, to_project_rules,
    written_operation_sources, written_sources,
};
pub use crds::crds;
pub use drift_report::{DriftFinding, DriftReport, IllObject};
pub use metadata::Metadata;
pub use project::AppProject;
pub use wire::{Wire, WireError};
