//! An explained difference.

use std::borrow::Cow;

use jiff::Timestamp;

use super::DriftClass;
use crate::object::{FieldPath, ObjectKey};

/// One explained difference of one object: one class, the fields it covers, the evidence, the way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Which object.
    pub key: ObjectKey,
    /// Why it differs.
    pub class: DriftClass,
    /// The rule that decided, by its name; several names, separated by commas, where fields differ for several reasons of
    /// one class. Empty in a finding that an older plumb reported.
    pub rule: Cow<'static, str>,
    /// Where; empty when the whole object is meant.
    pub fields: Vec<FieldPath>,
    /// Does it make the object `OutOfSync`?
    pub counts: bool,
    /// Who made the difference: a field manager, a policy, another app.
    pub actor: Option<String>,
    /// Since when, if it is known. Never guessed.
    pub since: Option<Timestamp>,
    /// What was seen, in plain words. Never a Secret's value.
    pub evidence: Vec<String>,
    /// What ends it.
    pub fix: Fix,
}

/// What ends a difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fix {
    /// What sort of step it is.
    pub kind: FixKind,
    /// The step, in plain words.
    pub text: String,
    /// A patch to the file in Git, where it can be made.
    pub patch: Option<String>,
}

impl Fix {
    /// A fix without a patch.
    pub(super) fn new(kind: FixKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into(), patch: None }
    }
}

/// What sort of step ends a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FixKind {
    /// Nothing needs to be done.
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
    /// Something that only a person can decide.
    Decide,
}
