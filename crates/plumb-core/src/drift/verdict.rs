//! The judgement on one object.

use std::sync::Arc;

use serde_json::Value;

use super::{Finding, Question};
use crate::object::{FieldPath, ObjectKey};

/// What [`judge`](super::judge) returns.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The evidence is sufficient.
    Settled(Box<Verdict>),
    /// Answer these questions, then judge again. Never empty, and no question comes twice.
    Ask(Vec<Question>),
}

/// The judgement on one object.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Which object.
    pub key: ObjectKey,
    /// The status in `status.resources`.
    pub status: VerdictStatus,
    /// One per class, those that count first.
    pub findings: Arc<[Finding]>,
    /// The app tracks it and Git no longer has it: a sync with prune deletes it.
    pub requires_pruning: bool,
    /// Does this object make its app `OutOfSync`? (`IgnoreExtraneous` objects do not.)
    pub counts_for_app: bool,
    /// How to write this object.
    pub advice: ApplyAdvice,
}

impl Verdict {
    /// The verdict on an object without findings.
    pub fn plain(key: ObjectKey) -> Self {
        Self {
            key,
            status: VerdictStatus::Synced,
            findings: Arc::default(),
            requires_pruning: false,
            counts_for_app: false,
            advice: ApplyAdvice::default(),
        }
    }
}

/// The status of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VerdictStatus {
    /// No finding counts.
    Synced,
    /// A finding counts.
    OutOfSync,
    /// The object is not compared.
    NotCompared(NotCompared),
}

/// Why an object has no status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotCompared {
    /// Hooks are run, not compared.
    Hook,
    /// Its hook annotation says `Skip`.
    Skip,
    /// Another app renders it and takes it over; it no longer belongs to this app.
    HandedOver,
    /// It is the destination namespace, and the app's options ask for it: like the one that a sync makes, it is in no list.
    AskedFor,
    /// Neither Git nor the cluster has it.
    Absent,
}

/// How to write the object, so that exactly what counts is changed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ApplyAdvice {
    /// Would a sync change anything?
    pub needed: bool,
    /// Fields that a self-heal writes: those of counted findings whose class heals. Empty: nothing to heal.
    pub heal: Vec<FieldPath>,
    /// Fields whose live value an apply keeps ([`keep_live`](crate::normalize::keep_live)): those of a controller, and those
    /// that differ in each render.
    pub keep_live: Vec<FieldPath>,
    /// Fields that self-heal no longer restores, because another writer changes them back each time. `keep_live` has them for
    /// the sake of a self-heal that writes another field.
    pub contested: Vec<FieldPath>,
    /// Fields of Git's object that an apply leaves out ([`leave_out`](crate::normalize::leave_out)): the cluster has the key
    /// of an earlier render in their place.
    pub leave_out: Vec<FieldPath>,
    /// `metadata.managedFields` to write before the apply, so that it removes what Git no longer has.
    pub managed_fields: Option<Value>,
    /// An apply cannot succeed until a person acts.
    pub blocked: bool,
}

impl ApplyAdvice {
    /// The advice for a write that a user or a new revision asks for: it restores what self-heal gave up, too.
    #[must_use]
    pub fn with_contested_restored(mut self) -> Self {
        let contested = std::mem::take(&mut self.contested);
        let is_contested = |kept: &FieldPath| contested.iter().any(|field| field.starts_with(kept));
        self.keep_live.retain(|kept| !is_contested(kept));
        self
    }
}
