//! The input and the output of [`next`](super::next).

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::desired::{DesiredHook, Propagation};
use crate::object::ObjectKey;
use crate::plan::{AppOptions, ObjectFacts, OperationMark, Payload};
use crate::sync::Observation;

/// An app that is being deleted.
#[derive(Clone, Copy, Debug)]
pub struct Deletion<'a> {
    /// Finalizers left on the Application.
    pub finalizers: &'a [String],
    /// When the deletion was asked for, and the revision whose hooks run.
    pub mark: &'a OperationMark,
    /// Its hooks, or why they are not known.
    pub hooks: Result<&'a [DesiredHook], &'a str>,
    /// Every object that belongs to it and that the project permits.
    pub objects: &'a BTreeMap<ObjectKey, ObjectFacts>,
    /// Did every watch behind `objects` finish its first list?
    pub live_complete: bool,
    /// The hooks' objects as the cluster holds them; a key that is not here is not known yet.
    pub observations: &'a BTreeMap<ObjectKey, Observation>,
    /// Hooks that failed in this deletion, and how: [`DeletionStep::failed_hooks`] of earlier steps.
    pub failed_before: &'a BTreeMap<ObjectKey, String>,
    /// The spec's sync options.
    pub options: &'a AppOptions,
    /// The Application itself: an app of apps may contain itself.
    pub itself: &'a ObjectKey,
    /// The destination namespace, if the app's options ask for it and Git does not have it as a manifest.
    pub asked_namespace: Option<&'a ObjectKey>,
    /// When a user last approved deletions.
    pub approved_at: Option<Timestamp>,
    /// Is the destination cluster known? If not, nothing in it can be deleted, and the app is removed.
    pub is_destination_known: bool,
}

/// What to do now.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeletionStep {
    /// To be started now, all at the same time.
    pub commands: Vec<DeletionCommand>,
    /// To be removed from the Application now, in this order, after the commands.
    pub drop_finalizers: Vec<&'static str>,
    /// What the deletion waits for.
    pub message: String,
    /// Why it cannot continue.
    pub error: Option<String>,
    /// What failed before and is retried now. The `DeletionError` condition shows it until it succeeds: a condition that
    /// comes and goes with every attempt is easily missed.
    pub earlier_error: Option<String>,
    /// Hooks that have failed now, and how.
    pub failed_hooks: Vec<(ObjectKey, String)>,
    /// An object whose deletion a user has to confirm first, and why if it is more than an option.
    pub unconfirmed: Option<(ObjectKey, Option<String>)>,
    /// Objects that stay, each with its reason.
    pub kept: Vec<(ObjectKey, String)>,
}

/// One request.
#[derive(Clone, Debug, PartialEq)]
pub enum DeletionCommand {
    /// Create a hook.
    CreateHook {
        /// Which.
        key: ObjectKey,
        /// As it is sent.
        manifest: Payload,
    },
    /// Delete a hook's object, releasing its finalizer. No tombstone.
    DeleteHook {
        /// Which.
        key: ObjectKey,
        /// Only this incarnation.
        uid: Option<String>,
    },
    /// Store the tombstone, then delete the object.
    DeleteObject {
        /// Which.
        key: ObjectKey,
        /// Only this incarnation.
        uid: Option<String>,
        /// What happens to its children.
        propagation: Propagation,
    },
}
