//! Fields of custom resources whose values are secrets: those that the settings name
//! (`resource.sensitive.mask.fields`), those of a few well-known kinds, and those whose schema says `format: password`.

use serde_json::Value;

use super::node::{Field, Schema, Shape};
use crate::object::GroupKind;

/// A field of one kind whose value is a secret.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SensitiveField {
    /// Whose field.
    pub kind: GroupKind,
    /// Its way from the root. `*` is every key of a map or every item of a list.
    way: Vec<String>,
}

/// Kinds that hold the values of Secrets in other objects.
const WELL_KNOWN: [(&str, &str, &str); 7] = [
    ("isindir.github.com", "SopsSecret", "/spec/secretTemplates/*/data/*"),
    ("isindir.github.com", "SopsSecret", "/spec/secretTemplates/*/stringData/*"),
    ("secretgenerator.mittwald.de", "StringSecret", "/spec/data/*"),
    ("kubernetes.crossplane.io", "Object", "/spec/forProvider/manifest/data/*"),
    ("kubernetes.crossplane.io", "Object", "/spec/forProvider/manifest/stringData/*"),
    ("bootstrap.cluster.x-k8s.io", "KubeadmConfig", "/spec/users/*/passwd"),
    ("bootstrap.cluster.x-k8s.io", "KubeadmConfig", "/spec/joinConfiguration/discovery/bootstrapToken/token"),
];

impl SensitiveField {
    /// From a JSON pointer in which `*` is every key or item. `None` for the whole object.
    pub fn new(kind: GroupKind, pointer: &str) -> Option<Self> {
        let parts = pointer.strip_prefix('/')?.split('/');
        let way: Vec<String> = parts.map(|part| part.replace("~1", "/").replace("~0", "~")).collect();
        way.iter().all(|part| !part.is_empty()).then_some(Self { kind, way })
    }

    /// What is sensitive without settings.
    pub fn built_in() -> Vec<Self> {
        let fields = WELL_KNOWN.into_iter();
        fields.filter_map(|(group, kind, field)| Self::new(GroupKind::new(group, kind), field)).collect()
    }

    /// Calls `change` for every value at this place of the object.
    pub fn change(&self, object: &mut Value, change: &mut dyn FnMut(&mut Value)) {
        change_at(object, &self.way, change);
    }
}

fn change_at(value: &mut Value, way: &[String], change: &mut dyn FnMut(&mut Value)) {
    let Some((step, rest)) = way.split_first() else { return change(value) };
    match value {
        Value::Object(map) if step == "*" => {
            for value in map.values_mut() {
                change_at(value, rest, change);
            }
        }
        Value::Array(items) if step == "*" => {
            for value in items {
                change_at(value, rest, change);
            }
        }
        Value::Object(map) => {
            if let Some(value) = map.get_mut(step) {
                change_at(value, rest, change);
            }
        }
        Value::Array(items) => {
            if let Some(value) = step.parse::<usize>().ok().and_then(|at| items.get_mut(at)) {
                change_at(value, rest, change);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Calls `change` for every value whose schema says `format: password`.
pub(super) fn change_passwords(value: &mut Value, schema: Schema<'_>, change: &mut dyn FnMut(&mut Value)) {
    if schema.is_password() {
        return change(value);
    }
    match (value, schema.shape()) {
        (Value::Object(map), _) => {
            for (name, value) in map {
                if let Field::Known(schema) = schema.field(name) {
                    change_passwords(value, schema, change);
                }
            }
        }
        (Value::Array(list), Shape::List { items, .. }) => {
            for value in list {
                change_passwords(value, items, change);
            }
        }
        (Value::Array(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_), _) => {}
    }
}
