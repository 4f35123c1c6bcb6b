//! The closed set of reasons why Git and the cluster differ.

use std::fmt;

/// Why a difference exists. Every difference gets exactly one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DriftClass {
    /// A: the server filled in a default.
    SchemaDefault,
    /// B: Git spells out what absent means too.
    PhantomDefault,
    /// C: it exists, and nobody tracks it.
    Unadopted,
    /// D: tracked, gone from Git, not pruned.
    Orphan,
    /// E: two apps render it.
    SharedResource,
    /// F: a finished hook, or a Job that was collected as it asked.
    HookResidue,
    /// G: the same commit renders differently each time.
    UnstableRender,
    /// H: another spelling of the same value.
    EquivalentValue,
    /// I: a controller owns the field for good reason.
    ControllerOwned,
    /// J: admission rewrites it every time.
    AdmissionMutated,
    /// K: the server does not know the field, or keeps it itself.
    RejectedField,
    /// L: removed from Git, kept alive by an older manager.
    StaleOwnership,
    /// M: cannot be compared or applied.
    Blocked,
    /// N: somebody added what Git does not mention.
    UnclaimedAddition,
    /// R: someone changed a value that Git sets.
    LiveEdit,
    /// S: Git moved on.
    Behind,
    /// T: healed again and again, and it came back each time.
    TugOfWar,
    /// U: none of the above could be shown.
    Unexplained,
}

impl DriftClass {
    /// Every class, in the order of their letters.
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

    /// The name, as it stands in reports.
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
}

impl fmt::Display for DriftClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
