//! The plan and its parts.

use std::fmt;
use std::sync::Arc;

use serde::{Serialize, Serializer};

use super::{OperationMark, Stage};
use crate::desired::{DeletePolicy, Propagation, Wave};
use crate::object::{Manifest, ObjectKey};
use crate::tracking::Provenance;

/// Everything one sync will do, in order.
///
/// Invariants: groups are sorted by phase, then wave, and no two have both in common; inside a group steps are
/// sorted by stage; every [`StepId`] occurs once; a [`Action::Prune`] exists only if the deletions were proven.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts about the operation, each read on its own"
)]
pub struct Plan {
    /// Which operation and which try of it this plan belongs to.
    pub mark: OperationMark,
    /// Stop after trying everything against the server without keeping it.
    pub dry_run: bool,
    /// Started by the automation, not by a user.
    pub automated: bool,
    /// Only some of the objects: no hooks, no history.
    pub selective: bool,
    /// Fields that ignore rules cover are taken from the live object when writing.
    pub respect_ignore_differences: bool,
    /// How deletions treat children.
    pub propagation: Propagation,
    /// `PreSync`, `Sync` and `PostSync`, waves ascending.
    pub groups: Vec<Group>,
    /// `SyncFail`, waves ascending; run only when a step failed.
    pub on_failure: Vec<Group>,
}

impl Plan {
    /// Every step, those of the failure branch last.
    pub fn steps(&self) -> impl Iterator<Item = &Step> {
        self.placed_steps().map(|(_, step)| step)
    }

    /// Every step with its group, those of the failure branch last.
    pub fn placed_steps(&self) -> impl Iterator<Item = (&Group, &Step)> {
        let groups = self.groups.iter().chain(&self.on_failure);
        groups.flat_map(|group| group.steps.iter().map(move |step| (group, step)))
    }

    /// The step with this identity.
    pub fn step(&self, id: &StepId) -> Option<&Step> {
        self.steps().find(|step| step.id == *id)
    }
}

/// The steps of one wave of one phase.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Group {
    /// When in the sync.
    pub phase: SyncPhase,
    /// Which wave of that phase.
    pub wave: Wave,
    /// In the order of their stages, then kinds, then names.
    pub steps: Vec<Step>,
}

/// When in a sync something happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum SyncPhase {
    /// Before the objects.
    PreSync,
    /// The objects.
    Sync,
    /// After all objects are healthy.
    PostSync,
    /// After a failure.
    SyncFail,
}

impl SyncPhase {
    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::PreSync => "PreSync",
            Self::Sync => "Sync",
            Self::PostSync => "PostSync",
            Self::SyncFail => "SyncFail",
        }
    }

    /// Reads the name on the wire.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::PreSync, Self::Sync, Self::PostSync, Self::SyncFail]
            .into_iter()
            .find(|phase| phase.name() == name)
    }
}

impl fmt::Display for SyncPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Identity of a step, the same as that of its result in `syncResult.resources`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct StepId {
    /// In which phase; a hook may run in several.
    pub phase: SyncPhase,
    /// Which object.
    pub key: ObjectKey,
}

impl fmt::Display for StepId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.phase, self.key)
    }
}

/// One object and what happens to it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Step {
    /// Which object, in which phase.
    pub id: StepId,
    /// API version in which it is written.
    pub version: String,
    /// What happens to it.
    pub action: Action,
    /// Its turn inside the group.
    pub stage: Stage,
    /// Can the server judge it before the steps in front of it were done? Not if they make its kind or namespace.
    pub can_be_tried: bool,
    /// Why it is in the plan.
    pub why: Why,
    /// What must be seen before the next group may begin.
    pub waits_for: WaitsFor,
}

impl Step {
    /// Does it run a hook?
    pub fn hook(&self) -> Option<&Hook> {
        match &self.action {
            Action::RunHook(hook) => Some(hook),
            Action::Apply { .. }
            | Action::CreateNamespace { .. }
            | Action::Prune { .. }
            | Action::Unchanged
            | Action::Skip(_) => None,
        }
    }
}

