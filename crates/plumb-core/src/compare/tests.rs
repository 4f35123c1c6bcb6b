use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::object::Manifest;
use crate::schema::SchemaSet;

fn schemas() -> SchemaSet {
    SchemaSet::from_openapi([&json!({"components": {"schemas": {"example.v1.Thing": {
    "type": "object",
    "x-kubernetes-group-version-kind": [{"group": "example.io", "version": "v1", "kind": "Thing"}],
    "properties": {"metadata": {"type": "object", "properties": {
            "name": {"type": "string"},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}}}},
        "spec": {"type": "object", "properties": {
        "size": {"type": "integer"},
        "mode": {"type": "string", "default": "Auto"},
        "max": {"x-kubernetes-int-or-string": true},
        "ports": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "protocol"],
            "items": {"type": "object", "properties": {"port": {"type": "integer"}, "name": {"type": "string"},
                "protocol": {"type": "string", "default": "TCP"}}}},
        "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "steps": {"type": "array", "items": {"type": "object", "properties": {
            "name": {"type": "string"}, "policy": {"type": "string", "default": "None"},
            "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}}}},
        "selector": {"type": "object", "additionalProperties": {"type": "string"}, "x-kubernetes-map-type": "atomic"},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    }}}}}}})])
}

#[expect(clippy::needless_pass_by_value, reason = "`json!` reads better at the call")]
fn thing(spec: Value) -> Manifest {
    Manifest::new(
        json!({"apiVersion": "example.io/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": spec}),
    )
    .unwrap()
}

/// One line per fact: what differs, what was added, what was forgiven.
#[expect(clippy::needless_pass_by_value, reason = "reads better at the call")]
fn check(desired: Value, live: Value, expected: Expect) {
    let schemas = schemas();
    let (desired, live) = (thing(desired), thing(live));
    let comparison = compare(&desired, &live, schemas.kind(&desired.gvk()), Aside { status: true });
    let mut lines = Vec::new();
    for d in &comparison.differences {
        let whole = d.whole.as_ref().map(|whole| format!(" in {whole}")).unwrap_or_default();
        lines.push(format!("{:?} {}{whole}", d.change, d.path));
    }
    lines.extend(comparison.additions.iter().map(|a| format!("added {} {:?}", a.path, a.fill)));
    lines.extend(comparison.forgiven.iter().map(|f| format!("forgiven {} {:?}", f.path, f.reason)));
    lines.extend(comparison.unknown.iter().map(|(path, nearest)| format!("unknown {path} {nearest:?}")));
    lines.extend(comparison.duplicates.iter().map(|path| format!("duplicate {path}")));
    expected.assert_eq(&lines.join("\n"));
}

