//! What Git asks for: rendered manifests turned into a set of objects with identity, scope and intent.

mod build;
mod filter;
mod options;
mod scope;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

pub use build::{DesiredContext, RenderedManifest, build};
pub use filter::{KindFilter, KindRule};
pub use options::{DeletePolicy, HookPhase, ObjectOptions, Propagation, PruneOption, Wave};
pub use scope::{Scope, Scopes};

use crate::object::{FieldPath, Manifest, NotAnObject, ObjectKey};

/// One object that Git asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct DesiredObject {
    /// Identity, after scope and default namespace were settled.
    pub key: ObjectKey,
    /// The object, with the tracking mark.
    pub manifest: Manifest,
    /// What its annotations ask of the sync.
    pub options: ObjectOptions,
    /// Where it stands in the source, if the tool lets us know.
    pub origin: Option<Origin>,
}

/// A place in a source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    /// Which of the app's sources, from 0.
    pub source: usize,
    /// Path in the repository.
    pub file: String,
    /// First line of the document, from 1.
    pub line: usize,
    /// Does the object stand there as it is? Then a patch of the object is a patch of the document. A template, a
    /// list, or a base that an overlay changes, is another text.
    pub verbatim: bool,
}

/// One hook. Hooks are not compared, they run.
#[derive(Clone, Debug, PartialEq)]
pub struct DesiredHook {
    /// The manifest; it may have `generateName` instead of a name.
    pub manifest: Manifest,
    /// Namespace after scope and default were settled.
    pub namespace: Option<String>,
    /// When it runs; empty for hooks of unsupported types, which never run.
    pub phases: Vec<HookPhase>,
    /// What its annotations ask of the sync.
    pub options: ObjectOptions,
    /// Where it stands in the source, if the tool lets us know.
    pub origin: Option<Origin>,
}

impl DesiredHook {
    /// Identity of a named hook; `None` for one that leaves its name to the sync.
    pub fn key(&self) -> Option<ObjectKey> {
        Some(self.manifest.key()?.with_namespace(self.namespace.clone()))
    }
}

/// Everything that Git asks for, by key. Building it never fails: what is wrong is in `problems`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DesiredSet {
    /// Objects to compare and apply.
    pub objects: BTreeMap<ObjectKey, DesiredObject>,
    /// Hooks, in the order of the source. Those without phases never run; they are kept so that nobody takes
    /// their live remains for orphans.
    pub hooks: Vec<DesiredHook>,
    /// What was wrong with the manifests.
    pub problems: Vec<DesiredProblem>,
}

impl DesiredSet {
    /// Does the other ask for just the same, wherever it stands in the source?
    pub fn asks_the_same(&self, other: &Self) -> bool {
        self.objects.len() == other.objects.len()
            && self.hooks.len() == other.hooks.len()
            && self.objects.iter().all(|(key, object)| {
                other.objects.get(key).is_some_and(|others| others.manifest == object.manifest)
            })
            && self
                .hooks
                .iter()
                .zip(&other.hooks)
                .all(|(hook, others)| hook.manifest == others.manifest && hook.namespace == others.namespace)
    }
}

/// Something wrong with the rendered manifests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DesiredProblem {
    /// Rendered more than once; the last one counts (`RepeatedResourceWarning`).
    Repeated {
        /// Which object.
        key: ObjectKey,
        /// How often.
        count: usize,
        /// Where, as far as it is known; the last one is what counts.
        origins: Vec<Origin>,
    },
    /// Excluded by the settings and dropped (`ExcludedResourceWarning`).
    Excluded {
        /// Which object.
        key: ObjectKey,
    },
    /// A namespaced object for which neither the manifest nor the destination names a namespace. It stays in
    /// the set under a key without namespace, which proves nothing about the live object it means.
    NamespaceMissing {
        /// Which object.
        key: ObjectKey,
    },
    /// A manifest without name; only hooks may leave it to the server.
    NameMissing {
        /// Kind of the manifest.
        kind: String,
        /// Where it stands.
        origin: Option<Origin>,
    },
    /// A document that is no Kubernetes object; dropped.
    NotAnObject {
        /// Why not.
        reason: NotAnObject,
        /// Where it stands.
        origin: Option<Origin>,
    },
    /// A label or annotation that is no text, such as an unquoted `5` or `true`: the server refuses the object.
    NotText {
        /// Which object; `None` for one that leaves its name to the server.
        key: Option<ObjectKey>,
        /// The label or annotation.
        field: FieldPath,
        /// Where the object stands.
        origin: Option<Origin>,
    },
}

impl DesiredProblem {
    /// Did the set lose an object that Git asks for? Then it proves nothing about what Git does not ask for.
    pub fn loses_an_object(&self) -> bool {
        match self {
            Self::NameMissing { .. } | Self::NotAnObject { .. } | Self::NamespaceMissing { .. } => true,
            Self::Repeated { .. } | Self::Excluded { .. } | Self::NotText { .. } => false,
        }
    }
}

impl DesiredSet {
    /// Is every object that Git asks for in it? Only then may it become [`Complete`].
    pub fn is_whole(&self) -> bool {
        !self.problems.iter().any(DesiredProblem::loses_an_object)
    }
}

/// A proof that the set is whole: rendered without error from a reachable source. Only a complete set may
/// lead to deletions, so the functions that plan them ask for this type.
#[derive(Clone, Debug, PartialEq)]
pub struct Complete<T>(T);

impl<T> Complete<T> {
    /// To be called only where rendering of every source succeeded and [`DesiredSet::is_whole`] holds.
    pub fn rendered_without_error(set: T) -> Self {
        Self(set)
    }

    /// The set.
    pub fn get(&self) -> &T {
        &self.0
    }
}
