//! What is unhealthy in a dump, and why.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::LiveDump;
use crate::doctor::UnhealthyFact;
use crate::health::{
    Health, HealthHistory, HealthStatus, KnownFrom, Node, ProgressLimits, Since, chain, explained,
    looping_since, since, stuck,
};
use crate::object::{Manifest, ObjectKey};

/// So many levels of owned objects are looked at: a custom resource, a workload, a replica set, a pod.
const MAX_DEPTH: usize = 8;
/// So many owned objects of one object are looked at.
const MAX_DESCENDANTS: usize = 200;

/// The unhealthy ones among these objects, with the chain of causes down to the pod if the dump has the pods.
pub fn unhealthy<'keys>(
    live: &LiveDump,
    keys: impl IntoIterator<Item = &'keys ObjectKey>,
    now: Timestamp,
) -> Vec<UnhealthyFact> {
    let mut children: BTreeMap<&str, Vec<&Manifest>> = BTreeMap::new();
    for object in live.values() {
        for owner in owners(object) {
            children.entry(owner).or_default().push(object);
        }
    }
    let objects = keys.into_iter().filter_map(|key| Some((key, live.get(key)?)));
    objects.filter_map(|(key, object)| fact(key, object, &children, now)).collect()
}

fn owners(object: &Manifest) -> impl Iterator<Item = &str> {
    let owners = object.value().pointer("/metadata/ownerReferences").and_then(serde_json::Value::as_array);
    owners.into_iter().flatten().filter_map(|owner| owner.get("uid")?.as_str())
}

fn fact(
    key: &ObjectKey,
    object: &Manifest,
    children: &BTreeMap<&str, Vec<&Manifest>>,
    now: Timestamp,
) -> Option<UnhealthyFact> {
    let mut budget = MAX_DESCENDANTS;
    let tree = tree(object, children, MAX_DEPTH, &mut budget);
    let causes = chain(&tree);
    let last = causes.last().and_then(|cause| find(&tree, cause.key.as_ref()?));
    let is_well = |health: &Health| matches!(health.status, HealthStatus::Healthy | HealthStatus::Suspended);
    // An object without its own health is unhealthy if one of its children is.
    let own = tree.health.clone();
    let (status, health, ill) = match (&own, last) {
        (Some(health), _) if !is_well(health) => (health.status.to_string(), health.clone(), object),
        (None, Some(node)) if node.health.as_ref()?.status == HealthStatus::Degraded => {
            (String::new(), Health::new(HealthStatus::Degraded, ""), node.object)
        }
        _ => return None,
    };
    let mut began = since(ill, &health, HealthHistory { record: None, last_look: None }, now);
    if let Some(looping) = last.and_then(|node| looping_since(node.object, now)) {
        began = Since { at: began.at.min(looping), known_from: KnownFrom::Pod };
    }
    let is_stuck = own.is_some() && stuck(&tree, &health, began, &ProgressLimits::default(), now).is_some();
    let causes = if causes.is_empty() {
        vec![explained(health, &tree, &causes, is_stuck).to_string()]
    } else {
        causes.iter().map(ToString::to_string).collect()
    };
    let since = (began.known_from != KnownFrom::Seen).then_some(began.at);
    Some(UnhealthyFact { key: key.clone(), status, since, is_stuck, causes })
}

fn tree<'live>(
    object: &'live Manifest,
    children: &BTreeMap<&str, Vec<&'live Manifest>>,
    depth: usize,
    budget: &mut usize,
) -> Node<'live> {
    let mut node = Node::leaf(object);
    let owned = object.uid().and_then(|uid| children.get(uid)).filter(|_| depth > 0);
    for child in owned.into_iter().flatten() {
        if *budget == 0 {
            break;
        }
        *budget -= 1;
        node.children.push(tree(child, children, depth - 1, budget));
    }
    node
}

fn find<'node, 'live>(node: &'node Node<'live>, key: &ObjectKey) -> Option<&'node Node<'live>> {
    if node.object.key().as_ref() == Some(key) {
        return Some(node);
    }
    node.children.iter().find_map(|child| find(child, key))
}
