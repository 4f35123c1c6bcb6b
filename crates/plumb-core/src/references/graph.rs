//! Who uses whom, among many objects.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::find::selects;
use super::{Need, Reference, references};
use crate::object::{FieldPath, GroupKind, Manifest, ObjectKey};
use crate::tracking::is_crd;

/// For each object, the objects that refer to it, each with the field that does.
pub type Users = BTreeMap<ObjectKey, Vec<(ObjectKey, Reference)>>;

/// Who uses whom: by name, by selector, and by kind. An object in a namespace uses the namespace; an object of a custom
/// kind uses the CRD of the kind.
pub fn users<'objects>(objects: impl Iterator<Item = (&'objects ObjectKey, &'objects Manifest)>) -> Users {
    let objects: BTreeMap<&ObjectKey, &Manifest> = objects.collect();
    let mut users = Users::new();
    let definitions: BTreeMap<GroupKind, &ObjectKey> = objects
        .iter()
        .filter(|(_, object)| is_crd(object))
        .filter_map(|(key, crd)| Some((defines(crd)?, *key)))
        .collect();
    let templates = Templates::of(&objects);
    for (key, object) in &objects {
        let mut found = references(object, None);
        if let Some(definition) = definitions.get(&key.group_kind()) {
            found.push(used(definition, FieldPath::root().field("kind"), Need::Blocks));
        }
        found.extend(templates.selected_by(key, object));
        found.extend(aggregated(object, &objects));
        for reference in found.into_iter().filter(|reference| reference.to != **key) {
            users.entry(reference.to.clone()).or_default().push(((*key).clone(), reference));
        }
    }
    for found in users.values_mut() {
        found.sort();
        // One object may name another in many fields; who it is counts.
        let mut seen = BTreeSet::new();
        found.retain(|(user, _)| seen.insert(user.clone()));
    }
    users
}

fn used(key: &ObjectKey, field: FieldPath, need: Need) -> Reference {
    Reference { to: key.clone(), field, need }
}

/// The kind that a CRD defines.
fn defines(crd: &Manifest) -> Option<GroupKind> {
    let text = |pointer: &str| crd.value().pointer(pointer).and_then(Value::as_str);
    Some(GroupKind::new(text("/spec/group")?, text("/spec/names/kind")?))
}

/// The workloads by namespace, with the labels of their pods.
struct Templates<'objects>(BTreeMap<Option<&'objects str>, Vec<(&'objects ObjectKey, &'objects Value)>>);

impl<'objects> Templates<'objects> {
    fn of(objects: &BTreeMap<&'objects ObjectKey, &'objects Manifest>) -> Self {
        let mut templates: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (key, object) in objects {
            let labels = object.value().pointer("/spec/template/metadata/labels");
            // A ReplicaSet or a Job of a CronJob belongs to the workload above it.
            let is_owned = object.value().pointer("/metadata/ownerReferences/0").is_some();
            if let Some(labels) = labels.filter(|_| !is_owned) {
                templates.entry(key.namespace.as_deref()).or_default().push((*key, labels));
            }
        }
        Self(templates)
    }

    /// The workloads whose pods a Service selects.
    fn selected_by(&self, key: &ObjectKey, object: &Manifest) -> Vec<Reference> {
        if !(key.group.is_empty() && key.kind == "Service") {
            return Vec::new();
        }
        let selector = object.value().pointer("/spec/selector").unwrap_or(&Value::Null);
        let field = FieldPath::root().field("spec").field("selector");
        let here = self.0.get(&key.namespace.as_deref()).into_iter().flatten();
        let selected = here.filter(|(_, labels)| selects(selector, labels));
        selected.map(|(workload, _)| used(workload, field.clone(), Need::Works)).collect()
    }
}

/// The roles that an aggregated role consists of.
fn aggregated(object: &Manifest, objects: &BTreeMap<&ObjectKey, &Manifest>) -> Vec<Reference> {
    let is_role = |kind: &str, group: &str| kind == "ClusterRole" && group == "rbac.authorization.k8s.io";
    if !is_role(object.kind(), object.group()) {
        return Vec::new();
    }
    let selectors = object.value().pointer("/aggregationRule/clusterRoleSelectors").and_then(Value::as_array);
    let Some(selectors) = selectors else { return Vec::new() };
    let field = FieldPath::root().field("aggregationRule").field("clusterRoleSelectors");
    let roles = objects.iter().filter(|(key, _)| is_role(&key.kind, &key.group));
    let parts = roles.filter(|(_, role)| {
        let labels = role.value().pointer("/metadata/labels").unwrap_or(&Value::Null);
        let matches = |selector: &Value| selects(selector.get("matchLabels").unwrap_or(&Value::Null), labels);
        selectors.iter().any(matches)
    });
    parts.map(|(key, _)| used(key, field.clone(), Need::Works)).collect()
}
