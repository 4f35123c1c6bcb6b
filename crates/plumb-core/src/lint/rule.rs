//! The rules and how bad their findings are.

use std::fmt;

/// How bad a finding is. The worst comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// A sync fails, data is lost, or a secret is exposed.
    Error,
    /// Something will look wrong, or go wrong later.
    Warning,
    /// It could be better.
    Hint,
}

impl Severity {
    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Hint => "hint",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A rule. Those of a drift class have its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LintRule {
    /// An app cannot be rendered.
    NotRendered,
    /// A document that is no object, has no name, or is there twice.
    InvalidManifest,
    /// A field that the API server does not know, or sets itself (class K).
    RejectedField,
    /// Two apps have the same object (class E).
    SharedResource,
    /// A Secret with its values in Git.
    PlainSecret,
    /// An object that makes a Secret and cannot.
    DerivedSecret,
    /// A text that looks like a credential, outside of a Secret.
    Credential,
    /// An object waits for one that a later wave brings.
    UnreachableWave,
    /// The merge deletes an object that holds data.
    DeletesData,
    /// The merge changes a field that the API server refuses to change.
    ImmutableField,
    /// The same files render differently each time (class G).
    UnstableRender,
    /// Git sets what the object would have anyway (class B).
    PhantomDefault,
    /// A hook whose objects stay.
    HookDeletePolicy,
    /// The API server fills in a default inside a list (class A).
    SchemaDefault,
    /// The API server writes the same value differently (class H).
    EquivalentValue,
    /// A claim that a sync may delete.
    UnprotectedClaim,
}

impl LintRule {
    /// All rules, in the order in which findings are shown.
    pub const ALL: [Self; 16] = [
        Self::NotRendered,
        Self::InvalidManifest,
        Self::RejectedField,
        Self::SharedResource,
        Self::PlainSecret,
        Self::DerivedSecret,
        Self::Credential,
        Self::UnreachableWave,
        Self::DeletesData,
        Self::ImmutableField,
        Self::UnstableRender,
        Self::PhantomDefault,
        Self::HookDeletePolicy,
        Self::SchemaDefault,
        Self::EquivalentValue,
        Self::UnprotectedClaim,
    ];

    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::NotRendered => "NotRendered",
            Self::InvalidManifest => "InvalidManifest",
            Self::RejectedField => "RejectedField",
            Self::SharedResource => "SharedResource",
            Self::PlainSecret => "PlainSecret",
            Self::DerivedSecret => "DerivedSecret",
            Self::Credential => "Credential",
            Self::UnreachableWave => "UnreachableWave",
            Self::DeletesData => "DeletesData",
            Self::ImmutableField => "ImmutableField",
            Self::UnstableRender => "UnstableRender",
            Self::PhantomDefault => "PhantomDefault",
            Self::HookDeletePolicy => "HookDeletePolicy",
            Self::SchemaDefault => "SchemaDefault",
            Self::EquivalentValue => "EquivalentValue",
            Self::UnprotectedClaim => "UnprotectedClaim",
        }
    }

    /// The rule of this name, in any case.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|rule| rule.name().eq_ignore_ascii_case(name))
    }

    /// How bad its findings are, unless the finding says otherwise.
    pub fn severity(self) -> Severity {
        match self {
            Self::NotRendered
            | Self::InvalidManifest
            | Self::RejectedField
            | Self::SharedResource
            | Self::PlainSecret
            | Self::DerivedSecret
            | Self::UnreachableWave
            | Self::DeletesData
            | Self::ImmutableField => Severity::Error,
            Self::Credential | Self::UnstableRender | Self::PhantomDefault | Self::HookDeletePolicy => {
                Severity::Warning
            }
            Self::SchemaDefault | Self::EquivalentValue | Self::UnprotectedClaim => Severity::Hint,
        }
    }
}

impl fmt::Display for LintRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
