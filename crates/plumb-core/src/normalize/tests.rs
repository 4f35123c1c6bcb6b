use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::ignore::Ignored;
use crate::object::{FieldPath, Manifest};
use crate::schema::SchemaSet;

fn manifest(value: Value) -> Manifest {
    Manifest::new(value).unwrap()
}

#[test]
fn what_is_applied_holds_only_what_git_may_set() {
    let schemas = SchemaSet::from_openapi([&json!({
        "paths": {"/x/{name}/status": {"get": {"x-kubernetes-group-version-kind": {"group": "x.io", "version": "v1", "kind": "T"}}}},
        "components": {"schemas": {"t": {"type": "object",
            "x-kubernetes-group-version-kind": [{"group": "x.io", "version": "v1", "kind": "T"}],
            "properties": {"apiVersion": {"type": "string"}, "kind": {"type": "string"},
                "metadata": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                "spec": {"type": "object", "properties": {"a": {"type": "integer"}, "list": {"type": "array",
                    "items": {"type": "object", "properties": {"b": {"type": "integer"}}}}}},
                "status": {"type": "object"}}}}},
    })]);
    let desired = manifest(json!({"apiVersion": "x.io/v1", "kind": "T",
        "metadata": {"name": "t", "uid": "1", "creationTimestamp": null, "annotations": {"deployment.kubernetes.io/revision": "2", "own": "x"}},
        "spec": {"a": 1, "typo": 2, "gone": null, "list": [{"b": 1, "c": 2}]}, "status": {"x": 1}}));
    assert_eq!(
        manifest_to_apply(&desired, &schemas).into_value(),
        json!({"apiVersion": "x.io/v1", "kind": "T", "metadata": {"name": "t", "annotations": {"own": "x"}},
            "spec": {"a": 1, "list": [{"b": 1}]}})
    );
    let unknown: Vec<String> = unknown_fields(&desired, &schemas).iter().map(ToString::to_string).collect();
    assert_eq!(unknown, ["/spec/list/0/c", "/spec/typo"]);
}

#[test]
fn string_data_is_folded_and_base64_unwrapped() {
    let desired = manifest(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"},
        "data": {"a": "YWJj\nZGVm\n", "bad": "%%"}, "stringData": {"b": "x"}}));
    let applied = manifest_to_apply(&desired, &SchemaSet::default()).into_value();
    assert_eq!(applied["data"], json!({"a": "YWJjZGVm", "bad": "%%", "b": "eA=="}));
    assert!(applied.get("stringData").is_none());
}

#[test]
fn kept_places_have_the_live_value() {
    let schemas = SchemaSet::from_openapi([&json!({"components": {"schemas": {"t": {"type": "object",
        "x-kubernetes-group-version-kind": [{"group": "x.io", "version": "v1", "kind": "T"}],
        "properties": {"metadata": {"type": "object"}, "spec": {"type": "object", "properties": {
            "c": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                "items": {"type": "object", "properties": {"name": {"type": "string"}}}}}}}}}}})]);
    let t = |spec: Value| {
        manifest(json!({"apiVersion": "x.io/v1", "kind": "T", "metadata": {"name": "t"}, "spec": spec}))
    };
    let desired = t(json!({"replicas": 1, "gone": 1, "list": [1], "c": [{"name": "b", "v": 1}]}));
    let live = t(
        json!({"replicas": 5, "list": [2, 1], "c": [{"name": "a"}, {"name": "b", "v": 2}], "deep": {"x": 1, "y": 2}}),
    );
    let places: Vec<FieldPath> = ["/spec/replicas", "/spec/gone", "/spec/list", "/spec/deep/x"]
        .into_iter()
        .map(FieldPath::from_pointer)
        .collect();
    let mut places = places;
    places.push(FieldPath::root().field("spec").field("c").index(1).field("v"));
    assert_eq!(
        keep_live(&desired, &live, &places, &schemas).into_value()["spec"],
        json!({"replicas": 5, "list": [2, 1], "c": [{"name": "b", "v": 2}], "deep": {"x": 1}})
    );
}

#[test]
fn of_a_keyed_list_and_of_a_set_only_the_order_is_kept() {
    let text = json!({"type": "string"});
    let item = json!({"type": "object", "properties": {"name": text, "v": text}});
    let schemas = SchemaSet::from_openapi([&json!({"components": {"schemas": {"t": {"type": "object",
        "x-kubernetes-group-version-kind": [{"group": "x.io", "version": "v1", "kind": "T"}],
        "properties": {"metadata": {"type": "object"}, "spec": {"type": "object", "properties": {
            "c": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                "items": item},
            "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": text},
            "list": {"type": "array", "x-kubernetes-list-type": "atomic", "items": text}}}}}}}})]);
    let t = |spec: Value| {
        manifest(json!({"apiVersion": "x.io/v1", "kind": "T", "metadata": {"name": "t"}, "spec": spec}))
    };
    let desired = t(json!({
        "c": [{"name": "a", "v": "1"}, {"name": "new"}, {"name": "b"}], "tags": ["b", "a"], "list": ["a"],
    }));
    let live = t(json!({
        "c": [{"name": "b", "v": "theirs"}, {"name": "a", "v": "1"}, {"name": "sidecar"}],
        "tags": ["a", "mallory", "b"], "list": ["b", "a"],
    }));
    let places = ["/spec/c", "/spec/tags", "/spec/list"].map(FieldPath::from_pointer);
    assert_eq!(
        keep_live(&desired, &live, &places, &schemas).into_value()["spec"],
        json!({
            "c": [{"name": "b"}, {"name": "a", "v": "1"}, {"name": "new"}],
            "tags": ["a", "b"], "list": ["b", "a"],
        })
    );
}

