//! Orphans among all objects of a cluster.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::cause::{Owners, is_proven};
use super::order::order;
use super::{Hold, KnownApp, LastSign, Orphan, User};
use crate::desired::{ObjectOptions, PruneOption};
use crate::object::{Manifest, ObjectKey};
use crate::plan::never_deleted;
use crate::references::{Need, Users, users};
use crate::tracking::TrackingSettings;

/// The orphans among these objects, in the order in which they can go. `control_plane` is the namespace of plumb or
/// Argo CD, if the objects are of that cluster.
pub fn find(
    objects: &BTreeMap<ObjectKey, Manifest>,
    apps: &[KnownApp],
    tracking: &TrackingSettings,
    control_plane: Option<&str>,
) -> Vec<Orphan> {
    let owners = Owners::new(objects, apps, tracking);
    let causes: BTreeMap<&ObjectKey, super::Cause> =
        objects.iter().filter_map(|(key, object)| Some((key, owners.cause(key, object)?))).collect();
    let all_users = users(objects.iter());
    let takes = taken_along(objects);
    let mut orphans: BTreeMap<ObjectKey, Orphan> = BTreeMap::new();
    for (key, cause) in &causes {
        let Some(object) = objects.get(*key) else { continue };
        let users = users_of(key, &all_users, objects, &owners, |user| causes.contains_key(user));
        let hold = hold(key, object, &users, control_plane)
            .or_else(|| takes.get(*key).copied().map(Hold::Data))
            .map(|hold| if is_proven(cause, object) { hold } else { unproven(hold) })
            .or_else(|| (!is_proven(cause, object)).then_some(Hold::Unproven(None)));
        let orphan = Orphan {
            key: (*key).clone(),
            cause: cause.clone(),
            users,
            last_sign: LastSign::of(object),
            hold,
        };
        orphans.insert((*key).clone(), orphan);
    }
    let used_by: BTreeMap<ObjectKey, BTreeSet<ObjectKey>> = orphans
        .iter()
        .map(|(key, orphan)| {
            let users = orphan.users.iter().filter_map(|user| user.orphan.clone());
            (key.clone(), users.filter(|user| user != key).collect())
        })
        .collect();
    order(&used_by).iter().filter_map(|key| orphans.remove(key)).collect()
}

fn users_of(
    key: &ObjectKey,
    all: &Users,
    objects: &BTreeMap<ObjectKey, Manifest>,
    owners: &Owners<'_>,
    is_orphan: impl Fn(&ObjectKey) -> bool,
) -> Vec<User> {
    let found = all.get(key).into_iter().flatten();
    let counted = found.filter(|(user, _)| !(key.kind == "Namespace" && is_of_every_namespace(user)));
    let user = counted.map(|(user, reference)| User {
        key: user.clone(),
        field: reference.field.clone(),
        app: objects.get(user).and_then(|object| owners.app_of(object)),
        orphan: Some(root_of(user, objects).unwrap_or_else(|| user.clone())).filter(|root| is_orphan(root)),
        is_optional: reference.need == Need::Optional || objects.get(user).is_some_and(is_idle),
    });
    user.collect()
}

/// Is it only a record of something that ran? An earlier revision of a Deployment, a pod or Job that has ended.
fn is_idle(object: &Manifest) -> bool {
    let value = object.value();
    match (object.group(), object.kind()) {
        ("apps", "ReplicaSet") => {
            let is_owned = value.pointer("/metadata/ownerReferences/0").is_some();
            is_owned && value.pointer("/spec/replicas").and_then(Value::as_u64) == Some(0)
        }
        ("", "Pod") => {
            matches!(value.pointer("/status/phase").and_then(Value::as_str), Some("Succeeded" | "Failed"))
        }
        ("batch", "Job") => value.pointer("/status/completionTime").is_some(),
        _ => false,
    }
}

/// The object that owns this one, through all levels: a pod goes with its Deployment.
fn root_of(key: &ObjectKey, objects: &BTreeMap<ObjectKey, Manifest>) -> Option<ObjectKey> {
    let mut current = key.clone();
    for _ in 0..MOST_LEVELS {
        let Some(owner) = owners_of(&current, objects).into_iter().next() else { break };
        current = owner;
    }
    (current != *key).then_some(current)
}

/// A circle of owners comes to an end.
const MOST_LEVELS: usize = 8;

