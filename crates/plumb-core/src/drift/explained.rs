//! One difference with its class, before findings are made of it.

use std::borrow::Cow;

use jiff::Timestamp;

use super::DriftClass;
use crate::compare::{Change, Difference};
use crate::fields::Entry;
use crate::object::FieldPath;

/// One difference with its class, and what an apply has to do about it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Explained {
    pub(super) class: DriftClass,
    /// The field in the cluster's object, or in Git's where the cluster has none.
    pub(super) field: FieldPath,
    /// The same field in Git's manifest, where Git sets it.
    pub(super) git: Option<FieldPath>,
    /// How the value that Git sets differs; `None` for a field that Git does not set.
    pub(super) change: Option<Change>,
    pub(super) actor: Option<String>,
    pub(super) since: Option<Timestamp>,
    pub(super) evidence: Cow<'static, str>,
    /// Does it make the object `OutOfSync`? For a few classes this depends on the case.
    pub(super) counts: bool,
    /// The field whose live value an apply keeps.
    pub(super) keep_live: Option<FieldPath>,
    /// The field of Git's manifest that an apply leaves out.
    pub(super) leave_out: Option<FieldPath>,
    /// The field that plumb has to own before an apply can remove it.
    pub(super) take_ownership_of: Option<FieldPath>,
    /// May Git only take over the live value? Without a value of Git, a sync would remove the field from the cluster, or the
    /// API server would refuse the object.
    pub(super) git_takes_live: bool,
    /// A detail for the text of the fix: a known field name, or what to do about an error.
    pub(super) hint: Option<String>,
    /// The name of the rule that decided.
    pub(super) rule: Option<&'static str>,
}

impl Explained {
    pub(super) fn new(
        class: DriftClass,
        field: FieldPath,
        counts: bool,
        evidence: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self {
            class,
            field,
            git: None,
            change: None,
            actor: None,
            since: None,
            evidence: evidence.into(),
            counts,
            keep_live: None,
            leave_out: None,
            take_ownership_of: None,
            git_takes_live: false,
            hint: None,
            rule: None,
        }
    }

    /// Names the rule that decided. The first name stays: a rule may leave the decision to another list.
    pub(super) fn decided_by(mut self, rule: &'static str) -> Self {
        self.rule.get_or_insert(rule);
        self
    }

    /// Names the writer, and the time of the write.
    pub(super) fn written_by(mut self, entry: &Entry<'_>) -> Self {
        self.actor = Some(entry.manager.to_owned());
        self.since = entry.time();
        self
    }

    /// Records which value of Git's differs, for the patch that a fix offers.
    pub(super) fn at_difference(mut self, difference: &Difference<'_>) -> Self {
        self.change = Some(difference.change);
        self.git = difference.desired.map(|_| difference.desired_path.clone());
        self
    }

    /// Lets an apply keep the live value of this field.
    pub(super) fn keeping(mut self, field: FieldPath) -> Self {
        self.keep_live = Some(field);
        self
    }

    /// Git must not leave the field out; it may say what the cluster has.
    pub(super) fn for_git_to_take(mut self) -> Self {
        self.git_takes_live = true;
        self
    }

    /// Does an apply leave the difference as it is?
    pub(super) fn is_kept(&self) -> bool {
        self.keep_live.is_some() || self.leave_out.is_some()
    }
}
