//! What holds for any set: no panic, the same answer twice, and no more than the budget.

use plumb_appset::{Settings, Total, follows, generate};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::known::Known;
use crate::settings;

fn text() -> impl Strategy<Value = String> {
    let known = proptest::sample::select(vec![
        "a",
        "{{a}}",
        "{{.a}}",
        "{{ .b | upper }}",
        "{{.c.d}}",
        "{{path}}",
        "{{.path.path}}",
        "{{range .l}}{{.}}{{end}}",
        "{{",
        "}}",
        "{{toJson .}}",
        "{{index .l 1}}",
        "{{values.v}}",
        "{{.values.v}}",
        "*",
        "**",
        "a/*",
        "{a,b}",
        "[",
        "x",
        "{{repeat 100 .a}}",
        "https://x.test",
        "{{now}}",
        "{{randAlpha 5}}",
        "HEAD",
        "dev",
        "$patch",
        "null",
    ]);
    prop_oneof![4 => known.prop_map(str::to_owned), 1 => ".{0,8}"]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        text().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        Just(Value::Null),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            proptest::collection::btree_map("[abcdl]", inner, 0..3)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn terminal() -> impl Strategy<Value = Value> {
    let elements = proptest::collection::vec(
        proptest::collection::btree_map("[abcdl]|values", value(), 0..3).prop_map(|map| json!(map)),
        0..4,
    );
    let git = (text(), any::<bool>(), any::<bool>()).prop_map(|(path, exclude, is_files)| {
        let kind = if is_files { "files" } else { "directories" };
        json!({"git": {"repoURL": "r", "revision": "HEAD", kind: [{"path": path, "exclude": exclude}, {"path": "*"}]}})
    });
    prop_oneof![
        3 => elements.prop_map(|elements| json!({"list": {"elements": elements}})),
        2 => git,
        1 => text().prop_map(|text| json!({"list": {"elementsYaml": text}})),
        1 => text().prop_map(|text| json!({"clusters": {"values": {"v": text}}})),
        1 => text().prop_map(|text| json!({"clusters": {"selector": {"matchLabels": {"env": text}}}})),
    ]
}

fn generator() -> impl Strategy<Value = Value> {
    let pair = || proptest::collection::vec(terminal(), 1..4);
    prop_oneof![
        2 => terminal(),
        1 => pair().prop_map(|generators| json!({"matrix": {"generators": generators}})),
        1 => pair().prop_map(|generators| json!({"merge": {"generators": generators, "mergeKeys": ["a"]}})),
    ]
}

fn spec() -> impl Strategy<Value = Value> {
    let generators = proptest::collection::vec(generator(), 0..3);
    (generators, any::<bool>(), text(), text(), proptest::option::of(text())).prop_map(
        |(generators, go, name, label, patch)| {
            json!({
                "generators": generators, "goTemplate": go, "templatePatch": patch,
                "template": {
                    "metadata": {"name": name, "labels": {"l": label.clone(), label: "x"}},
                    "spec": {"project": "default", "source": {"repoURL": "r"}, "destination": {"name": "x"}},
                },
            })
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_same_inputs_give_the_same_applications(spec in spec()) {
        let object = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet",
            "metadata": {"name": "set", "namespace": "argocd"}, "spec": spec,
        });
        let Ok(set) = plumb_crd::ApplicationSet::from_json(&object) else { return Ok(()) };
        let known = Known::default()
            .cluster("dev", "https://dev.test", &[("env", "dev")])
            .files(&[("a/x.yaml", "a: 1\nl: [1, 2]"), ("b.json", "[{\"a\": \"q\"}]"), ("a/b/c", "- x")]);
        prop_assert_eq!(follows(&set, &known, &settings()), follows(&set, &known, &settings()));
        let first = generate(&set, &known, &settings());
        prop_assert_eq!(&first, &generate(&set, &known, &settings()));
        let small = Settings { total: Total { steps: 200, bytes: 2000 }, ..settings() };
        if let (Ok(full), Ok(less)) = (&first, generate(&set, &known, &small)) {
            prop_assert_eq!(full, &less, "a budget changes nothing but whether there is an answer");
        }
    }
}

/// A set with one parameter, `a`, and these texts.
fn of_text(go: bool, text: &str) -> plumb_crd::ApplicationSet {
    let object = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet",
        "metadata": {"name": "set", "namespace": "argocd", "annotations": {"private": "canary"}},
        "spec": {
            "generators": [{"list": {"elements": [{"a": "x"}]}}], "goTemplate": go, "templatePatch": text,
            "template": {"metadata": {"name": "n", "annotations": {"t": text}},
                         "spec": {"project": "default", "destination": {}}},
        },
    });
    plumb_crd::ApplicationSet::from_json(&object).expect("the set is valid")
}

