//! An operation that a user or the automation requested for an app.

use super::{RetryPolicy, Source, SyncOption};
use crate::object::ObjectKey;

/// A requested sync: `operation` of the Application, validated. It is complete by itself: the options of
/// the spec's policy are not added to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Operation {
    /// Revisions to sync to, one per source; empty: what the sources say.
    pub revisions: Vec<String>,
    /// Delete what is no longer in Git.
    pub prune: bool,
    /// Stop after the plan.
    pub dry_run: bool,
    /// How objects are applied, and whether hooks run.
    pub strategy: SyncStrategy,
    /// Only these objects; `None`: all.
    pub selected: Option<Vec<SelectedObject>>,
    /// Sync from here instead of the app's sources; `None`: from the app's.
    pub sources: Option<Vec<Source>>,
    /// Objects that came with the request, as JSON texts, instead of those in Git; `None`: those in Git.
    pub manifests: Option<Vec<String>>,
    /// All options of this sync.
    pub options: Vec<SyncOption>,
    /// Who requested it.
    pub initiated_by: Initiator,
    /// What happens after a failure.
    pub retry: RetryPolicy,
    /// For display only: name and value.
    pub info: Vec<(String, String)>,
    /// How often self-heal has tried at this revision; 0 for every other sync.
    pub self_heal_attempts: u32,
}

impl Operation {
    /// Is this exact option set?
    pub fn has(&self, option: &str) -> bool {
        self.options.iter().any(|set| set.0 == option)
    }

    /// Are hooks run? Not when they are switched off and not in a selective sync.
    pub fn runs_hooks(&self) -> bool {
        matches!(self.strategy, SyncStrategy::Hook { .. }) && self.selected.is_none()
    }

    /// Is this object part of the sync?
    pub fn selects(&self, group: &str, kind: &str, namespace: &str, name: &str) -> bool {
        self.selected.as_ref().is_none_or(|selected| {
            selected.iter().any(|object| {
                (object.group.as_str(), object.kind.as_str(), object.name.as_str()) == (group, kind, name)
                    && object.namespace.as_deref().is_none_or(|wanted| wanted == namespace)
            })
        })
    }
}

/// How objects are applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncStrategy {
    /// With hooks.
    Hook {
        /// Delete and recreate an object that cannot be changed.
        force: bool,
    },
    /// Without hooks.
    Apply {
        /// Delete and recreate an object that cannot be changed.
        force: bool,
    },
}

impl SyncStrategy {
    /// Delete and recreate an object that cannot be changed?
    pub fn force(self) -> bool {
        match self {
            Self::Hook { force } | Self::Apply { force } => force,
        }
    }
}

/// One object of a selective sync. Exact, no globs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SelectedObject {
    /// API group, empty for the core group.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Namespace; `None` matches any.
    pub namespace: Option<String>,
    /// Name.
    pub name: String,
}

impl SelectedObject {
    /// Exactly this object.
    pub fn of(key: &ObjectKey) -> Self {
        Self {
            group: key.group.clone(),
            kind: key.kind.clone(),
            namespace: key.namespace.clone(),
            name: key.name.clone(),
        }
    }

    /// Does it select this object?
    pub fn means(&self, key: &ObjectKey) -> bool {
        (&self.group, &self.kind, &self.name) == (&key.group, &key.kind, &key.name)
            && self.namespace.as_deref().is_none_or(|namespace| namespace == key.namespace_or_empty())
    }
}

/// Who requested an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Initiator {
    /// The engine itself.
    Automated,
    /// A user, by name.
    User(String),
    /// Not stated by the writer of the operation.
    Unnamed,
}
