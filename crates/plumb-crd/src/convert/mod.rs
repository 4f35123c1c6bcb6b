//! Converts wire types to the types of the core. All checks of a spec are here, and each problem names its field.

mod app;
mod duration;
mod operation;
mod problem;
mod project;
mod source;
#[cfg(test)]
mod tests;
mod text;

pub use app::{to_app, to_leaving_app, written_sources};
pub use duration::{NotADuration, parse_go_duration, parse_retry_duration};
pub use operation::{to_operation, written_operation_sources};
pub use problem::SpecProblem;
pub use project::to_project_rules;
pub use source::source_with_overrides;
pub(crate) use text::is_true;