#[test]
fn ignored_items_stand_beside_gits_and_take_no_place() {
    let one = |name: &str| json!({"resources": [name]});
    let role = |names: &[&str], managers: Value| {
        let rules: Vec<Value> = names.iter().map(|name| one(name)).collect();
        manifest(json!({"apiVersion": "v1", "kind": "Role",
            "metadata": {"name": "r", "managedFields": managers}, "rules": rules, "spec": {"x": names.len()}}))
    };
    let items = |indexes: &[usize]| -> Vec<FieldPath> {
        indexes.iter().map(|index| FieldPath::root().field("rules").index(*index)).collect()
    };
    let check =
        |git: &[&str], live: &[&str], ignored_git: &[usize], ignored_live: &[usize], expected: &[&str]| {
            let ignored =
                Ignored { desired: items(ignored_git), live: items(ignored_live), ..Ignored::default() };
            let (git, live) = (role(git, json!([])), role(live, json!([])));
            let kept = keep_ignored(&git, &live, &ignored, &SchemaSet::default());
            let rules: Vec<&Value> = kept.value()["rules"].as_array().unwrap().iter().collect();
            let expected: Vec<Value> = expected.iter().map(|name| one(name)).collect();
            assert_eq!(rules, expected.iter().collect::<Vec<_>>());
        };
    check(&["a"], &["x", "a"], &[], &[0], &["x", "a"]);
    check(&["a"], &["x"], &[], &[0], &["x", "a"]);
    check(&["a", "x", "b"], &["a", "b"], &[1], &[], &["a", "b"]);
    check(&["x1", "a"], &["x2", "a"], &[0], &[0], &["x2", "a"]);
    check(&["x", "a"], &["a", "x"], &[0, 0], &[1, 1], &["a", "x"]);

    // What a manager owns stays as it has it; what it owns and Git does not have is not taken in.
    let theirs =
        json!([{"manager": "tuner", "operation": "Update", "fieldsV1": {"f:spec": {"f:x": {}, "f:y": {}}}}]);
    let mut live = role(&["a", "b"], theirs).into_value();
    live["spec"]["y"] = json!(1);
    let ignored = Ignored { managers: vec!["tuner".to_owned()], ..Ignored::default() };
    let kept = keep_ignored(&role(&["a"], json!([])), &manifest(live), &ignored, &SchemaSet::default());
    assert_eq!(kept.value()["spec"], json!({"x": 2}));
    assert_eq!(kept.value()["rules"], json!([one("a")]));
}

#[test]
fn a_redacted_secret_shows_equality_and_nothing_else() {
    let mut redactor = Redactor::default();
    let secret = |data: Value| {
        manifest(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s",
        "annotations": {LAST_APPLIED: "{\"data\":{\"a\":\"c2VjcmV0\"}}"}}, "data": data}))
    };
    let one = redactor.redact(&secret(json!({"a": "c2VjcmV0", "b": "eA=="})));
    let other = redactor.redact(&secret(json!({"a": "c2Vj\ncmV0", "b": "eQ=="})));
    assert_eq!(one.value()["data"]["a"], other.value()["data"]["a"]);
    assert_ne!(one.value()["data"]["b"], other.value()["data"]["b"]);
    for text in [one.value().to_string(), other.value().to_string()] {
        assert!(!text.contains("c2Vj") && !text.contains("secret\""), "{text}");
    }
}

#[test]
fn a_secret_of_a_wrong_shape_is_redacted_and_kept_for_the_server_to_refuse() {
    let mut redactor = Redactor::default();
    for fields in [
        json!({"stringdata": {"a": "s3cr3t"}}),
        json!({"data": "s3cr3t"}),
        json!({"data": ["s3cr3t"], "stringData": {"a": "s3cr3t"}}),
        json!({"stringData": "s3cr3t"}),
        json!({"metadata": {"name": "s", "annotations": {
            LAST_APPLIED: "{\"stringdata\":{\"a\":\"s3cr3t\"}}", "kapp.k14s.io/original": "s3cr3t"}}}),
    ] {
        let mut secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}});
        secret.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let secret = manifest(secret);
        let redacted = redactor.redact(&secret).value().to_string();
        assert!(!redacted.contains("s3cr3t") && redacted.contains("<secret value"), "{redacted}");
        if fields.get("metadata").is_none() {
            let applied = manifest_to_apply(&secret, &SchemaSet::default());
            assert_eq!(applied.value(), secret.value());
        }
    }
}

fn spec() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        "[a-c]{0,3}".prop_map(Value::from)
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[a-d]", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn normalising_twice_is_normalising_once(spec in spec(), data in spec(), secret in any::<bool>()) {
        let kind = if secret { "Secret" } else { "ConfigMap" };
        let desired = manifest(json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "x", "uid": "1"},
            "spec": spec, "stringData": data}));
        let schemas = SchemaSet::default();
        let once = manifest_to_apply(&desired, &schemas);
        prop_assert_eq!(manifest_to_apply(&once, &schemas), once);
    }
}
