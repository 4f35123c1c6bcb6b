//! The order in which orphans can go.

use std::collections::{BTreeMap, BTreeSet};

use crate::object::ObjectKey;

/// Users before what they use. Among those that nothing holds back: webhooks first, since one without its service blocks
/// all writes; then bindings, then namespaced objects, then those of the cluster; CRDs, volumes and namespaces last.
/// `used_by` has, for each orphan, the orphans that use it. A circle is broken at its first object by this order.
pub fn order(used_by: &BTreeMap<ObjectKey, BTreeSet<ObjectKey>>) -> Vec<ObjectKey> {
    let mut waiting: BTreeSet<(u8, ObjectKey)> = used_by.keys().map(|key| (rank(key), key.clone())).collect();
    let mut gone: BTreeSet<ObjectKey> = BTreeSet::new();
    let mut ordered = Vec::with_capacity(waiting.len());
    while !waiting.is_empty() {
        let is_free = |(_, key): &&(u8, ObjectKey)| {
            used_by.get(key).is_none_or(|users| users.iter().all(|user| gone.contains(user)))
        };
        let next = waiting.iter().find(is_free).or_else(|| waiting.first()).cloned();
        let Some(next) = next else { break };
        waiting.remove(&next);
        gone.insert(next.1.clone());
        ordered.push(next.1);
    }
    ordered
}

fn rank(key: &ObjectKey) -> u8 {
    match (key.group.as_str(), key.kind.as_str()) {
        ("admissionregistration.k8s.io", _) => 0,
        ("apiregistration.k8s.io", _) => 1,
        ("rbac.authorization.k8s.io", kind) if kind.ends_with("Binding") => 2,
        ("", "PersistentVolumeClaim") => 4,
        ("apiextensions.k8s.io", _) => 6,
        ("", "PersistentVolume") => 7,
        ("", "Namespace") => 8,
        _ if key.namespace.is_some() => 3,
        _ => 5,
    }
}
