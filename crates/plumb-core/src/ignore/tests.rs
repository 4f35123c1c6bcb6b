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

fn config_map(keys: usize) -> Manifest {
    let data: serde_json::Map<String, serde_json::Value> =
        (0..keys).map(|n| (format!("key{n}"), json!("x"))).collect();
    Manifest::new(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": data}))
        .unwrap()
}

fn of_config_maps(expressions: impl IntoIterator<Item = String>) -> IgnoreRule {
    IgnoreRule {
        kind: "ConfigMap".to_owned(),
        jq_path_expressions: expressions.into_iter().collect(),
        ..IgnoreRule::default()
    }
}

const STEP_BOMB: &str = ".data as $d | .data | select(first(($d[]|$d[]|$d[]|$d[]|empty), true))";

#[test]
fn an_expression_that_takes_too_much_ignores_nothing_until_it_is_tried_again() {
    let (rules, problems) =
        IgnoreRules::compile([of_config_maps([STEP_BOMB.to_owned(), ".data.key1".to_owned()])]);
    assert_eq!(problems, []);
    let (small, large) = (config_map(3), config_map(300));
    let key = small.key().unwrap();
    let named = |live: &Manifest| rules.of(&key, Some(live), Some(live)).live.len();
    assert_eq!(named(&small), 2);
    let before = rules.fingerprint();
    assert_eq!((named(&large), named(&small)), (1, 1), "the other expression still counts");
    assert_ne!(rules.fingerprint(), before, "verdicts that it had a part in are out of date");
    let off = rules.switched_off();
    assert_eq!(off.len(), 1);
    assert_eq!(off[0].expression, STEP_BOMB);
    assert!(
        off[0].message.starts_with("it takes more than 1000000 steps on one object. "),
        "{}",
        off[0].message
    );
    rules.try_again();
    assert_eq!((named(&small), rules.switched_off()), (2, Vec::new()));
}

#[test]
fn what_is_too_much_on_one_side_names_no_place_on_the_other() {
    let (rules, _) = IgnoreRules::compile([of_config_maps([STEP_BOMB.to_owned()])]);
    let (small, large) = (config_map(3), config_map(300));
    assert!(rules.of(&small.key().unwrap(), Some(&small), Some(&large)).is_empty());
}

#[test]
fn rules_for_all_apps_are_not_switched_off_by_one_object() {
    let (rules, _) = IgnoreRules::compile([of_config_maps([STEP_BOMB.to_owned()])]);
    let rules = rules.for_all_apps();
    let (small, large) = (config_map(3), config_map(300));
    let named = |live: &Manifest| rules.of(&live.key().unwrap(), None, Some(live)).live.len();
    assert_eq!((named(&large), named(&small)), (0, 1));
}

#[test]
fn an_app_has_so_many_rules_and_those_of_the_settings_stay() {
    let many = |count: usize| of_config_maps((0..count).map(|n| format!(".data.key{n}")));
    let flood = vec![
        IgnoreRule {
            json_pointers: vec!["/data/a".to_owned(); 100_000],
            managed_fields_managers: vec!["m".to_owned(); 100_000],
            ..many(100_000)
        },
        IgnoreRule { json_pointers: vec![format!("/{}", "a".repeat(5_000)), "/a".repeat(900)], ..many(0) },
        IgnoreRule { kind: "K".repeat(300), ..many(1) },
    ];
    let flood = flood.into_iter().chain(std::iter::repeat_n(many(0), 100_000));
    let (rules, problems) = IgnoreRules::compile_all([flood.collect(), vec![many(1)]]);
    let live = config_map(3);
    let ignored = rules.of(&live.key().unwrap(), None, Some(&live));
    assert_eq!(ignored.live.len(), 1_000 + 200 + 1);
    assert_eq!(ignored.managers.len(), 200);
    let told: Vec<String> =
        problems.iter().map(|problem| format!("{}: {}", problem.expression.len(), problem.message)).collect();
    expect![[r"
        17: more than 500 rules: the ones after these ignore nothing. Remove some
        203: a kind has at most 253 bytes
        17: more than 200 in all rules together: the ones after these ignore nothing. Remove some
        12: more than 1000 in all rules together: the ones after these ignore nothing. Remove some
        21: more than 200 in all rules together: the ones after these ignore nothing. Remove some
        203: a JSON pointer has at most 2000 bytes
        203: a JSON pointer has at most 200 segments"]]
    .assert_eq(&told.join("\n"));
    let wrong = of_config_maps((0..200).map(|n| format!("[{n}")));
    let (_, problems) = IgnoreRules::compile([wrong]);
    assert_eq!(problems.len(), 21);
    assert_eq!(problems[20].message, "180 more problems of other rules");
}

#[test]
fn rules_are_costly_if_they_can_outgrow_the_object() {
    for (expression, is_costly) in [
        (".spec.replicas", false),
        (r#".spec.template.spec.containers[] | select(.name == "a" or .name == "b") | .env[]?.value"#, false),
        (r#".metadata.annotations | .["x"]?, .["y"]?"#, false),
        ("(.a, .b) | (.c, .d) | (.e, .f)", true),
        (r#".spec.containers[]? | select(.name | test("^istio"))"#, false),
        (".. | .image?", false),
        (".. | .. | .image?", true),
        ("select(.a == .b + .c) | .a", true),
        (".spec as $s | .status", true),
        ("select([.spec] | length > 0)", true),
        ("select(.spec | tostring | test(\"a\"))", true),
    ] {
        let (rules, problems) = IgnoreRules::compile([jq(expression)]);
        assert_eq!(problems, [], "{expression}");
        assert_eq!(rules.are_costly_for(&deployment().key().unwrap()), is_costly, "{expression}");
        assert!(!rules.are_costly_for(&ObjectKey::new("", "Secret", None, "s")));
    }
}
