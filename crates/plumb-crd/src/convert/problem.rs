//! What is wrong with a spec.

use std::fmt;

/// A part of a spec that plumb (and Argo CD) cannot use. It becomes an `InvalidSpecError` condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecProblem {
    /// The field, such as `spec.sources[1].helm.version`.
    pub field: String,
    /// The message, complete without the field. It is Argo CD's own message if there is one.
    pub message: String,
}

impl SpecProblem {
    pub(super) fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }
}

impl fmt::Display for SpecProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
