use serde_json::json;

use super::*;
use crate::object::GroupVersionKind;

#[test]
fn lists_and_scalars_are_told_apart() {
    let document = json!({
        "paths": {"/apis/x.io/v1/namespaces/{namespace}/things/{name}/status": {
            "get": {"x-kubernetes-group-version-kind": {"group": "x.io", "version": "v1", "kind": "Thing"}}}},
        "components": {"schemas": {
            "io.x.v1.Thing": {
                "type": "object",
                "x-kubernetes-group-version-kind": [{"group": "x.io", "version": "v1", "kind": "Thing"}],
                "properties": {
                    "metadata": {"type": "object"},
                    "spec": {"type": "object", "properties": {
                        "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
                        "ports": {"type": "array", "x-kubernetes-list-type": "map",
                            "x-kubernetes-list-map-keys": ["port"], "items": {"type": "object"}},
                        "plain": {"type": "array", "items": {"type": "integer"}},
                        "cpu": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}],
                            "pattern": "^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))))?$"},
                        "max": {"x-kubernetes-int-or-string": true},
                        "mode": {"type": "string", "default": "Auto"},
                        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                    }},
                },
            },
        }},
    });
    let set = SchemaSet::from_openapi([&document]);
    let kind = set.kind(&GroupVersionKind::from_api_version("x.io/v1", "Thing")).unwrap();
    assert!(kind.has_status_subresource);
    let Field::Known(spec) = kind.root.field("spec") else { panic!("spec is declared") };
    let shape = |name: &str| match spec.field(name) {
        Field::Known(schema) => format!("{:?}", schema.shape()),
        Field::Open => "open".to_owned(),
        Field::Unknown => "unknown".to_owned(),
    };
    assert!(shape("tags").contains("Set"), "{}", shape("tags"));
    assert!(shape("ports").contains("Map([\"port\"])"), "{}", shape("ports"));
    assert!(shape("plain").contains("Atomic"), "{}", shape("plain"));
    assert_eq!(shape("cpu"), "Scalar(QuantityText)");
    assert_eq!(shape("max"), "Scalar(IntOrString)");
    assert_eq!(shape("free"), "Any");
    assert_eq!(shape("typo"), "unknown");
    let Field::Known(mode) = spec.field("mode") else { panic!("mode is declared") };
    assert_eq!(mode.default(), Some(&json!("Auto")));
}

#[test]
fn a_new_default_changes_the_fingerprint_of_that_kind_only() {
    let document = |default: Option<&str>| {
        let mut mode = json!({"type": "string"});
        if let Some(default) = default {
            mode["default"] = json!(default);
        }
        let kind = |name: &str, spec: serde_json::Value| {
            json!({"type": "object", "x-kubernetes-group-version-kind": [{"group": "x.io", "version": "v1", "kind": name}],
                "properties": {"metadata": {"type": "object"}, "spec": spec}})
        };
        json!({"components": {"schemas": {
            "io.x.v1.A": kind("A", json!({"type": "object", "properties": {"mode": mode}})),
            "io.x.v1.B": kind("B", json!({"type": "object"})),
        }}})
    };
    let fingerprint = |document: &serde_json::Value, kind: &str| {
        let set = SchemaSet::from_openapi([document]);
        set.kind(&GroupVersionKind::from_api_version("x.io/v1", kind)).unwrap().fingerprint
    };
    let (old, new) = (document(None), document(Some("Auto")));
    let text_hash = |document: &serde_json::Value, kind: &str| {
        let set = SchemaSet::default().with_document(document);
        set.kind(&GroupVersionKind::from_api_version("x.io/v1", kind)).unwrap().text_hash
    };
    assert_ne!(text_hash(&old, "A"), text_hash(&new, "A"));
    assert_eq!(text_hash(&old, "B"), text_hash(&new, "B"));
    assert_ne!(fingerprint(&old, "A"), fingerprint(&new, "A"));
    assert_eq!(fingerprint(&old, "B"), fingerprint(&new, "B"));
}

