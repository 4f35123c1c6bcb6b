use expect_test::{Expect, expect};
use serde_json::json;

use super::*;
use crate::app::IgnoreRule;
use crate::object::{Manifest, ObjectKey};

fn deployment() -> Manifest {
    Manifest::new(json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "prod"},
        "spec": {"replicas": 3, "template": {"spec": {"containers": [
            {"name": "app", "image": "app:1", "env": [{"name": "A", "value": "1"}]},
            {"name": "istio-proxy", "image": "proxy:1"},
        ]}}},
    }))
    .unwrap()
}

#[expect(clippy::needless_pass_by_value, reason = "reads better at the call")]
fn check(rule: IgnoreRule, expected: Expect) {
    let (rules, problems) = IgnoreRules::compile([rule]);
    let live = deployment();
    let key = live.key().unwrap();
    let mut lines: Vec<String> =
        problems.iter().map(|p| format!("problem: {}: {}", p.expression, p.message)).collect();
    lines.extend(rules.of(&key, None, Some(&live)).live.iter().map(ToString::to_string));
    expected.assert_eq(&lines.join("\n"));
}

fn rule() -> IgnoreRule {
    IgnoreRule { group: "apps".to_owned(), kind: "Deployment".to_owned(), ..IgnoreRule::default() }
}

fn jq(expression: &str) -> IgnoreRule {
    IgnoreRule { jq_path_expressions: vec![expression.to_owned()], ..rule() }
}

#[test]
fn pointers_and_jq_name_places() {
    check(
        IgnoreRule { json_pointers: vec!["/spec/replicas".to_owned(), "spec/x".to_owned()], ..rule() },
        expect![[r"
            problem: spec/x: a JSON pointer starts with `/`
            /spec/replicas"]],
    );
    check(
        jq(r#".spec.template.spec.containers[] | select(.name == "istio-proxy")"#),
        expect!["/spec/template/spec/containers/1"],
    );
    check(
        jq(".spec.template.spec.containers[]?.env[]?.value"),
        expect!["/spec/template/spec/containers/0/env/0/value"],
    );
    check(jq(".spec.nothing.here"), expect!["/spec/nothing/here"]);
}

#[test]
fn globs_match_groups_and_kinds() {
    for (group, kind, name, matches) in [
        ("*", "*", None, true),
        ("apps", "Deploy*", None, true),
        ("", "Deployment", None, false),
        ("apps", "Deployment", Some("web"), true),
        ("apps", "Deployment", Some("other"), false),
        ("app?", "Deployment", None, true),
        ("app", "Deployment", None, false),
        ("*.apps", "Deployment", None, false),
        ("{apps,batch}", "{Job,Deployment}", None, true),
        ("{apps,batch}", "{Job,CronJob}", None, false),
        ("[ab]pps", "[!E-Z]*", None, true),
        ("[!a]pps", "*", None, false),
        ("apps", "deployment", None, false),
        ("apps", "", None, false),
        (r"a\pps", "Deployment", None, true),
        ("a[pps", "Deployment", None, false),
    ] {
        let rule = IgnoreRule {
            group: group.to_owned(),
            kind: kind.to_owned(),
            name: name.map(str::to_owned),
            json_pointers: vec!["/spec".to_owned()],
            ..IgnoreRule::default()
        };
        let (rules, _) = IgnoreRules::compile([rule]);
        let live = deployment();
        assert_eq!(
            !rules.of(&live.key().unwrap(), None, Some(&live)).is_empty(),
            matches,
            "{group} {kind} {name:?}"
        );
    }
    let core = ObjectKey::new("", "Secret", None, "s");
    let (rules, _) = IgnoreRules::compile([IgnoreRule {
        kind: "Secret".to_owned(),
        json_pointers: vec!["/data".to_owned()],
        ..IgnoreRule::default()
    }]);
    assert!(!rules.of(&core, Some(&deployment()), None).is_empty());
}

#[test]
fn expressions_that_might_not_end_are_refused() {
    let nested = "(".repeat(100);
    for expression in [
        "repeat(1)",
        "def f: f; f",
        "last(range(0; infinite))",
        "[limit(9999999999; repeat(.))]",
        "halt",
        "input",
        "env.HOME",
        "$ENV",
        "now",
        "\"a\" * 1000000000",
        ".. | .. | .. | .. | .. | .. | ..",
        "reduce .[] as $x (0; . + 1)",
        "recurse(.)",
        nested.as_str(),
        "",
        "]",
    ] {
        let (_, problems) = IgnoreRules::compile([jq(expression)]);
        assert_eq!(problems.len(), 1, "{expression}");
    }
}

#[test]
fn the_rules_of_an_aggregated_role_are_its_controllers() {
    let rule = IgnoreRule {
        group: "rbac.authorization.k8s.io".to_owned(),
        kind: "ClusterRole".to_owned(),
        jq_path_expressions: vec!["select(.aggregationRule != null) | .rules".to_owned()],
        ..IgnoreRule::default()
    };
    let (rules, problems) = IgnoreRules::compile([rule]);
    assert_eq!(problems, []);
    let made = |body: serde_json::Value| {
        let mut object = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": "r"}, "rules": []});
        if !body.is_null() {
            object["aggregationRule"] = body;
        }
        Manifest::new(object).unwrap()
    };
    for (aggregation, expected) in [(json!({"clusterRoleSelectors": []}), 1), (json!(null), 0)] {
        let live = made(aggregation);
        assert_eq!(rules.of(&live.key().unwrap(), Some(&live), None).desired.len(), expected);
    }
}

#[test]
fn fields_of_a_named_manager_do_not_count_and_those_of_others_do() {
    let live = Manifest::new(json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "managedFields": [
            {"manager": "tuner", "operation": "Update", "fieldsV1": {"f:data": {"f:tuned": {}}}},
            {"manager": "kubectl-edit", "operation": "Update", "fieldsV1": {"f:data": {"f:edited": {}}}},
        ]},
        "data": {"tuned": "1", "edited": "1"},
    }))
    .unwrap();
    let (rules, _) = IgnoreRules::compile([IgnoreRule {
        kind: "ConfigMap".to_owned(),
        managed_fields_managers: vec!["tuner".to_owned()],
        ..IgnoreRule::default()
    }]);
    let ignored = rules.of(&live.key().unwrap(), None, Some(&live));
    let owners = crate::fields::Owners::of(&live);
    for (pointer, expected) in [("/data/tuned", true), ("/data/edited", false), ("/data/absent", false)] {
        let place = crate::object::FieldPath::from_pointer(pointer);
        assert_eq!(ignored.covers(&place, &place, &owners), expected, "{pointer}");
    }
}
