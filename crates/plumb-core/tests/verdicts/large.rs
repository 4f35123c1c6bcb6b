//! Large objects: what each rule asks for each difference must not be searched each time. The sizes are such that a search
//! through all others for each of them would take minutes or hours.

use serde_json::{Map, Value, json};

use crate::scene::Scene;

#[test]
fn many_random_keys_without_a_counterpart_are_differences() {
    for n_keys in [300, 2_000] {
        let keys = |prefix: &str| -> Map<String, Value> {
            (0..n_keys).map(|n| (format!("{prefix}-{:08}", n * 7_919), json!("1"))).collect()
        };
        let (git, second, live) = (keys("yy"), keys("zz"), keys("x"));
        let owned: Map<String, Value> = live.keys().map(|key| (format!("f:{key}"), json!({}))).collect();
        let scene = Scene::new("v1 ConfigMap", json!({"data": git}), json!({"data": live}))
            .by("argocd-controller Apply 1", json!({"f:data": owned}))
            .rendered_again(json!({"data": second}))
            .applied_before(json!({"data": live}))
            .server_makes(json!({"data": git}));
        let verdict = scene.verdict();
        let classes: Vec<String> = verdict
            .findings
            .iter()
            .map(|finding| format!("{:?} {}", finding.class, finding.counts))
            .collect();
        assert_eq!(classes, ["Behind true"]);
    }
}

/// The ports of a Thing, and the elements by which an entry names them.
fn ports(numbers: std::ops::Range<u32>) -> (Vec<Value>, Map<String, Value>) {
    let items = numbers.clone().map(|n| json!({"port": n, "protocol": "TCP"})).collect();
    let elements = numbers.map(|n| {
        (format!("k:{{\"port\":{n},\"protocol\":\"TCP\"}}"), json!({".": {}, "f:port": {}, "f:protocol": {}}))
    });
    (items, elements.collect())
}

#[test]
fn many_added_items_are_judged_in_one_pass() {
    let (live, theirs) = ports(0..3_000);
    let (git, ours) = ports(0..1);
    for is_strict in [false, true] {
        let mut scene = Scene::new(
            "example.io/v1 Thing",
            json!({"spec": {"endpoints": git}}),
            json!({"spec": {"endpoints": live}}),
        )
        .by("argocd-controller Apply 1", json!({"f:spec": {"f:endpoints": ours}}))
        .by("kubectl-edit Update 2", json!({"f:spec": {"f:endpoints": theirs}}))
        .server_makes(json!({"spec": {"endpoints": live}}));
        scene.strict = is_strict;
        let findings = scene.verdict().findings;
        let found: Vec<(String, bool)> =
            findings.iter().map(|finding| (format!("{:?}", finding.class), finding.counts)).collect();
        assert_eq!(found, [("UnclaimedAddition".to_owned(), is_strict)]);
    }
}

#[test]
fn many_items_in_another_order_with_other_values_are_judged_in_one_pass() {
    let named = |numbers: &mut dyn Iterator<Item = u32>, name: &str| -> Vec<Value> {
        numbers.map(|n| json!({"port": n, "protocol": "TCP", "name": format!("{name}{n}")})).collect()
    };
    let (git, live) = (named(&mut (0..10_000), "a"), named(&mut (0..10_000).rev(), "b"));
    let (_, theirs) = ports(0..10_000);
    let scene = Scene::new(
        "example.io/v1 Thing",
        json!({"spec": {"endpoints": git}}),
        json!({"spec": {"endpoints": live}}),
    )
    .by("argocd-controller Apply 1", json!({"f:metadata": {"f:labels": {}}}))
    .by("kubectl-edit Update 2", json!({"f:spec": {"f:endpoints": theirs}}))
    .server_makes(json!({"spec": {"endpoints": git}}));
    assert!(scene.verdict().findings.iter().any(|finding| finding.counts));
}

#[test]
fn many_finalizers_are_judged_in_one_pass() {
    let finalizers = |name: &str| -> Vec<String> { (0..300_000).map(|n| format!("{name}{n}")).collect() };
    let git = json!({"metadata": {"finalizers": finalizers("a")}, "spec": {"tags": finalizers("b")}});
    let missing = Scene::new("example.io/v1 Thing", git.clone(), Value::Null);
    assert!(missing.verdict().findings.iter().any(|finding| finding.counts));
    let other = json!({"metadata": {"finalizers": finalizers("c")}, "spec": {"tags": finalizers("d")}});
    let other = Scene::new("example.io/v1 Thing", git, other)
        .by("argocd-controller Apply 1", json!({"f:spec": {"f:tags": {}}}));
    assert!(other.verdict().findings.iter().any(|finding| finding.counts));
}

#[test]
fn many_zero_values_are_judged_in_one_pass() {
    let zeros: Map<String, Value> = (0..20_000).map(|n| (format!("f{n}"), json!(false))).collect();
    let scene = Scene::new("example.io/v2 Loose", json!({"spec": zeros}), json!({"spec": {"x": 1}}))
        .by("argocd-controller Apply 1", json!({"f:metadata": {"f:labels": {}}}))
        .by("loose-operator Update 2", json!({"f:spec": {"f:x": {}}}));
    assert!(!scene.verdict().findings.is_empty());
}
