//! Queries about the objects of a cluster, answered from memory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use plumb_core::object::{GroupKind, ObjectKey};

use super::feeder::number;
use super::record::{Node, Uid};
use super::state::{Id, State};
use super::store::LiveStore;

/// Size of the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreSize {
    /// Number of objects.
    pub n_objects: usize,
    /// Number of objects that are kept whole.
    pub n_whole: usize,
    /// Compressed bytes of the objects that are kept whole.
    pub whole_bytes: usize,
}

impl LiveStore {
    /// True if the store has reached the resource version that a write returned. Before that, the store may
    /// show the object's state from before the write. A kind that is not watched is read from the server,
    /// which is always up to date.
    pub fn has_caught_up(&self, key: &ObjectKey, resource_version: &str) -> bool {
        let version = number(resource_version);
        let state = self.core.state();
        if let Some(record) = state.find_key(key).and_then(|id| state.record(id)) {
            return record.version >= version;
        }
        let Some((_, table)) = state.table_of(&key.group_kind()) else { return true };
        let covers = |namespace: &Option<String>| namespace.is_none() || *namespace == key.namespace;
        table.scopes.iter().any(|scope| covers(&scope.namespace) && scope.position >= version)
    }

    /// True if the store has an object of this key.
    pub fn contains(&self, key: &ObjectKey) -> bool {
        self.core.state().find_key(key).is_some()
    }

    /// One object as the tree shows it.
    pub fn node(&self, key: &ObjectKey) -> Option<Node> {
        let state = self.core.state();
        state.node(state.find_key(key)?)
    }

    /// One object as the tree shows it, by uid.
    pub fn node_of(&self, uid: &Uid) -> Option<Node> {
        let state = self.core.state();
        state.node(state.by_uid(uid)?)
    }

    /// The objects that this one owns, by reference or by inference.
    pub fn children(&self, uid: &Uid) -> Vec<Node> {
        let state = self.core.state();
        nodes(&state, state.children(uid))
    }

    /// The objects that an app tracks, and all their descendants.
    pub fn tree(&self, instance: &str) -> Vec<Node> {
        let state = self.core.state();
        let roots = state.tracked(instance);
        nodes(&state, state.tree(&roots))
    }

    /// The objects that an app tracks, without descendants.
    pub fn tracked(&self, instance: &str) -> Vec<Node> {
        let state = self.core.state();
        let ids = state.tracked(instance);
        nodes(&state, ids)
    }

    /// The app instance names in the tracking marks of all objects.
    pub fn instances(&self) -> BTreeSet<Arc<str>> {
        self.core.state().instances()
    }

    /// The objects that refer to this one by name: users of a `ConfigMap`, Secret, claim or account,
    /// bindings of a role, webhooks of a Service, scalers of a workload; and the instances of a CRD.
    pub fn referrers(&self, key: &ObjectKey) -> Vec<Node> {
        let state = self.core.state();
        let mut ids = state.referrers(key);
        if key.group == "apiextensions.k8s.io" && key.kind == "CustomResourceDefinition" {
            ids.extend(instances_of_crd(&state, &key.name));
        }
        nodes(&state, ids)
    }

    /// How many objects of a kind there are; `None` if the kind is not watched.
    pub fn count(&self, kind: &GroupKind) -> Option<usize> {
        let state = self.core.state();
        state.table_of(kind).map(|(_, table)| table.names.len())
    }

    /// All objects of a kind.
    pub fn of_kind(&self, kind: &GroupKind) -> Vec<Node> {
        let state = self.core.state();
        let ids = state.table_of(kind).map(|(_, table)| table.names.values().copied().collect());
        nodes(&state, ids.unwrap_or_default())
    }

    /// All objects of a namespace.
    pub fn in_namespace(&self, namespace: &str) -> Vec<Node> {
        let state = self.core.state();
        let here = state.all().filter(|(_, record)| record.address.namespace.as_deref() == Some(namespace));
        let ids = here.map(|(id, _)| id).collect();
        nodes(&state, ids)
    }

    /// How many objects of each kind there are.
    pub fn counts(&self) -> BTreeMap<GroupKind, usize> {
        let state = self.core.state();
        let mut counts = BTreeMap::new();
        for (_, record) in state.all() {
            *counts.entry(record.address.kind).or_insert(0) += 1;
        }
        let named = counts
            .into_iter()
            .filter_map(|(kind, n): (u32, usize)| Some((state.table(kind)?.resource.gvk.group_kind(), n)));
        named.collect()
    }

    /// How many kinds are watched.
    pub fn n_kinds(&self) -> usize {
        self.core.state().tables().count()
    }

    /// Size of the store.
    pub fn size(&self) -> StoreSize {
        let (n_objects, n_whole, whole_bytes) = self.core.state().size();
        StoreSize { n_objects, n_whole, whole_bytes }
    }
}

fn nodes(state: &State, ids: Vec<Id>) -> Vec<Node> {
    let mut nodes: Vec<Node> = ids.into_iter().filter_map(|id| state.node(id)).collect();
    nodes.sort_by(|a, b| a.key.cmp(&b.key));
    nodes
}

/// The name of a CRD is `<plural>.<group>`.
fn instances_of_crd(state: &State, name: &str) -> Vec<Id> {
    let Some((plural, group)) = name.split_once('.') else { return Vec::new() };
    let tables =
        state.tables().filter(|table| table.resource.gvk.group == group && table.resource.plural == plural);
    tables.flat_map(|table| table.names.values().copied()).collect()
}