/// Equal parts of a schema are stored once. A part that changes changes the fingerprint, wherever it is.
#[test]
fn a_change_in_one_of_several_equal_parts_shows() {
    let part = |default: Option<&str>| json!({"type": "object", "properties": {"mode": {"type": "string", "default": default.unwrap_or("a")}}});
    let fingerprint = |parts: [Option<&str>; 3]| {
        let [a, b, c] = parts.map(part);
        let document = json!({"components": {"schemas": {"io.x.v1.A": {"type": "object",
            "x-kubernetes-group-version-kind": [{"group": "x.io", "version": "v1", "kind": "A"}],
            "properties": {"metadata": {"type": "object"}, "a": a, "b": b, "c": c}}}}});
        let set = SchemaSet::from_openapi([&document]);
        set.kind(&GroupVersionKind::from_api_version("x.io/v1", "A")).unwrap().fingerprint
    };
    let (same, other) = (None, Some("b"));
    let all = [[same, same, same], [same, other, other], [same, same, other], [other, same, same]];
    let all: std::collections::BTreeSet<u64> = all.into_iter().map(fingerprint).collect();
    assert_eq!(all.len(), 4);
}

/// Of custom resources only wanted kinds are compiled; of Kubernetes' own group versions all.
#[test]
fn custom_resources_are_compiled_when_they_are_wanted() {
    let kind = |kind: &str| {
        json!({"type": "object", "x-kubernetes-group-version-kind": [{"group": "x.io", "version": "v1", "kind": kind}],
            "properties": {"metadata": {"type": "object"}}})
    };
    let document = json!({"paths": {"/apis/x.io/v1/as": {}}, "components": {"schemas": {
        "io.x.v1.A": kind("A"), "io.x.v1.B": kind("B"), "io.k8s.api.x.v1.C": kind("C")}}});
    let text = document.to_string();
    let set = SchemaSet::default().with_openapi(text.as_bytes(), |kind| kind.kind == "B");
    let has = |kind: &str| set.kind(&GroupVersionKind::from_api_version("x.io/v1", kind)).is_some();
    assert_eq!(["A", "B", "C"].map(has), [false, true, true]);
    assert!(set.knows("x.io/v1"));
}

#[test]
fn hostile_documents_compile() {
    for document in [
        json!(null),
        json!({"paths": {"/apis/a/v1/status": [1], "/apis/a/v1/b/status": {"get": 1, "parameters": []}}}),
        json!({"components": {"schemas": {"a": 1, "b": {"x-kubernetes-group-version-kind": [{"version": "v1", "kind": "A"}],
            "properties": {"metadata": {"$ref": 7}, "x": {"type": ["string"]}, "y": {"additionalProperties": [1]}}}}}}),
        json!({"components": {"schemas": {"a": {"$ref": "#/components/schemas/a"}}}}),
        json!({"components": {"schemas": {"a": {
            "x-kubernetes-group-version-kind": [{"version": "v1", "kind": "A"}],
            "properties": {"metadata": {}, "self": {"$ref": "#/components/schemas/a"},
                "selves": {"type": "array", "items": {"$ref": "#/components/schemas/a"}}}}}}}),
    ] {
        let _ = SchemaSet::from_openapi([&document]);
    }
}

/// The document of `apps/v1` describes `v1` claims, since a stateful set contains them. It must not take the place
/// of the document of `v1`, whichever of the two is read last.
#[test]
fn a_document_speaks_for_its_own_group_version_only() {
    let kind = |group: &str, kind: &str| {
        json!({"type": "object", "x-kubernetes-group-version-kind": [{"group": group, "version": "v1", "kind": kind}],
            "properties": {"metadata": {"type": "object"}}})
    };
    let core = json!({"paths": {"/api/v1/namespaces/{namespace}/configmaps": {}},
        "components": {"schemas": {"c": kind("", "ConfigMap"), "p": kind("", "PersistentVolumeClaim")}}});
    let apps = json!({"paths": {"/apis/apps/v1/namespaces/{namespace}/statefulsets": {}},
        "components": {"schemas": {"s": kind("apps", "StatefulSet"), "p": kind("", "PersistentVolumeClaim")}}});
    for documents in [[&core, &apps], [&apps, &core]] {
        let set = SchemaSet::from_openapi(documents);
        for (version, kind) in
            [("v1", "ConfigMap"), ("v1", "PersistentVolumeClaim"), ("apps/v1", "StatefulSet")]
        {
            assert!(
                set.kind(&GroupVersionKind::from_api_version(version, kind)).is_some(),
                "{version} {kind}"
            );
        }
    }
}
