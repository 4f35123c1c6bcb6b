//! The evaluator names the places that jaq, a complete jq, names.

use jaq_core::data::JustLut;
use jaq_core::load::{Arena, File, Loader};
use jaq_core::{Compiler, Ctx, Vars, unwrap_valr};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::JqPath;

/// The paths of jaq up to its first error, as JSON; only those whose segments are keys and positions.
fn places_of_jaq(expression: &str, value: &Value) -> Vec<String> {
    let code = format!("path({expression})");
    let arena = Arena::default();
    let loader = Loader::new(jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs()));
    let modules = loader.load(&arena, File { path: (), code: code.as_str() }).unwrap();
    let funs = jaq_core::funs().chain(jaq_std::funs()).chain(jaq_json::funs());
    let filter = Compiler::<_, JustLut<jaq_json::Val>>::default().with_funs(funs).compile(modules).unwrap();
    let input: jaq_json::Val = serde_json::from_value(value.clone()).unwrap();
    let context = Ctx::<JustLut<jaq_json::Val>>::new(&filter.lut, Vars::new([]));
    let paths = filter.id.run((context, input)).map(unwrap_valr).map_while(Result::ok);
    let paths = paths.map(|path| serde_json::from_str::<Vec<Value>>(&path.to_string()).unwrap());
    let is_segment = |segment: &Value| segment.is_string() || segment.as_u64().is_some();
    paths.filter(|path| path.iter().all(is_segment)).map(|path| as_pointer(&path)).collect()
}

fn as_pointer(path: &[Value]) -> String {
    let segment = |segment: &Value| {
        let text = segment.as_str().map_or_else(|| segment.to_string(), str::to_owned);
        format!("/{}", text.replace('~', "~0").replace('/', "~1"))
    };
    path.iter().map(segment).collect()
}

#[track_caller]
fn check(expression: &str, value: &Value) {
    let ours = JqPath::compile(expression).unwrap_or_else(|error| panic!("{expression}: {error}"));
    let places = ours.places(value, 0).places.unwrap_or_else(|limit| panic!("{expression}: {limit}"));
    let ours: Vec<String> = places.iter().map(ToString::to_string).collect();
    assert_eq!(ours, places_of_jaq(expression, value), "{expression} on {value}");
}

fn deployment() -> Value {
    json!({
        "kind": "Deployment", "metadata": {"name": "web", "annotations": {"a/b": "x", "note": "v1.2"}},
        "spec": {"replicas": 3, "ratio": 1.5, "paused": false, "none": null, "template": {"spec": {"containers": [
            {"name": "app", "image": "app:1", "env": [{"name": "A", "value": "1"}, {"name": "B"}], "args": ["-v"]},
            {"name": "istio-proxy", "image": "proxy:1", "ports": [{"port": 80}, {"port": 443}]},
        ]}}},
    })
}

