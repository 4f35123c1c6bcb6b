//! What a plan is made from.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;

use super::{DeletionProof, NoProof, OperationMark, PruneBudget, ReplacedHistory, SyncRequest};
use crate::app::ManagedNamespace;
use crate::desired::{DesiredSet, ObjectOptions};
use crate::object::{GroupKind, GroupVersionKind, Manifest, ObjectKey};
use crate::tracking::Provenance;

/// The group in which a kind of this name is served, and the versions.
pub type ServedVersions<'a> = dyn Fn(&GroupKind) -> Option<(GroupKind, Vec<String>)> + 'a;

/// Everything a plan depends on. Nothing else is read while planning.
#[derive(Clone, Copy)]
pub struct PlanInput<'a> {
    /// What Git asks.
    pub desired: &'a DesiredSet,
    /// What is known about each object that is desired or belongs to the app, by key. A desired object
    /// without an entry does not exist yet.
    pub facts: &'a BTreeMap<ObjectKey, ObjectFacts>,
    /// The proof that objects were removed from Git, or why there is none.
    pub deletions: Result<&'a DeletionProof, &'a NoProof>,
    /// What was asked for.
    pub request: &'a SyncRequest,
    /// The destination namespace.
    pub namespace: &'a NamespaceFacts,
    /// How much an automated sync may delete without confirmation.
    pub budget: PruneBudget,
    /// A repository whose history was replaced since the last sync, if there is one.
    pub replaced_history: Option<&'a ReplacedHistory>,
    /// When the last full sync that succeeded ended, if there was one.
    pub synced_at: Option<Timestamp>,
    /// Which operation this is.
    pub mark: &'a OperationMark,
    /// When a user last approved deletions (`argocd.argoproj.io/deletion-approved`).
    pub approved_at: Option<Timestamp>,
    /// Does the API server serve this kind in this version?
    pub is_served: &'a dyn Fn(&GroupVersionKind) -> bool,
    /// The versions in which the API server serves this kind, or a kind of this name in another group.
    pub served_versions: &'a ServedVersions<'a>,
    /// Why the project does not permit this object, if so.
    pub denied: &'a dyn Fn(&ObjectKey) -> Option<String>,
}

/// What is known about one object.
#[derive(Clone, Debug, Default)]
pub struct ObjectFacts {
    /// The live object, if there is one.
    pub live: Option<LiveFacts>,
    /// Does no difference count? Without a live object: it completed and was removed by its TTL (a Job with
    /// `ttlSecondsAfterFinished`), so it is not missing.
    pub in_sync: bool,
    /// The pause of the object: until when and why.
    pub paused: Option<String>,
    /// Another app that renders this object too, if any.
    pub also_rendered_by: Option<String>,
    /// Another app whose status lists this object, and that could not be rendered since plumb started.
    pub listed_by: Option<String>,
}

/// What is known about a live object.
#[derive(Clone, Debug)]
pub struct LiveFacts {
    /// The object.
    pub manifest: Arc<Manifest>,
    /// What its annotations ask.
    pub options: ObjectOptions,
    /// Whose it is.
    pub owner: Owner,
    /// Did this app bring it into the cluster? Asked only of objects that Git does not have.
    pub provenance: Provenance,
    /// Data that would be lost with it, in words: bound volumes in a namespace, instances of a CRD …
    /// Volumes and claims are known by their kind and need no entry.
    pub holds_data: Option<String>,
    /// What other apps have in it and would lose, in words ([`others_lose_with`](super::others_lose_with)).
    pub of_others: Option<String>,
    /// Why no app ever deletes it, if so ([`never_deleted`](super::never_deleted)).
    pub never_deleted: Option<&'static str>,
}

/// Whose a live object is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// This app tracks it.
    ThisApp,
    /// Another app tracks it.
    Other {
        /// Its name.
        app: String,
        /// Does that app still render it? If not, it may be taken over.
        renders: bool,
    },
    /// No app tracks it.
    NoApp,
}

/// The destination namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamespaceFacts {
    /// Its name; `None` if the destination names none.
    pub name: Option<String>,
    /// Does it exist and is it not being deleted? A namespace that is being deleted is created again.
    pub exists: bool,
    /// Do the options of the app's spec ask for it ([`App::asked_namespace`](crate::app::App::asked_namespace))? An operation
    /// may leave them out, and the app still needs the namespace.
    pub is_asked_for: bool,
    /// `managedNamespaceMetadata`.
    pub managed: Option<ManagedNamespace>,
}

/// Why there is no plan. Nothing was written, and the operation ends as `Failed`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The operation's message.
    pub message: String,
    /// The objects it is about, each with a result.
    pub objects: Vec<RefusedObject>,
}

/// One object that prevents the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedObject {
    /// Which one, in which phase.
    pub id: super::StepId,
    /// Its API version.
    pub version: String,
    /// Is it a hook?
    pub is_hook: bool,
    /// Why, in words.
    pub message: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refusal {}
