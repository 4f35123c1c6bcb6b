//! From the objects' verdicts to the app's.

use serde::Serialize;

use crate::desired::Wave;
use crate::drift::{Verdict, VerdictStatus};
use crate::health::{Health, Member, Role, aggregate};
use crate::object::ObjectKey;

/// The sync status of an object or an app.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum SyncCode {
    /// No difference counts.
    Synced,
    /// A difference counts.
    OutOfSync,
    /// It could not be determined.
    Unknown,
}

impl SyncCode {
    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Synced => "Synced",
            Self::OutOfSync => "OutOfSync",
            Self::Unknown => "Unknown",
        }
    }

    /// The code with this name in the wire format.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Synced, Self::OutOfSync, Self::Unknown].into_iter().find(|code| code.name() == name)
    }

    /// The sync status of one object; `None` for those that are not compared.
    pub fn of(status: &VerdictStatus) -> Option<Self> {
        match status {
            VerdictStatus::Synced => Some(Self::Synced),
            VerdictStatus::OutOfSync => Some(Self::OutOfSync),
            VerdictStatus::NotCompared(_) => None,
        }
    }
}

/// One entry of `status.resources`, field by field.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "mirrors the wire, where each is a field of its own")]
pub struct ObjectStatus {
    /// Group, kind, namespace, name.
    pub key: ObjectKey,
    /// API version.
    pub version: String,
    /// `status`; `None` for hooks, skipped objects and copies of another's tracking mark.
    pub status: Option<SyncCode>,
    /// Does it make the app `OutOfSync`? Not with `IgnoreExtraneous`.
    pub counts: bool,
    /// Does the project permit it? If not, its status is unknown, and the app is out of sync whatever the cluster holds.
    pub is_permitted: bool,
    /// `health`, if it has one.
    pub health: Option<Health>,
    /// What it is to the app's health.
    pub role: Role,
    /// Is it in the cluster?
    pub is_live: bool,
    /// `hook`.
    pub is_hook: bool,
    /// `requiresPruning`.
    pub requires_pruning: bool,
    /// `requiresDeletionConfirmation`.
    pub requires_confirmation: bool,
    /// `syncWave`.
    pub wave: Option<Wave>,
}

impl ObjectStatus {
    /// An object with its verdict; what the verdict does not say is left at its default.
    pub fn of(verdict: &Verdict, version: &str) -> Self {
        Self {
            key: verdict.key.clone(),
            version: version.to_owned(),
            status: SyncCode::of(&verdict.status),
            counts: verdict.counts_for_app,
            is_permitted: true,
            health: None,
            role: Role::Counts,
            is_live: true,
            is_hook: false,
            requires_pruning: verdict.requires_pruning,
            requires_confirmation: false,
            wave: None,
        }
    }
}

/// What the app's status is made from.
#[derive(Clone, Debug, Default)]
pub struct RollUp {
    /// Every object that is listed.
    pub objects: Vec<ObjectStatus>,
    /// What Git asks now is not known, and the objects were compared with an earlier commit: the app is neither in sync nor
    /// out of it. The objects keep their verdicts.
    pub desired_is_outdated: bool,
    /// `managedNamespaceMetadata` is not what was last synced.
    pub namespace_metadata_changed: bool,
}

/// The app's verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppStatus {
    /// `sync.status`.
    pub sync: SyncCode,
    /// `health`.
    pub health: Health,
    /// `resources`, sorted by group, kind, namespace, name.
    pub resources: Vec<ObjectStatus>,
    /// `summary.isAppOfApps`.
    pub is_app_of_apps: bool,
}

/// Rolls the objects' verdicts up into the app's.
pub fn roll_up(input: RollUp) -> AppStatus {
    let mut resources = input.objects;
    resources.sort_by(|one, other| one.key.cmp(&other.key));
    let is_red = |object: &ObjectStatus| {
        object.counts && (object.status == Some(SyncCode::OutOfSync) || !object.is_permitted)
    };
    let sync = if input.desired_is_outdated {
        SyncCode::Unknown
    } else if resources.iter().any(is_red) || input.namespace_metadata_changed {
        SyncCode::OutOfSync
    } else if resources.iter().any(|object| object.counts && object.status == Some(SyncCode::Unknown)) {
        SyncCode::Unknown
    } else {
        SyncCode::Synced
    };
    let health = aggregate(resources.iter().map(|object| Member {
        key: &object.key,
        role: object.role,
        is_live: object.is_live,
        health: object.health.as_ref(),
    }));
    let is_app_of_apps =
        resources.iter().any(|object| object.key.group == "argoproj.io" && object.key.kind == "Application");
    AppStatus { sync, health, resources, is_app_of_apps }
}
