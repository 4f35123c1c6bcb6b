#![expect(clippy::needless_pass_by_value, reason = "`json!` reads better at the call")]

use serde_json::{Map, Value, json};

use super::*;
use crate::object::{FieldPath, Manifest};
use crate::schema::SchemaSet;

fn live(managed_fields: Value) -> Manifest {
    Manifest::new(json!({
        "apiVersion": "example.io/v1", "kind": "Thing",
        "metadata": {"name": "t", "managedFields": managed_fields},
        "spec": {
            "size": 3, "tags": ["a", "b"], "steps": [{"name": "x"}],
            "ports": [{"port": 80, "protocol": "TCP", "name": "web"}, {"port": 81, "protocol": "TCP"}],
            "strategy": {"type": "Rolling", "rolling": {"surge": 1}},
        },
    }))
    .unwrap()
}

fn entry(manager: &str, operation: &str, time: &str, fields: Value) -> Value {
    json!({"manager": manager, "operation": operation, "time": time, "apiVersion": "example.io/v1",
        "fieldsType": "FieldsV1", "fieldsV1": fields})
}

fn owners_of(live: &Manifest, pointer: &str) -> Vec<String> {
    let path = FieldPath::from_pointer(pointer);
    Owners::of(live).of_place(&path).map(|entry| entry.manager.to_owned()).collect()
}

#[test]
fn a_place_is_owned_by_field_key_value_or_as_a_whole() {
    let live = live(json!([
        entry(
            "argocd-controller",
            "Apply",
            "2026-01-01T00:00:00Z",
            json!({"f:spec": {"f:size": {}, "f:steps": {},
            "f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}, "f:name": {}}}}})
        ),
        entry(
            "kubectl-edit",
            "Update",
            "2026-01-02T00:00:00Z",
            json!({"f:spec": {"f:tags": {"v:\"b\"": {}},
            "f:ports": {"k:{\"port\":81,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}}}}})
        ),
        json!({"nonsense": true}),
        entry("owns-nothing", "Update", "2026-01-03T00:00:00Z", json!({})),
    ]));
    assert_eq!(owners_of(&live, "/spec/size"), ["argocd-controller"]);
    assert_eq!(owners_of(&live, "/spec/steps/0/name"), ["argocd-controller"]);
    assert_eq!(owners_of(&live, "/spec/ports/0/name"), ["argocd-controller"]);
    assert_eq!(owners_of(&live, "/spec/ports/1"), ["kubectl-edit"]);
    assert_eq!(owners_of(&live, "/spec/tags/1"), ["kubectl-edit"]);
    assert!(owners_of(&live, "/spec/tags/0").is_empty());
    assert!(owners_of(&live, "/spec/strategy/type").is_empty());
}

fn schemas() -> SchemaSet {
    SchemaSet::from_openapi([&json!({"components": {"schemas": {"t": {
    "type": "object",
    "x-kubernetes-group-version-kind": [{"group": "example.io", "version": "v1", "kind": "Thing"}],
    "properties": {"metadata": {"type": "object"}, "spec": {"type": "object", "properties": {
        "ports": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "protocol"],
            "items": {"type": "object", "properties": {"port": {"type": "integer"}}}},
        "strategy": {"type": "object", "properties": {"rolling": {"type": "object", "properties": {"surge": {"type": "integer"}}}}},
    }}}}}}})])
}

#[test]
fn taken_over_places_are_owned_by_plumb_alone() {
    let ours = json!({"f:spec": {"f:size": {}}});
    let live = live(json!([
        entry("argocd-controller", "Apply", "2026-01-01T00:00:00Z", ours),
        entry(
            "kubectl-edit",
            "Update",
            "2026-01-02T00:00:00Z",
            json!({"f:spec": {"f:ports": {"k:{\"port\":81,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}, "f:protocol": {}}}}})
        ),
        entry(
            "kubectl-client-side-apply",
            "Update",
            "2025-01-01T00:00:00Z",
            json!({"f:spec": {"f:tags": {"v:\"a\"": {}}}})
        ),
    ]));
    let schemas = schemas();
    let root = schemas.kind(&live.gvk()).unwrap().root;
    let what = TakeOver {
        places: vec![
            FieldPath::root().field("spec").field("ports").index(1),
            FieldPath::root().field("spec").field("strategy").field("rolling"),
        ],
        end_client_side_apply: true,
    };
    let after = take_over(&live, Some(root), &what).unwrap();
    assert_eq!(after.as_array().unwrap().len(), 1, "{after}");
    assert_eq!(
        after[0]["fieldsV1"],
        json!({"f:spec": {
            "f:size": {},
            "f:ports": {"k:{\"port\":81,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}, "f:protocol": {}}},
            "f:strategy": {"f:rolling": {".": {}, "f:surge": {}}},
        }})
    );
}

/// A search through the elements of the list for each of its items would take minutes.
#[test]
fn the_items_of_a_long_list_are_taken_over_in_one_pass() {
    const N_ITEMS: usize = 10_000;
    let items: Vec<Value> = (0..N_ITEMS).map(|port| json!({"port": port, "protocol": "TCP"})).collect();
    let elements: Map<String, Value> = (0..N_ITEMS)
        .map(|port| (format!("k:{{\"port\":{port},\"protocol\":\"TCP\"}}"), json!({".": {}, "f:port": {}})))
        .collect();
    let theirs = json!({"f:spec": {"f:ports": elements}});
    let live = Manifest::new(json!({"apiVersion": "example.io/v1", "kind": "Thing", "spec": {"ports": items},
        "metadata": {"name": "x", "managedFields": [entry("kubectl-edit", "Update", "2026-01-02T00:00:00Z", theirs)]}}))
    .unwrap();
    let schemas = schemas();
    let root = schemas.kind(&live.gvk()).unwrap().root;
    let ports = || FieldPath::root().field("spec").field("ports");
    let places = (0..N_ITEMS).map(|index| ports().index(index)).collect();
    let what = TakeOver { places, end_client_side_apply: false };
    let after = take_over(&live, Some(root), &what).unwrap();
    assert_eq!(after.as_array().unwrap().len(), 1, "nothing is left to the other writer");
    assert_eq!(after[0]["fieldsV1"]["f:spec"]["f:ports"].as_object().unwrap().len(), N_ITEMS);
}

#[test]
fn nothing_to_take_over_writes_nothing() {
    let live = live(json!([entry(
        "argocd-controller",
        "Apply",
        "2026-01-01T00:00:00Z",
        json!({"f:spec": {"f:size": {}}})
    )]));
    assert_eq!(take_over(&live, None, &TakeOver::default()), None);
    let wiped = self::live(json!([]));
    assert_eq!(take_over(&wiped, None, &TakeOver::default()), None);
}
