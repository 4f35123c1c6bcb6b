//! The judgement on one object.

use std::sync::Arc;

use serde_json::Value;

use super::{Finding, Question};
use crate::object::{FieldPath, ObjectKey};

/// What [`judge`](super::judge) returns.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The evidence suffices.
    Settled(Box<Verdict>),
    /// Answer these, then judge again. Never empty, and never asked twice.
    Ask(Vec<Question>),
}

/// The judgement on one object.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Which object.
    pub key: ObjectKey,
    /// The word that stands in `status.resources`.
    pub status: VerdictStatus,
    /// One per class, those that count first.
    pub findings: Arc<[Finding]>,
    /// Tracked, gone from Git, to be deleted by a sync with prune.
    pub requires_pruning: bool,
    /// Does this object make its app `OutOfSync`? (`IgnoreExtraneous` objects do not.)
    pub counts_for_app: bool,
    /// What writing this object should look like.
    pub advice: ApplyAdvice,
}

impl Verdict {
    /// Nothing is to be said of the object.
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

/// Synced or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VerdictStatus {
    /// Nothing is wrong.
    Synced,
    /// Something is.
    OutOfSync,
    /// It cannot be told.
    Unknown {
        /// Why.
        reasons: Vec<String>,
    },
    /// It is none of the comparison's business.
    NotCompared(NotCompared),
}

/// Why an object has no status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotCompared {
    /// Hooks run, they are not compared.
    Hook,
    /// `Skip`.
    Skip,
    /// Another app renders it and takes it over; it is not this app's any more.
    HandedOver,
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
    /// Fields whose live value an apply keeps ([`keep_live`](crate::normalize::keep_live)): a controller's,
    /// or what each render makes anew.
    pub keep_live: Vec<FieldPath>,
    /// Fields of Git's object that an apply leaves out ([`leave_out`](crate::normalize::leave_out)): the cluster has
    /// something that stands for them.
    pub leave_out: Vec<FieldPath>,
    /// `metadata.managedFields` to write before the apply, so that what left Git really goes.
    pub managed_fields: Option<Value>,
    /// Applying cannot succeed until a person acts.
    pub blocked: bool,
}