/// What happens to an object.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum Action {
    /// Write what Git asks; the manifest is the desired object's of this key.
    Apply {
        /// With which kind of request.
        how: HowToApply,
        /// Are unknown fields an error?
        strict: bool,
        /// Take fields over from client-side apply first.
        migrate: bool,
        /// It belongs to another app that no longer renders it: this write takes it over.
        takes_over: Option<String>,
    },
    /// It is what Git asks: no request is made, but the wave still waits for its health.
    Unchanged,
    /// Make the destination namespace, or set the metadata that the app manages on it.
    CreateNamespace {
        /// The namespace as it is applied.
        manifest: Payload,
    },
    /// Delete an object that was removed from Git.
    Prune {
        /// What must be given first.
        guard: PruneGuard,
        /// Only this incarnation of the object is deleted.
        uid: Option<String>,
    },
    /// Run a hook.
    RunHook(Hook),
    /// Nothing happens to it, and the result says why.
    Skip(Skip),
}

/// A hook in one phase, ready to run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Hook {
    /// With its final name, the operation's mark and the finalizer that keeps it until its result is recorded.
    pub manifest: Payload,
    /// When its object is removed.
    pub delete_policies: Vec<DeletePolicy>,
    /// With which kind of request.
    pub how: HowToApply,
    /// Are unknown fields an error?
    pub strict: bool,
}

impl Hook {
    /// Is its object removed then?
    pub fn is_deleted(&self, policy: DeletePolicy) -> bool {
        self.delete_policies.contains(&policy)
    }
}

/// A manifest inside a plan. It is neither printed nor serialised: it may hold a Secret's values.
#[derive(Clone, PartialEq)]
pub struct Payload(pub Arc<Manifest>);

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Payload({} {})", self.0.kind(), self.0.name().unwrap_or_default())
    }
}

impl Serialize for Payload {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.name().unwrap_or_default())
    }
}

/// With which kind of request an object is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum HowToApply {
    /// Server-side apply, forced.
    ServerSide,
    /// Server-side apply; where the server refuses (an immutable field), delete and create (`Force=true`).
    ServerSideOrRecreate,
    /// Create; it does not exist (`Replace=true`).
    Create,
    /// Write the whole object over the live one, or create it (`Replace=true`).
    Replace,
    /// Delete and create (`Replace=true` and `Force=true`).
    Recreate,
}

/// What must be given before an object is deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum PruneGuard {
    /// Nothing.
    Free,
    /// The confirmation of a user, for these reasons; it may be given already.
    Confirm {
        /// Why; never empty.
        reasons: Vec<ConfirmReason>,
        /// Was it given when the plan was made?
        approved: bool,
    },
}

/// Why a deletion waits for confirmation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum ConfirmReason {
    /// `Prune=confirm` on the object or the app.
    Option,
    /// An automated sync would delete too much at once.
    Budget {
        /// How many objects it would delete.
        n_prunes: usize,
        /// How many live objects the app has.
        n_objects: usize,
    },
    /// It is not proven that this app created the object.
    NotProven(Provenance),
    /// The object holds data.
    HoldsData {
        /// Which, in words.
        what: String,
    },
    /// The history of the repository was replaced since the last sync.
    History(super::ReplacedHistory),
    /// Other apps have objects in it.
    OfOthers {
        /// Which, in words.
        what: String,
    },
    /// The status of another app lists it, and that app cannot be rendered: it may need the object.
    ListedBy {
        /// The other app.
        app: String,
    },
}

impl fmt::Display for ConfirmReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Option => f.write_str("Prune=confirm"),
            Self::Budget { n_prunes, n_objects } => {
                write!(f, "{n_prunes} of {n_objects} objects would be deleted at once")
            }
            Self::NotProven(why) => write!(f, "{why}"),
            Self::HoldsData { what } => write!(f, "it holds data ({what})"),
            Self::History(replaced) => write!(f, "{replaced}"),
            Self::OfOthers { what } => write!(f, "other apps would lose what is in it ({what})"),
            Self::ListedBy { app } => {
                write!(f, "the status of app {app} lists it, and that app cannot be rendered")
            }
        }
    }
}

