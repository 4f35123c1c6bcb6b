//! Schemas without an API server: from CRDs, and from a dump of its older `OpenAPI` document.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::SchemaSet;
use crate::object::Manifest;
use crate::tracking::is_crd;

impl SchemaSet {
    /// A copy with the kinds that these CRDs define; other objects are passed over.
    #[must_use]
    pub fn with_crds<'crds>(self, objects: impl IntoIterator<Item = &'crds Manifest>) -> Self {
        let mut documents: BTreeMap<String, Kinds> = BTreeMap::new();
        for crd in objects.into_iter().filter(|object| is_crd(object)) {
            for version in
                crd.value().pointer("/spec/versions").and_then(Value::as_array).into_iter().flatten()
            {
                add(crd.value(), version, &mut documents);
            }
        }
        documents.into_iter().fold(self, |set, (api_version, kinds)| {
            set.with_document(&json!({
                "paths": kinds.paths(&api_version),
                "components": {"schemas": kinds.schemas},
            }))
        })
    }

    /// A copy with everything in a file: a document of `/openapi/v3/…`, or the one of `/openapi/v2`. `None` if it is
    /// neither.
    #[must_use]
    pub fn with_openapi_file(self, document: Value) -> Option<Self> {
        if document.pointer("/components/schemas").is_some_and(Value::is_object) {
            return Some(self.with_document(&document));
        }
        let Value::Object(mut document) = document else { return None };
        let Some(Value::Object(definitions)) = document.remove("definitions") else { return None };
        let mut schemas = Value::Object(definitions);
        rename_references(&mut schemas);
        // The paths of that document are about all groups: without them, each kind counts for its own group version.
        Some(self.with_document(&json!({"components": {"schemas": schemas}})))
    }
}

/// The kinds of one group version.
#[derive(Default)]
struct Kinds {
    schemas: Map<String, Value>,
    /// Plural, kind, and whether `status` is a subresource.
    served: Vec<(String, Value, bool)>,
}

impl Kinds {
    fn paths(&self, api_version: &str) -> Value {
        let mut paths = Map::new();
        for (plural, kind, has_status) in &self.served {
            let path = format!("/apis/{api_version}/{plural}");
            if *has_status {
                let operation = json!({"patch": {"x-kubernetes-group-version-kind": kind}});
                paths.insert(format!("{path}/status"), operation);
            }
            paths.insert(path, json!({}));
        }
        Value::Object(paths)
    }
}

fn add(crd: &Value, version: &Value, documents: &mut BTreeMap<String, Kinds>) {
    let text =
        |value: &Value, pointer: &str| value.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let names = (
        text(crd, "/spec/group"),
        text(version, "/name"),
        text(crd, "/spec/names/kind"),
        text(crd, "/spec/names/plural"),
    );
    let (Some(group), Some(name), Some(kind), Some(plural)) = names else { return };
    let Some(mut schema) = version.pointer("/schema/openAPIV3Schema").cloned() else { return };
    let Some(fields) = schema.as_object_mut() else { return };
    let gvk = json!({"group": group, "version": name, "kind": kind});
    fields.insert("x-kubernetes-group-version-kind".to_owned(), json!([gvk]));
    let properties = fields.entry("properties").or_insert_with(|| json!({}));
    if let Some(properties) = properties.as_object_mut() {
        // The API server publishes every custom resource with these, whatever its CRD says.
        properties.insert("apiVersion".to_owned(), json!({"type": "string"}));
        properties.insert("kind".to_owned(), json!({"type": "string"}));
        properties.insert("metadata".to_owned(), metadata());
    }
    let kinds = documents.entry(format!("{group}/{name}")).or_default();
    kinds.served.push((plural, gvk, version.pointer("/subresources/status").is_some()));
    kinds.schemas.insert(format!("{group}.{name}.{kind}"), schema);
}

/// `ObjectMeta`, as far as a comparison looks at it.
fn metadata() -> Value {
    let text = json!({"type": "string"});
    let texts = json!({"type": "object", "additionalProperties": text});
    json!({"type": "object", "properties": {
        "annotations": texts, "labels": texts,
        "finalizers": {"type": "array", "items": text, "x-kubernetes-list-type": "set"},
        "ownerReferences": {"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["uid"]},
        "managedFields": {"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "atomic"},
        "name": text, "generateName": text, "namespace": text, "uid": text, "selfLink": text,
        "resourceVersion": text, "creationTimestamp": text, "deletionTimestamp": text,
        "generation": {"type": "integer"}, "deletionGracePeriodSeconds": {"type": "integer"},
    }})
}

fn rename_references(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            for (name, value) in map {
                match value {
                    Value::String(reference) if name == "$ref" => {
                        if let Some(target) = reference.strip_prefix("#/definitions/") {
                            *reference = format!("#/components/schemas/{target}");
                        }
                    }
                    value => rename_references(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(rename_references),
        _ => {}
    }
}
