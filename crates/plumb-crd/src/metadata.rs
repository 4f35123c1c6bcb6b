//! The part of `ObjectMeta` that plumb reads.

use std::collections::BTreeMap;

use jiff::Timestamp;
use plumb_core::object::ObjectKey;
use serde_json::Value;

use crate::wire::{RawMap, wire};

wire! {
    /// Names, labels and life cycle of an object.
    pub struct Metadata {
        /// Name.
        "name" name: String,
        /// Namespace.
        "namespace" namespace: String,
        /// Identity of this incarnation of the object.
        "uid" uid: String,
        /// Version of the whole object.
        "resourceVersion" resource_version: String,
        /// Version of everything but metadata and status.
        "generation" generation: i64,
        /// When the object was created.
        "creationTimestamp" creation_timestamp: Option<Timestamp>,
        /// When the deletion was requested.
        "deletionTimestamp" deletion_timestamp: Option<Timestamp>,
        /// Labels.
        "labels" labels: BTreeMap<String, String>,
        /// Annotations.
        "annotations" annotations: BTreeMap<String, String>,
        /// Controllers that must finish before the object is deleted.
        "finalizers" finalizers: Vec<String>,
        /// The owners of the object.
        "ownerReferences" owner_references: Vec<RawMap>,
    }
}

/// A key from the texts of the wire format, where an empty namespace means a cluster-scoped object.
pub(crate) fn object_key(group: &str, kind: &str, namespace: &str, name: &str) -> ObjectKey {
    let namespace = (!namespace.is_empty()).then(|| namespace.to_owned());
    ObjectKey::new(group, kind, namespace, name)
}

/// Namespace and name of any object, even if the rest is invalid; `None` if these cannot be read.
pub fn identify(object: &Value) -> Option<(String, String)> {
    let metadata = object.get("metadata")?;
    let name = metadata.get("name")?.as_str()?;
    let namespace = metadata.get("namespace").and_then(Value::as_str).unwrap_or_default();
    Some((namespace.to_owned(), name.to_owned()))
}