/// The objects that own this one, as far as they exist.
fn owners_of(key: &ObjectKey, objects: &BTreeMap<ObjectKey, Manifest>) -> Vec<ObjectKey> {
    let owners = objects.get(key).and_then(|object| object.value().pointer("/metadata/ownerReferences"));
    let owner = |owner: &Value| {
        let text = |name: &str| owner.get(name).and_then(Value::as_str);
        let (version, kind, name) = (text("apiVersion")?, text("kind")?, text("name")?);
        let group = version.rsplit_once('/').map_or("", |(group, _)| group);
        let inside = ObjectKey::new(group, kind, key.namespace.clone(), name);
        let owner = if objects.contains_key(&inside) { inside } else { inside.with_namespace(None) };
        objects.contains_key(&owner).then_some(owner)
    };
    owners.and_then(Value::as_array).into_iter().flatten().filter_map(owner).collect()
}

/// What a deletion takes along, beside the object itself: volume claims that it owns, and everything that an Application
/// deployed which deletes its objects.
fn taken_along(objects: &BTreeMap<ObjectKey, Manifest>) -> BTreeMap<ObjectKey, &'static str> {
    const CLAIMS: &str = "the volume of a claim that it owns";
    const DEPLOYED: &str = "everything that its Application deployed";
    let mut taken = BTreeMap::new();
    for (key, object) in objects {
        let what = match (key.group.as_str(), key.kind.as_str()) {
            ("", "PersistentVolumeClaim") => CLAIMS,
            ("argoproj.io", "Application") if deletes_its_objects(object) => DEPLOYED,
            _ => continue,
        };
        if what == DEPLOYED {
            taken.insert(key.clone(), DEPLOYED);
        }
        // Of an object with several owners, each one counts: the others may go before.
        let mut above: BTreeSet<ObjectKey> = owners_of(key, objects).into_iter().collect();
        for _ in 0..MOST_LEVELS {
            let further = above.iter().flat_map(|owner| owners_of(owner, objects)).collect::<Vec<_>>();
            above.extend(further);
        }
        for owner in above {
            taken.entry(owner).or_insert(what);
        }
    }
    // Its controller adds itself as the owner of the claims, and may not have come to it.
    let sets = objects.iter().filter(|(key, _)| key.group == "apps" && key.kind == "StatefulSet");
    for (key, object) in sets {
        let policy = object.value().pointer("/spec/persistentVolumeClaimRetentionPolicy/whenDeleted");
        let templates = object.value().pointer("/spec/volumeClaimTemplates/0");
        if policy.is_some_and(|policy| policy == "Delete") && templates.is_some() {
            taken.entry(key.clone()).or_insert(CLAIMS);
        }
    }
    taken
}

/// Does the deletion of this Application delete what it deployed?
fn deletes_its_objects(application: &Manifest) -> bool {
    const CASCADE: &str = "resources-finalizer.argocd.argoproj.io";
    let finalizers = application.value().pointer("/metadata/finalizers").and_then(Value::as_array);
    let mut finalizers = finalizers.into_iter().flatten().filter_map(Value::as_str);
    finalizers.any(|finalizer| finalizer.split('/').next() == Some(CASCADE))
}

/// Objects that Kubernetes itself puts into each namespace.
fn is_of_every_namespace(key: &ObjectKey) -> bool {
    matches!(
        (key.group.as_str(), key.kind.as_str(), key.name.as_str()),
        ("", "ServiceAccount", "default") | ("", "ConfigMap", "kube-root-ca.crt")
    )
}

/// The hold of an object that only a mark calls an orphan.
fn unproven(hold: Hold) -> Hold {
    match hold {
        Hold::Data(what) => Hold::Unproven(Some(what)),
        Hold::Used | Hold::Never(_) | Hold::Kept | Hold::Unproven(_) => hold,
    }
}

fn hold(key: &ObjectKey, object: &Manifest, users: &[User], control_plane: Option<&str>) -> Option<Hold> {
    if let Some(why) = never_deleted(key, control_plane) {
        return Some(Hold::Never(why));
    }
    if users.iter().any(|user| user.orphan.is_none() && !user.is_optional) {
        return Some(Hold::Used);
    }
    let options = ObjectOptions::parse(object);
    let is_kept = [options.prune, options.delete].contains(&Some(PruneOption::Never));
    if is_kept || options.helm_keep {
        return Some(Hold::Kept);
    }
    match (key.group.as_str(), key.kind.as_str()) {
        ("", "PersistentVolumeClaim") => Some(Hold::Data("the claim's volume")),
        ("", "PersistentVolume") => Some(Hold::Data("the volume")),
        ("", "Namespace") => Some(Hold::Data("everything in the namespace")),
        _ => None,
    }
}