/// Files, clusters and metadata that no generator of the set names.
fn secrets() -> Known {
    Known::default()
        .cluster("canary", "https://canary.test", &[("canary", "canary")])
        .files(&[("canary.yaml", "canary: canary")])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_template_reads_nothing_but_its_parameters(one in text(), other in text(), go in any::<bool>()) {
        let set = of_text(go, &format!("{one} {other}"));
        match generate(&set, &secrets(), &settings()) {
            Ok(generated) => {
                let shown = format!("{generated:?}");
                prop_assert!(!shown.contains("canary"), "{}", shown);
            }
            Err(error) => prop_assert!(!error.message.contains("canary"), "{}", error.message),
        }
    }
}

/// What templates of other tools can read: the environment, files, other templates, the network, the cluster.
#[test]
fn ways_out_of_a_template_are_errors() {
    for text in [
        "{{env \"HOME\"}}",
        "{{expandenv \"$HOME\"}}",
        "{{getHostByName \"localhost\"}}",
        "{{lookup \"v1\" \"Secret\" \"argocd\" \"argocd-secret\"}}",
        "{{include \"x\" .}}",
        "{{tpl \"{{.a}}\" .}}",
        "{{template \"x\" .}}",
        "{{readFile \"/etc/passwd\"}}",
        "{{.Files.Get \"/etc/passwd\"}}",
        "{{.a.Error}}",
        "{{call .a}}",
    ] {
        let answer = generate(&of_text(true, text), &secrets(), &settings());
        assert!(answer.is_err(), "{text}: {answer:?}");
    }
}

/// Each of these sets would take hours or all memory without a budget.
#[test]
fn hostile_sets_are_refused() {
    let elements: Vec<Value> = (0..15_000).map(|n| json!({"a": n.to_string()})).collect();
    let list = |key: &str, n: usize| {
        let elements: Vec<Value> = (0..n).map(|item| json!({key: item.to_string()})).collect();
        json!({"list": {"elements": elements}})
    };
    let big = "x".repeat(1_000_000);
    let loops = "{{range until 100000}}{{end}}";
    let patterns: Vec<Value> =
        (0..5000).map(|n| json!({"path": format!("{}{n}", "*a".repeat(200))})).collect();
    let many_files: Vec<(String, String)> =
        (0..2000).map(|n| (format!("{}{n}", "a".repeat(200)), String::new())).collect();
    let many_files: Vec<(&str, &str)> =
        many_files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let known = Known::default().files(&many_files);
    let cases = [
        (
            "combinations",
            false,
            json!([{"matrix": {"generators": [list("a", 1000), list("b", 1000)]}}]),
            "x".to_owned(),
        ),
        (
            "copies of a parameter",
            false,
            json!([{"matrix": {"generators": [
            {"list": {"elements": [{"big": big}]}}, {"list": {"elements": elements.clone()}}]}}]),
            "x".to_owned(),
        ),
        (
            "copies in a text",
            false,
            json!([{"list": {"elements": [{"big": "x".repeat(100_000)}]}}]),
            "{{big}}".repeat(100_000),
        ),
        ("steps of many small templates", true, json!([{"list": {"elements": elements}}]), loops.to_owned()),
        (
            "patterns",
            false,
            json!([{"git": {"repoURL": "r", "revision": "HEAD", "files": patterns}}]),
            "x".to_owned(),
        ),
    ];
    for (what, go, generators, name) in cases {
        let object = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet",
            "metadata": {"name": "set", "namespace": "argocd"},
            "spec": {"generators": generators, "goTemplate": go, "template": {
                "metadata": {"name": name}, "spec": {"project": "default", "destination": {}}}},
        });
        let set = plumb_crd::ApplicationSet::from_json(&object).expect("the set is valid");
        let error = generate(&set, &known, &settings()).expect_err(what);
        let is_limit = ["exceeds its limit", "more than"].iter().any(|part| error.message.contains(part));
        assert!(is_limit, "{what}: {}", error.message.get(..300).unwrap_or(&error.message));
    }
}
