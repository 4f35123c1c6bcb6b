//! The reasons why Git and the cluster differ: a closed set.

use std::fmt;

/// Why a difference exists. Every difference gets exactly one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DriftClass {
    /// The API server filled in a default.
    SchemaDefault,
    /// Git sets a field to the value that it would have anyway.
    PhantomDefault,
    /// The object exists, and no app tracks it.
    Unadopted,
    /// The app tracks the object, Git no longer has it, and it has not been pruned.
    Orphan,
    /// Several apps render the object.
    SharedResource,
    /// A hook that has finished, or a Job that was deleted after its `ttlSecondsAfterFinished`.
    HookResidue,
    /// The same commit renders differently each time.
    UnstableRender,
    /// The same value, written differently.
    EquivalentValue,
    /// A controller sets the field, and is meant to.
    ControllerOwned,
    /// A mutating webhook or policy changes the field on every write.
    AdmissionMutated,
    /// The API server does not know the field, sets it itself, or drops it.
    RejectedField,
    /// Removed from Git, and another field manager still owns it.
    StaleOwnership,
    /// The object cannot be compared or applied.
    Blocked,
    /// Another writer added something that Git does not set.
    UnclaimedAddition,
    /// Another writer changed a value that Git sets.
    LiveEdit,
    /// Git changed and has not been synced yet.
    Behind,
    /// Self-heal restored the value several times, and another writer changed it back each time.
    TugOfWar,
    /// No rule found evidence for another class.
    Unexplained,
}

impl DriftClass {
    /// Every class.
    pub const ALL: [Self; 18] = [
        Self::SchemaDefault,
        Self::PhantomDefault,
        Self::Unadopted,
        Self::Orphan,
        Self::SharedResource,
        Self::HookResidue,
        Self::UnstableRender,
        Self::EquivalentValue,
        Self::ControllerOwned,
        Self::AdmissionMutated,
        Self::RejectedField,
        Self::StaleOwnership,
        Self::Blocked,
        Self::UnclaimedAddition,
        Self::LiveEdit,
        Self::Behind,
        Self::TugOfWar,
        Self::Unexplained,
    ];

    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::SchemaDefault => "SchemaDefault",
            Self::PhantomDefault => "PhantomDefault",
            Self::Unadopted => "Unadopted",
            Self::Orphan => "Orphan",
            Self::SharedResource => "SharedResource",
            Self::HookResidue => "HookResidue",
            Self::UnstableRender => "UnstableRender",
            Self::EquivalentValue => "EquivalentValue",
            Self::ControllerOwned => "ControllerOwned",
            Self::AdmissionMutated => "AdmissionMutated",
            Self::RejectedField => "RejectedField",
            Self::StaleOwnership => "StaleOwnership",
            Self::Blocked => "Blocked",
            Self::UnclaimedAddition => "UnclaimedAddition",
            Self::LiveEdit => "LiveEdit",
            Self::Behind => "Behind",
            Self::TugOfWar => "TugOfWar",
            Self::Unexplained => "Unexplained",
        }
    }

    /// Severity for users, the highest first: what no sync can resolve, then edits by others, then what the next sync
    /// resolves, then what needs no action.
    pub fn severity(self) -> u8 {
        match self {
            Self::Blocked => 17,
            Self::TugOfWar => 16,
            Self::Unexplained => 15,
            Self::SharedResource => 14,
            Self::RejectedField => 13,
            Self::LiveEdit => 12,
            Self::StaleOwnership => 11,
            Self::Orphan => 10,
            Self::Unadopted => 9,
            Self::Behind => 8,
            Self::UnclaimedAddition => 7,
            Self::UnstableRender => 6,
            Self::AdmissionMutated => 5,
            Self::ControllerOwned => 4,
            Self::HookResidue => 3,
            Self::PhantomDefault => 2,
            Self::EquivalentValue => 1,
            Self::SchemaDefault => 0,
        }
    }
}

impl fmt::Display for DriftClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
