//! One finding.

use super::{LintRule, Severity};
use crate::desired::Origin;
use crate::object::{FieldPath, ObjectKey};

/// Something that a rule found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LintFinding {
    /// The rule.
    pub rule: LintRule,
    /// How bad it is.
    pub severity: Severity,
    /// The app.
    pub app: String,
    /// The object; `None` if it is about the app, or about a document that is no object.
    pub key: Option<ObjectKey>,
    /// The fields; empty if it is about the whole object.
    pub fields: Vec<FieldPath>,
    /// File and line, as far as they are known.
    pub origin: Option<Origin>,
    /// What is wrong. Never a value of a Secret.
    pub message: String,
    /// What ends it.
    pub fix: String,
}

impl LintFinding {
    pub(super) fn new(rule: LintRule, app: &str, message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            rule,
            severity: rule.severity(),
            app: app.to_owned(),
            key: None,
            fields: Vec::new(),
            origin: None,
            message: message.into(),
            fix: fix.into(),
        }
    }

    pub(super) fn of(mut self, key: Option<ObjectKey>, origin: Option<&Origin>) -> Self {
        self.key = key;
        self.origin = origin.cloned();
        self
    }

    pub(super) fn at(mut self, fields: Vec<FieldPath>) -> Self {
        self.fields = fields;
        self
    }

    pub(super) fn with_severity(mut self, severity: Severity) -> Self {
        self.severity = severity;
        self
    }

    /// File and line, if the file is known.
    pub fn place(&self) -> Option<(&str, usize)> {
        self.origin.as_ref().map(|origin| (origin.file.as_str(), origin.line.max(1)))
    }

    /// An app that cannot be rendered. The rules say nothing about its objects.
    pub fn not_rendered(app: &str, why: &str) -> Self {
        Self::new(
            LintRule::NotRendered,
            app,
            why,
            "fix the source, or render it with `plumb render` to see more",
        )
    }
}
