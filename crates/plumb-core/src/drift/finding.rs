//! An explained difference.

use std::borrow::Cow;

use jiff::Timestamp;

use super::DriftClass;
use crate::object::{FieldPath, ObjectKey};

/// One explained difference of one object: one class, the fields it covers, the evidence, the fix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Which object.
    pub key: ObjectKey,
    /// Why it differs.
    pub class: DriftClass,
    /// The rule that decided, by its name; several names, separated by commas, where fields differ for several reasons of
    /// one class. Empty in a finding that an older plumb reported.
    pub rule: Cow<'static, str>,
    /// The fields; empty if the finding is about the whole object.
    pub fields: Vec<FieldPath>,
    /// Does it make the object `OutOfSync`?
    pub counts: bool,
    /// Who made the difference: a field manager, a policy, another app.
    pub actor: Option<String>,
    /// Since when, if it is known. It is never a guess.
    pub since: Option<Timestamp>,
    /// The evidence, in plain words. Never a value of a Secret.
    pub evidence: Vec<String>,
    /// What ends it.
    pub fix: Fix,
}

impl Finding {
    /// True if it asks nothing of anybody: it does not count, and nothing has to be done about it.
    pub fn is_quiet(&self) -> bool {
        !self.counts && self.fix.kind == FixKind::None
    }
}

/// What ends a difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fix {
    /// The kind of step.
    pub kind: FixKind,
    /// The step, in plain words.
    pub text: String,
    /// A patch for the file in Git, where plumb can make one.
    pub patch: Option<String>,
}

impl Fix {
    /// A fix without a patch.
    pub(super) fn new(kind: FixKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into(), patch: None }
    }
}

/// The kind of step that ends a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FixKind {
    /// There is nothing to do.
    None,
    /// Change a line in Git.
    EditGit,
    /// Sync.
    Sync,
    /// Adopt the object.
    Adopt,
    /// Prune the object.
    Prune,
    /// Add a narrow ignore rule.
    Ignore,
    /// A person has to decide.
    Decide,
}