#[test]
fn expressions_of_users_name_the_same_places() {
    for expression in [
        ".spec.replicas",
        ".spec.template.spec.containers[] | select(.name == \"istio-proxy\")",
        ".spec.template.spec.containers[]?.env[]?.value",
        ".spec.template.spec.containers[].env[]?.value",
        ".spec.template.spec.containers[0:1][0].image",
        ".spec.template.spec.containers[-1]",
        ".. | .image?",
        "recurse | select(.name? == \"A\")",
        ".. | objects | select(has(\"port\")) | .port",
        ".spec.template.spec.containers[] | select(.name | test(\"^istio\")) | .image, .ports[0]",
        ".spec.template.spec.containers[] | select(.name | test(\"ISTIO\"; \"i\")) | .image",
        ".metadata.annotations | .[\"a/b\"], .note",
        ".metadata.annotations[\"a/b\", \"note\"]",
        ".metadata | .[\"annotations\"][keys[0]]?",
        ".spec | if .replicas > 2 then .replicas elif .x then .y else .paused end",
        ".spec | if .paused then .replicas end",
        ".spec | (.paused // .replicas), (.replicas // .paused), (.none // .ratio)",
        ".spec as $s | .spec.template.spec.containers[] | select($s.replicas == 3) | .name",
        "first(.spec.template.spec.containers[]).name, last(.spec.template.spec.containers[]).name",
        ".spec.template.spec.containers | first, last | .image",
        "getpath([\"spec\", \"template\", \"spec\", \"containers\", 0, \"image\"])",
        "try .kind.x catch .spec, .metadata.name",
        ".kind.x?, .metadata.name",
        ".spec.template.spec.containers[] | select(.args | index(\"-v\") == 0) | .args",
        ".spec.template.spec.containers[] | select([.env[]?.name] | contains([\"A\"])) | .env",
        ".spec.template.spec.containers[] | select({name} == {name: \"app\"}) | .name",
        ".spec.template.spec.containers[] | select(\"x-\\(.name)\" == \"x-app\") | .name",
        ".spec.template.spec.containers[] | select(.name | startswith(\"i\") and endswith(\"y\")) | .name",
        ".spec.template.spec.containers[] | select(.ports | length > 1) | .ports[1].port",
        ".spec.template.spec.containers[] | select(any(.env[]?; .name == \"B\")) | .env[] | select(.name == \"B\")",
        ".spec.template.spec.containers[] | select(all(.ports[]?; .port > 80) | not) | .name",
        ".spec.template.spec.containers[] | select(.image | split(\":\")[1] == \"1\") | .image",
        ".spec.template.spec.containers[] | select(.image | split(\"[:]\"; null)?) | .image",
        ".spec.template.spec.containers[] | select(.image | ltrimstr(\"app:\") == \"1\") | .image",
        ".spec | select((.replicas | tostring) == \"3\") | .replicas",
        ".spec | select((.ratio + 1 - 0.5) == 2) | .ratio",
        ".spec | select(.template | tostring | length > 10) | .ratio",
        ".spec | .[] | numbers, booleans, nulls, scalars, iterables",
        ".spec | .[] | select(type == \"object\") | .spec",
        ".spec.nothing.here, .spec.replicas.here, .never",
        ".spec.template.spec.containers | map(.name) | .[0]",
        ".spec.template.spec.containers[] | .name == \"app\"",
        "empty",
        ".",
        "..",
    ] {
        check(expression, &deployment());
    }
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3_i64..4).prop_map(Value::from),
        Just(json!(1.5)),
        "[ab]{0,2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[abc]", inner, 0..3)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn expression() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        ".",
        "..",
        ".a",
        ".b?",
        ".[]",
        ".[]?",
        ".[0]",
        ".[1]?",
        ".[-1]?",
        ".a[]?",
        ".a.b",
        "1",
        "\"a\"",
        "null",
        "true",
        "false",
        "empty",
        "length",
        "type",
        "not",
        "tostring",
        "keys?",
        "first",
        "last?",
        "objects",
        "arrays",
        "strings",
        "numbers",
        "scalars",
        "values",
        "nulls",
        "isarray",
        "recurse",
        "[]",
        "{}",
        ".[1:]?",
        ".[:1]?",
        "any",
        "all?",
        "ascii_upcase?",
        "-1",
        "1.5",
        "\"b\"",
    ])
    .prop_map(str::to_owned);
    leaf.prop_recursive(4, 24, 3, |inner| {
        let two = (inner.clone(), inner.clone());
        prop_oneof![
            (
                two.clone(),
                prop::sample::select(vec!["|", ",", "//", "or", "and", "==", "!=", "<", ">=", "+", "-"])
            )
                .prop_map(|((left, right), operator)| format!("({left}) {operator} ({right})")),
            (
                inner.clone(),
                prop::sample::select(vec![
                    "select",
                    "first",
                    "last",
                    "map",
                    "any",
                    "all",
                    "path",
                    "has",
                    "contains",
                    "inside",
                    "index",
                    "startswith",
                    "ltrimstr",
                    "split",
                    "getpath",
                    "in",
                    "test",
                ])
            )
                .prop_map(|(inner, name)| format!("{name}({inner})")),
            inner.clone().prop_map(|inner| format!("[{inner}]")),
            inner.clone().prop_map(|inner| format!("({inner})?")),
            inner.clone().prop_map(|inner| format!(".[{inner}]?")),
            inner.clone().prop_map(|inner| format!("\"x\\({inner})\"")),
            two.clone().prop_map(|(left, right)| format!("({left}) as $x | ({right}) | select($x)")),
            two.clone().prop_map(|(left, right)| format!("any({left}; {right})")),
            (two, inner).prop_map(|((a, b), c)| format!("if {a} then {b} else {c} end")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(
        option_env!("PLUMB_FUZZ_CASES").and_then(|cases| cases.parse().ok()).unwrap_or(400)
    ))]

    #[test]
    fn random_expressions_name_the_same_places(expression in expression(), value in value()) {
        if let Ok(ours) = JqPath::compile(&expression)
            && ours.places(&value, 0).places.is_ok()
        {
            check(&expression, &value);
        }
    }

    #[test]
    fn any_text_ends(expression in "[ -~]{0,60}", value in value()) {
        if let Ok(ours) = JqPath::compile(&expression) {
            let _ = ours.places(&value, 0);
        }
    }
}
