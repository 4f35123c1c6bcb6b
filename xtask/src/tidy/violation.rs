//! One broken rule, as a line of the command's output.

use std::fmt;

/// Where a rule is broken, and what to do about it.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Violation {
    /// The rule's name; filled in by the runner.
    pub(super) rule: &'static str,
    /// A file, a crate, or an item in a file. Has no line number, so that it can be named in the baseline.
    pub(super) place: String,
    /// What is wrong, and what to do.
    pub(super) what: String,
}

impl Violation {
    pub(super) fn new(place: impl Into<String>, what: impl Into<String>) -> Self {
        Self { rule: "", place: place.into(), what: what.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.rule, self.place, self.what)
    }
}
