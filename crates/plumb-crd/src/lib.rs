//! The wire format: the objects of `argoproj.io/v1alpha1` and `plumb.dev/v1alpha1`, their custom resource definitions,
//! and their conversion to the types of the core.
//!
//! Reading is tolerant where Argo CD is: absent, `null` and empty mean the same, and unknown fields are ignored. It is
//! strict elsewhere: a value of the wrong type is an error that names its field. Writing is exact: the field names, the
//! required fields even when empty, times in whole seconds of UTC.
//!
//! This crate has no client: it converts JSON to values and values to JSON. A module uses only modules that are listed
//! above it.

pub mod wire;
pub mod yaml;
pub mod annotations;
pub mod metadata;
pub mod application;
pub mod application_set;
pub mod project;
pub mod convert;
pub mod settings;
pub mod drift_report;
pub mod crds;
mod json_schema;
pub mod install;
pub mod witness;

pub use application::Application;
pub use application_set::ApplicationSet;
pub use convert::{
    SpecProblem, source_with_overrides, to_app, to_leaving_app, to_operation, to_project_rules,
    written_operation_sources, written_sources,
};
pub use crds::crds;
pub use drift_report::{DriftFinding, DriftReport, UnhealthyObject};
pub use json_schema::{json_schema, schema_kinds};
pub use metadata::Metadata;
pub use project::AppProject;
pub use wire::{Wire, WireError};
