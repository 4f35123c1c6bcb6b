//! What the engine observed since the last call.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::StepOutcome;
use crate::health::Health;
use crate::object::ObjectKey;

/// Everything that may advance a sync.
#[derive(Clone, Copy, Debug)]
pub struct Observed<'a> {
    /// Every object of the plan, as the cluster holds it. A key that is not here is not known *yet*: the
    /// watch has not caught up with our own last write to it. Such a step waits; its object is never treated as missing.
    pub observations: &'a BTreeMap<ObjectKey, Observation>,
    /// Answers to earlier commands, each given once.
    pub outcomes: &'a [StepOutcome],
    /// When a user last approved deletions.
    pub approved_at: Option<Timestamp>,
    /// Why nothing may start now: a sync window, a pause. Running steps continue.
    pub hold: Option<&'a str>,
    /// A user asked to stop.
    pub terminate: bool,
    /// A newer revision waits for this operation to end.
    pub newer_revision: Option<&'a str>,
}

/// One object as the cluster holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "nearly every object of a plan lives")]
pub enum Observation {
    /// It does not exist.
    Gone,
    /// It does not exist, because it completed and was removed by its TTL (`ttlSecondsAfterFinished`).
    Collected,
    /// It exists.
    Live(ObservedObject),
}

/// An object that exists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObservedObject {
    /// `metadata.uid`.
    pub uid: Option<String>,
    /// Is it being deleted?
    pub terminating: bool,
    /// Since when it is being deleted.
    pub leaving_since: Option<Timestamp>,
    /// The finalizers that block its deletion, without the hook finalizer.
    pub finalizers: Vec<String>,
    /// Does it carry [`crate::plan::HOOK_FINALIZER`]?
    pub has_hook_finalizer: bool,
    /// Its [`crate::plan::OPERATION_ANNOTATION`].
    pub mark: Option<String>,
    /// Its health; `None` for kinds that have none.
    pub health: Option<Health>,
    /// Since when its health is what it is, if known.
    pub since: Option<Timestamp>,
    /// The problem that keeps it from becoming healthy, if one is known.
    pub trouble: Option<Trouble>,
    /// Why it is paused, if it is: it is left out of the sync.
    pub held: Option<String>,
}

/// The problem that keeps an object from becoming healthy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// In words, with the pod: `pod web-7d4f-x2x: ImagePullBackOff: …`.
    pub what: String,
    /// Since when, if known.
    pub since: Option<Timestamp>,
}