/// Why nothing happens to an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum Skip {
    /// It was removed from Git, and this sync does not prune.
    PruneNotRequested,
    /// It was removed from Git and has `Prune=false`.
    PruneForbidden,
    /// It seems to be removed from Git, but that is not proven.
    PruneUnproven(super::NoProof),
    /// It was removed from Git and is already being deleted.
    AlreadyTerminating,
    /// It completed and was removed by its TTL: writing it would run it again.
    Collected,
    /// It was removed from this app, and another app renders it: that app takes ownership.
    HandedOver {
        /// The other app.
        app: String,
    },
    /// It is the destination namespace, and an option of the app asks for it (`CreateNamespace=true` or
    /// `managedNamespaceMetadata`).
    AskedFor,
    /// No app ever deletes it.
    NeverDeleted {
        /// Why, in words.
        why: &'static str,
    },
    /// Another app owns it and renders it: it is not taken away.
    OwnedBy {
        /// The other app.
        app: String,
    },
    /// The object is paused.
    Paused {
        /// Until when and why, in words.
        why: String,
    },
}

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PruneNotRequested => f.write_str("ignored (requires pruning)"),
            Self::PruneForbidden => f.write_str("ignored (no prune)"),
            Self::PruneUnproven(why) => write!(f, "ignored (requires pruning): {why}"),
            Self::AlreadyTerminating => f.write_str("pruned"),
            Self::Collected => f.write_str("completed and was removed by its TTL"),
            Self::HandedOver { app } => {
                write!(f, "ignored (no prune): app {app} renders it and takes ownership")
            }
            Self::AskedFor => {
                f.write_str("ignored (no prune): the app's options ask for its destination namespace")
            }
            Self::NeverDeleted { why } => write!(f, "ignored (no prune): {why}"),
            Self::OwnedBy { app } => write!(f, "not applied: app {app} owns it and renders it too"),
            Self::Paused { why } => write!(f, "not applied: paused {why}"),
        }
    }
}

/// Why a step is in the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Why {
    /// Git has it, the cluster does not.
    Missing,
    /// It is not what Git asks.
    OutOfSync,
    /// It is being deleted.
    Terminating,
    /// It exists and no app tracks it.
    Unadopted,
    /// It moves from another app to this one.
    Moved,
    /// It is what Git asks.
    InSync,
    /// It is what Git asks, and an option asks to write it each time.
    WrittenEachTime,
    /// It was removed from Git.
    LeftGit,
    /// It is a hook of this phase.
    Hook,
    /// The destination namespace is missing.
    NamespaceMissing,
    /// The app manages metadata of the destination namespace.
    NamespaceMetadata,
    /// Another app owns it.
    Shared,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Missing => "missing",
            Self::OutOfSync => "out of sync",
            Self::Terminating => "is being deleted",
            Self::Unadopted => "exists, adopted",
            Self::Moved => "moves to this app",
            Self::InSync => "in sync",
            Self::WrittenEachTime => "written on each sync",
            Self::LeftGit => "removed from Git",
            Self::Hook => "hook",
            Self::NamespaceMissing => "namespace missing",
            Self::NamespaceMetadata => "namespace metadata",
            Self::Shared => "shared",
        })
    }
}

/// What must be seen before the next group may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum WaitsFor {
    /// The object is healthy.
    Health,
    /// The hook has ended.
    Completion,
    /// The object is gone.
    Deletion,
    /// Nothing.
    Nothing,
}

impl fmt::Display for WaitsFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Health => "health",
            Self::Completion => "completion",
            Self::Deletion => "deletion",
            Self::Nothing => "-",
        })
    }
}
