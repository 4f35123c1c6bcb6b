//! From the wire into the core: everything is checked once, here, and every fault names its field.

mod app;
mod duration;
mod operation;
mod project;
mod source;
#[cfg(test)]
mod tests;

use std::fmt;

pub use app::{to_app, to_leaving_app, written_sources};
pub use duration::{NotADuration, parse_go_duration, parse_retry_duration};
pub use operation::{to_operation, written_operation_sources};
pub use project::to_project_rules;
pub use source::source_with_overrides;

/// Something in a spec that plumb (and Argo CD) cannot work with. Becomes an `InvalidSpecError` condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecProblem {
    /// Where, such as `spec.sources[1].helm.version`.
    pub field: String,
    /// In words, complete without the field; the wording of Argo CD where it has one.
    pub message: String,
}

impl SpecProblem {
    fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }
}

impl fmt::Display for SpecProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// `None` for the empty string: on the wire both mean "not set".
fn non_empty(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

/// The words that Go's `strconv.ParseBool` takes for true; everything else is false.
pub(crate) fn is_true(text: &str) -> bool {
    matches!(text, "1" | "t" | "T" | "TRUE" | "true" | "True")
}