#[test]
fn scalars() {
    check(json!({"size": 1}), json!({"size": 1.0}), expect![""]);
    check(json!({"size": 1}), json!({"size": 2}), expect!["Value /spec/size"]);
    check(json!({"max": 4}), json!({"max": "4"}), expect!["forgiven /spec/max Spelling(IntOrString)"]);
    check(json!({"mode": "Auto"}), json!({}), expect!["forgiven /spec/mode Zero"]);
    check(json!({}), json!({"mode": "Auto"}), expect!["added /spec/mode Schema"]);
    check(json!({}), json!({"mode": "Manual"}), expect!["added /spec/mode None"]);
    check(
        json!({"mode": null}),
        json!({"mode": "Auto"}),
        expect![[r"
        added /spec/mode Schema
        forgiven /spec/mode Null"]],
    );
    check(json!({"sise": 1}), json!({}), expect![[r#"unknown /spec/sise Some("size")"#]]);
}

#[test]
fn keyed_lists_are_paired_by_key_with_defaults() {
    check(
        json!({"ports": [{"port": 53, "protocol": "UDP"}, {"port": 53}]}),
        json!({"ports": [{"port": 53, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}]}),
        expect![[r"
            added /spec/ports/0/protocol Schema
            forgiven /spec/ports Spelling(Order)"]],
    );
    check(
        json!({"ports": [{"port": 80, "name": "a"}]}),
        json!({"ports": [{"port": 81, "protocol": "TCP", "name": "x"}, {"port": 80, "protocol": "TCP", "name": "b"}]}),
        expect![[r"
            Value /spec/ports/1/name
            added /spec/ports/1/protocol Schema
            added /spec/ports/0 None"]],
    );
    check(
        json!({"ports": [{"port": 1}, {"port": 1}]}),
        json!({}),
        expect![[r"
        Missing /spec/ports
        duplicate /spec/ports"]],
    );
}

#[test]
fn atomic_lists_are_satisfied_or_told_apart() {
    let ab = json!({"steps": [{"name": "a"}, {"name": "b"}]});
    check(
        ab.clone(),
        json!({"steps": [{"name": "a", "policy": "None"}, {"name": "b", "extra": 1}]}),
        expect![[r"
        added /spec/steps/0/policy Schema
        added /spec/steps/1/extra None"]],
    );
    check(
        ab.clone(),
        json!({"steps": [{"name": "b"}, {"name": "a"}]}),
        expect!["Order /spec/steps in /spec/steps"],
    );
    check(
        ab.clone(),
        json!({"steps": [{"name": "x"}, {"name": "a"}, {"name": "b"}]}),
        expect!["Extra /spec/steps/0 in /spec/steps"],
    );
    check(ab.clone(), json!({"steps": [{"name": "a"}]}), expect!["ItemMissing /spec/steps/1 in /spec/steps"]);
    check(
        ab,
        json!({"steps": [{"name": "a"}, {"name": "c"}]}),
        expect!["Value /spec/steps/1/name in /spec/steps"],
    );
}

#[test]
fn mistakes_are_found_in_lists_that_were_reordered_or_changed() {
    check(
        json!({"steps": [{"name": "a", "polcy": "x"}, {"name": "b"}]}),
        json!({"steps": [{"name": "b"}, {"name": "a"}]}),
        expect![[r#"
            Order /spec/steps in /spec/steps
            unknown /spec/steps/0/polcy Some("policy")"#]],
    );
    check(
        json!({"steps": [{"name": "a", "tags": ["x", "x"]}]}),
        json!({"steps": [{"name": "b"}, {"name": "a", "tags": ["x", "x"], "policy": "None"}]}),
        expect![[r"
            Extra /spec/steps/0 in /spec/steps
            added /spec/steps/1/policy Schema
            duplicate /spec/steps/0/tags"]],
    );
    check(
        json!({"steps": [{"name": "a"}, {"name": "b", "polcy": "x"}]}),
        json!({"steps": [{"name": "a"}]}),
        expect![[r#"
            ItemMissing /spec/steps/1 in /spec/steps
            unknown /spec/steps/1/polcy Some("policy")"#]],
    );
}

#[test]
fn sets_and_atomic_maps() {
    check(json!({"tags": ["a", "a"]}), json!({"tags": ["a"]}), expect!["duplicate /spec/tags"]);
    check(
        json!({"tags": ["a", "a"]}),
        json!({}),
        expect![[r"
        Missing /spec/tags
        duplicate /spec/tags"]],
    );
    check(
        json!({"tags": ["b", "a"]}),
        json!({"tags": ["a", "b"]}),
        expect!["forgiven /spec/tags Spelling(Order)"],
    );
    check(
        json!({"tags": ["a", "b"]}),
        json!({"tags": ["a", "c"]}),
        expect![[r"
        ItemMissing /spec/tags/1
        added /spec/tags/1 None"]],
    );
    check(
        json!({"selector": {"a": "b"}}),
        json!({"selector": {"a": "b", "c": "d"}}),
        expect!["added /spec/selector/c None"],
    );
    check(
        json!({"selector": {"a": ""}}),
        json!({"selector": {}}),
        expect!["Missing /spec/selector/a in /spec/selector"],
    );
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-5_i64..5).prop_map(Value::from),
        "[ab]{0,2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("(size|mode|ports|port|tags|steps|name|free|x)", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn an_object_does_not_differ_from_itself(spec in json_value()) {
        let (schemas, thing) = (schemas(), thing(spec));
        for kind in [None, schemas.kind(&thing.gvk())] {
            let comparison = compare(&thing, &thing, kind, Aside { status: true });
            prop_assert!(comparison.differences.is_empty(), "{comparison:?}");
            prop_assert!(comparison.additions.is_empty(), "{comparison:?}");
            let only_nulls = comparison.forgiven.iter().all(|forgiven| forgiven.reason == Reason::Null);
            prop_assert!(only_nulls, "{comparison:?}");
        }
    }

    #[test]
    fn what_git_does_not_mention_never_differs(spec in json_value(), extra in json_value()) {
        let schemas = schemas();
        let desired = thing(json!({"free": spec}));
        let mut live = desired.value().clone();
        live["spec"]["later"] = extra.clone();
        live["metadata"]["labels"] = json!({"x": "y"});
        let live = Manifest::new(live).unwrap();
        for kind in [None, schemas.kind(&desired.gvk())] {
            let comparison = compare(&desired, &live, kind, Aside { status: true });
            prop_assert!(comparison.differences.is_empty(), "{comparison:?}");
        }
    }

    #[test]
    fn any_two_objects_can_be_compared(one in json_value(), other in json_value()) {
        let schemas = schemas();
        let (one, other) = (thing(one), thing(other));
        for kind in [None, schemas.kind(&one.gvk())] {
            let _ = compare(&one, &other, kind, Aside { status: true });
        }
    }
}
