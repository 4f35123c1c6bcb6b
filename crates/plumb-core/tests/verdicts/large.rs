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
