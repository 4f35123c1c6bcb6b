//! A Kubernetes object as data.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{GroupVersionKind, ObjectKey};

/// A Kubernetes object as untyped JSON. Invariant: it is a map with non-empty string `apiVersion` and `kind`,
/// and `metadata` is absent or a map. A name is not guaranteed: hooks may use `generateName`.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest(Value);

/// Why a value is not a Kubernetes object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAnObject {
    /// The document is a list, a string, a number …
    #[error("a Kubernetes object is a map, this is {found}")]
    NotAMap {
        /// What it is instead.
        found: &'static str,
    },
    /// `apiVersion`, `kind` or `metadata` is missing or has the wrong type.
    #[error("a Kubernetes object needs `{field}` ({expected})")]
    Field {
        /// Which field.
        field: &'static str,
        /// What is expected there.
        expected: &'static str,
    },
}

impl Manifest {
    /// Checks the invariant.
    pub fn new(value: Value) -> Result<Self, NotAnObject> {
        let map = match &value {
            Value::Object(map) => map,
            Value::Null => return Err(NotAnObject::NotAMap { found: "null" }),
            Value::Bool(_) => return Err(NotAnObject::NotAMap { found: "a boolean" }),
            Value::Number(_) => return Err(NotAnObject::NotAMap { found: "a number" }),
            Value::String(_) => return Err(NotAnObject::NotAMap { found: "a string" }),
            Value::Array(_) => return Err(NotAnObject::NotAMap { found: "a list" }),
        };
        for field in ["apiVersion", "kind"] {
            if map.get(field).and_then(Value::as_str).is_none_or(str::is_empty) {
                return Err(NotAnObject::Field { field, expected: "a non-empty string" });
            }
        }
        if map.get("metadata").is_some_and(|metadata| !metadata.is_object() && !metadata.is_null()) {
            return Err(NotAnObject::Field { field: "metadata", expected: "a map" });
        }
        Ok(Self(value))
    }

    /// The object as JSON.
    pub fn value(&self) -> &Value {
        &self.0
    }

    /// Takes the JSON out.
    pub fn into_value(self) -> Value {
        self.0
    }

    fn text(&self, field: &str) -> &str {
        self.0.get(field).and_then(Value::as_str).unwrap_or_default()
    }

    fn metadata_text(&self, field: &str) -> Option<&str> {
        self.0.get("metadata")?.get(field)?.as_str().filter(|text| !text.is_empty())
    }

    /// `apiVersion`, never empty.
    pub fn api_version(&self) -> &str {
        self.text("apiVersion")
    }

    /// `kind`, never empty.
    pub fn kind(&self) -> &str {
        self.text("kind")
    }

    /// Group, version and kind.
    pub fn gvk(&self) -> GroupVersionKind {
        GroupVersionKind::from_api_version(self.api_version(), self.kind())
    }

    /// API group, empty for the core group.
    pub fn group(&self) -> &str {
        self.api_version().rsplit_once('/').map_or("", |(group, _)| group)
    }

    /// `metadata.name`, if it has one.
    pub fn name(&self) -> Option<&str> {
        self.metadata_text("name")
    }

    /// `metadata.generateName`, if it has one.
    pub fn generate_name(&self) -> Option<&str> {
        self.metadata_text("generateName")
    }

    /// `metadata.namespace`, if it has one.
    pub fn namespace(&self) -> Option<&str> {
        self.metadata_text("namespace")
    }

    /// `metadata.uid`, if the object was read from a cluster.
    pub fn uid(&self) -> Option<&str> {
        self.metadata_text("uid")
    }

    /// `metadata.resourceVersion`, if the object was read from a cluster.
    pub fn resource_version(&self) -> Option<&str> {
        self.metadata_text("resourceVersion")
    }

    /// Does it have a `metadata.deletionTimestamp`?
    pub fn is_terminating(&self) -> bool {
        self.metadata_text("deletionTimestamp").is_some()
    }

    /// `metadata.creationTimestamp`, if it has one that can be read.
    pub fn created_at(&self) -> Option<Timestamp> {
        self.metadata_text("creationTimestamp")?.parse().ok()
    }

    /// `metadata.deletionTimestamp`, if it has one that can be read.
    pub fn deleting_since(&self) -> Option<Timestamp> {
        self.metadata_text("deletionTimestamp")?.parse().ok()
    }

    /// Identity as the manifest states it; `None` without a name.
    pub fn key(&self) -> Option<ObjectKey> {
        Some(ObjectKey::new(
            self.group().to_owned(),
            self.kind().to_owned(),
            self.namespace().map(str::to_owned),
            self.name()?.to_owned(),
        ))
    }

    /// One annotation.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.0.get("metadata")?.get("annotations")?.get(key)?.as_str()
    }

    /// One label.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.0.get("metadata")?.get("labels")?.get(key)?.as_str()
    }

    /// All annotations whose values are strings.
    pub fn annotations(&self) -> BTreeMap<&str, &str> {
        self.metadata_map("annotations")
    }

    /// All labels whose values are strings.
    pub fn labels(&self) -> BTreeMap<&str, &str> {
        self.metadata_map("labels")
    }

    fn metadata_map(&self, field: &str) -> BTreeMap<&str, &str> {
        self.0
            .get("metadata")
            .and_then(|metadata| metadata.get(field))
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
            .collect()
    }

    /// A copy with one annotation set.
    #[must_use]
    pub fn with_annotation(self, key: &str, text: &str) -> Self {
        self.with_metadata_entry("annotations", key, text)
    }

    /// A copy with one label set.
    #[must_use]
    pub fn with_label(self, key: &str, text: &str) -> Self {
        self.with_metadata_entry("labels", key, text)
    }

    fn with_metadata_entry(self, field: &str, key: &str, text: &str) -> Self {
        self.edit_metadata(|metadata| {
            let entries = metadata.entry(field).or_insert_with(|| Value::Object(Map::new()));
            if !entries.is_object() {
                *entries = Value::Object(Map::new());
            }
            if let Value::Object(entries) = entries {
                entries.insert(key.to_owned(), Value::String(text.to_owned()));
            }
        })
    }

    /// A copy in this namespace; `None` removes it.
    #[must_use]
    pub fn with_namespace(self, namespace: Option<&str>) -> Self {
        self.edit_metadata(|metadata| match namespace {
            Some(namespace) => {
                metadata.insert("namespace".to_owned(), Value::String(namespace.to_owned()));
            }
            None => {
                metadata.remove("namespace");
            }
        })
    }

    /// A copy whose metadata went through `edit`.
    #[must_use]
    pub fn edit_metadata(self, edit: impl FnOnce(&mut Map<String, Value>)) -> Self {
        let Value::Object(mut map) = self.0 else { return self };
        let metadata = map.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
        if metadata.is_null() {
            *metadata = Value::Object(Map::new());
        }
        if let Value::Object(metadata) = metadata {
            edit(metadata);
        }
        Self(Value::Object(map))
    }

    /// A copy whose `spec` went through `edit`; without a `spec` nothing happens.
    #[must_use]
    pub fn edit_spec(self, edit: impl FnOnce(&mut Value)) -> Self {
        let Value::Object(mut map) = self.0 else { return self };
        if let Some(spec) = map.get_mut("spec") {
            edit(spec);
        }
        Self(Value::Object(map))
    }
}
