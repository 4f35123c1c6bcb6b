//! The set of objects and hooks that Git asks for.

use std::collections::BTreeMap;

use super::{DesiredProblem, HookPhase, ObjectOptions, Scope, Scopes};
use crate::object::{GroupKind, Manifest, ObjectKey};

/// One object that Git asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct DesiredObject {
    /// Identity, after scope and default namespace were settled.
    pub key: ObjectKey,
    /// The object, with the tracking mark.
    pub manifest: Manifest,
    /// The sync options of its annotations.
    pub options: ObjectOptions,
    /// Its place in the source, if the tool reports it.
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
    /// Is the document the object itself? Then a patch of the object is a patch of the document. That is not so for a
    /// template, a list, or a base that an overlay changes.
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
    /// The sync options of its annotations.
    pub options: ObjectOptions,
    /// Its place in the source, if the tool reports it.
    pub origin: Option<Origin>,
}

impl DesiredHook {
    /// Identity of a named hook; `None` for one that leaves its name to the sync.
    pub fn key(&self) -> Option<ObjectKey> {
        Some(self.manifest.key()?.with_namespace(self.namespace.clone()))
    }

    /// Identity of a hook; of one that leaves its name to the sync, with the beginning of the name.
    pub fn key_or_prefix(&self) -> ObjectKey {
        self.key().unwrap_or_else(|| {
            let (kind, name) =
                (self.manifest.gvk().group_kind(), self.manifest.generate_name().unwrap_or_default());
            ObjectKey::new(kind.group, kind.kind, self.namespace.clone(), name)
        })
    }
}

/// Everything that Git asks for, by key. Building it never fails: what is wrong is in `problems`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DesiredSet {
    /// Objects to compare and apply.
    pub objects: BTreeMap<ObjectKey, DesiredObject>,
    /// Hooks, in the order of the source. Those without phases never run; they are kept so that
    /// their live objects do not count as orphans.
    pub hooks: Vec<DesiredHook>,
    /// What was wrong with the manifests.
    pub problems: Vec<DesiredProblem>,
}

impl DesiredSet {
    /// What would be written under this key: an object, or hooks. A hook without a name gets one that begins with its
    /// `generateName`.
    pub fn written_as(&self, key: &ObjectKey) -> impl Iterator<Item = &Manifest> {
        let is_it = |hook: &&DesiredHook| {
            let own = hook.key_or_prefix();
            let names_it = match hook.manifest.name() {
                Some(name) => name == key.name,
                None => key.name.starts_with(&own.name),
            };
            names_it && (&own.group, &own.kind, &own.namespace) == (&key.group, &key.kind, &key.namespace)
        };
        let objects = self.objects.get(key).map(|object| &object.manifest);
        objects.into_iter().chain(self.hooks.iter().filter(is_it).map(|hook| &hook.manifest))
    }

    /// Does the other set hold the same objects and hooks? Places in the source are not compared.
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

    /// Is every object and hook where the scope of its kind puts it? A kind that is not known fits anywhere. An object without
    /// a namespace whose kind is namespaced was built when its kind was not, unless there is no namespace to put it into.
    pub fn fits(&self, scopes: &Scopes, has_destination_namespace: bool) -> bool {
        let fits = |kind: &GroupKind, namespace: Option<&str>| match (scopes.get(kind), namespace) {
            (Some(Scope::Cluster), Some(_)) => false,
            (Some(Scope::Namespaced), None) => !has_destination_namespace,
            (Some(Scope::Cluster), None) | (Some(Scope::Namespaced), Some(_)) | (None, _) => true,
        };
        self.objects.keys().all(|key| fits(&key.group_kind(), key.namespace.as_deref()))
            && self
                .hooks
                .iter()
                .all(|hook| fits(&hook.manifest.gvk().group_kind(), hook.namespace.as_deref()))
    }

    /// Is every object that Git asks for in it? Only then may it become [`Complete`].
    pub fn is_whole(&self) -> bool {
        !self.problems.iter().any(DesiredProblem::loses_an_object)
    }
}
