//! Edits of a part of what Git sets: inside a list that is one value, beside a value that is kept, under a name that a chart
//! generates, through a map that is gone.

use expect_test::expect;
use serde_json::{Value, json};

use crate::scene::{Scene, check, thing};

fn counted(scene: &Scene) -> Vec<String> {
    let verdict = scene.verdict();
    let counted = verdict.findings.iter().filter(|finding| finding.counts);
    counted.flat_map(|finding| &finding.fields).map(ToString::to_string).collect()
}

fn kept(scene: &Scene) -> Vec<String> {
    scene.verdict().advice.keep_live.iter().map(ToString::to_string).collect()
}

/// Kind, Git, the cluster, the owners of the field, and the field that opens more than Git.
fn openings() -> [(&'static str, Value, Value, Value, &'static str); 5] {
    let network = |peer: Value| json!({"spec": {"podSelector": {}, "ingress": [{"from": [peer]}]}});
    let ports = |port: Value| json!({"spec": {"podSelector": {}, "ingress": [{"ports": [port]}]}});
    let ingress = |tls: Value| json!({"spec": {"tls": [tls]}});
    let role = |rule: Value| json!({"rules": [rule]});
    [
        (
            "networking.k8s.io/v1 NetworkPolicy",
            network(json!({"podSelector": {"matchLabels": {"app": "a"}}})),
            network(json!({"podSelector": {"matchLabels": {"app": "a"}}, "namespaceSelector": {}})),
            json!({"f:spec": {"f:ingress": {}}}),
            "/spec/ingress/0/from/0/namespaceSelector",
        ),
        (
            "networking.k8s.io/v1 NetworkPolicy",
            ports(json!({"port": 80})),
            ports(json!({"port": 80, "endPort": 65535})),
            json!({"f:spec": {"f:ingress": {}}}),
            "/spec/ingress/0/ports/0/endPort",
        ),
        (
            "networking.k8s.io/v1 Ingress",
            ingress(json!({"hosts": ["a"]})),
            ingress(json!({"hosts": ["a"], "secretName": "theirs"})),
            json!({"f:spec": {"f:tls": {}}}),
            "/spec/tls/0/secretName",
        ),
        (
            "rbac.authorization.k8s.io/v1 ClusterRole",
            role(json!({"verbs": ["get"], "resources": ["pods"]})),
            role(json!({"verbs": ["get"], "resources": ["pods"], "resourceNames": ["theirs"]})),
            json!({"f:rules": {}}),
            "/rules/0/resourceNames",
        ),
        (
            "gateway.networking.k8s.io/v1 HTTPRoute",
            json!({"spec": {"rules": [{"backendRefs": [{"name": "a"}]}]}}),
            json!({"spec": {"rules": [{"backendRefs": [{"name": "a"}], "filters": [{"type": "RequestMirror"}]}]}}),
            json!({"f:spec": {"f:rules": {}}}),
            "/spec/rules/0/filters",
        ),
    ]
}

#[test]
fn a_field_inside_a_list_that_is_one_value_is_an_edit_under_any_name() {
    for name in [
        "kubectl-patch Update 2",
        "someone Update 2",
        "team-operator Update 2",
        "kube-controller-manager Update 2",
        "system:serviceaccount:kube-system:network-controller Update 2",
        "argocd-controller Update 2",
    ] {
        for (kind, git, live, owned, field) in openings() {
            let scene = Scene::new(kind, git.clone(), live)
                .by("argocd-controller Apply 1", json!({"f:metadata": {"f:labels": {}}}))
                .by(name, owned)
                .server_makes(git);
            assert_eq!(counted(&scene), [field], "{kind} by {name}");
            assert_eq!(kept(&scene), Vec::<String>::new(), "{kind} by {name}");
        }
    }
}

#[test]
fn the_same_under_plumbs_own_name_or_without_a_record_counts_too() {
    for (kind, git, live, owned, field) in openings() {
        for owned in [owned, json!({"f:metadata": {"f:labels": {}}})] {
            let scene = Scene::new(kind, git.clone(), live.clone())
                .by("argocd-controller Apply 2", owned)
                .server_makes(git.clone());
            assert_eq!(counted(&scene), [field], "{kind}");
        }
        // What the API server fills in is in its answer.
        let filled = Scene::new(kind, git, live.clone())
            .by("argocd-controller Apply 2", json!({"f:metadata": {"f:labels": {}}}))
            .server_makes(live);
        assert_eq!(counted(&filled), Vec::<String>::new(), "{kind}");
    }
}

#[test]
fn a_key_in_a_selector_counts_under_plumbs_own_name() {
    let policy = |labels: Value| json!({"spec": {"podSelector": {"matchLabels": labels}}});
    let git = policy(json!({"app": "web"}));
    let scene = |owned: Value| {
        let live = policy(json!({"app": "web", "nothing": "has-this"}));
        Scene::new("networking.k8s.io/v1 NetworkPolicy", git.clone(), live)
            .by("argocd-controller Apply 2", owned)
            .server_makes(git.clone())
    };
    assert_eq!(
        counted(&scene(json!({"f:spec": {"f:podSelector": {}}}))),
        ["/spec/podSelector/matchLabels/nothing"]
    );
    assert_eq!(
        counted(&scene(json!({"f:metadata": {"f:labels": {}}}))),
        ["/spec/podSelector/matchLabels/nothing"]
    );
}

#[test]
fn a_controller_fills_in_items_of_its_own_custom_resources() {
    let scene = |field: &str, writer: &'static str| {
        let mut theirs = json!({"f:spec": {}});
        theirs["f:spec"][format!("f:{field}")] = json!({});
        let git = json!({field: [{"name": "a"}]});
        thing(git.clone(), json!({field: [{"name": "a", "type": "string"}]}))
            .by("argocd-controller Apply 1", json!({"f:metadata": {"f:labels": {}}}))
            .by(writer, theirs)
            .server_makes(json!({"spec": git}))
    };
    check(
        scene("params", "parcel-webhook Update 2"),
        expect!["UnclaimedAddition /spec/params/0/type by parcel-webhook"],
    );
    check(
        scene("params", "kubectl-edit Update 2"),
        expect!["! LiveEdit /spec/params/0/type by kubectl-edit"],
    );
    check(
        scene("httpRoutes", "parcel-webhook Update 2"),
        expect!["! LiveEdit /spec/httpRoutes/0/type by parcel-webhook"],
    );
    // A rollout shifts the traffic between the backends of Git.
    let route = |backend: Value| json!({"spec": {"rules": [{"backendRefs": [backend]}]}});
    let git = route(json!({"name": "a"}));
    let live = route(json!({"name": "a", "weight": 30}));
    let rollout = Scene::new("gateway.networking.k8s.io/v1 HTTPRoute", git.clone(), live)
        .by("argocd-controller Apply 1", json!({"f:metadata": {"f:labels": {}}}))
        .by("rollouts-controller Update 2", json!({"f:spec": {"f:rules": {}}}))
        .server_makes(git);
    check(rollout, expect!["UnclaimedAddition /spec/rules/0/backendRefs/0/weight by rollouts-controller"]);
}

#[test]
fn a_value_that_is_kept_keeps_no_edit_beside_it() {
    // Both are in one list that an apply replaces as a whole.
    let jobs = |every: &str, image: &str| json!({"jobs": [{"name": "a", "every": every, "image": image}]});
    let scene = |image: &str| {
        thing(jobs("60m", "good:1"), jobs("1h0m0s", image))
            .by("argocd-controller Apply 1", json!({"f:metadata": {"f:labels": {}}}))
            .by("team-operator Update 2", json!({"f:spec": {"f:jobs": {}}}))
    };
    assert_eq!(kept(&scene("good:1")), ["/spec/jobs"]);
    assert_eq!(counted(&scene("evil:1")), ["/spec/jobs/0/image"]);
    assert_eq!(kept(&scene("evil:1")), Vec::<String>::new());
    // The same for what Git changed since.
    let behind = thing(jobs("60m", "good:2"), jobs("1h0m0s", "good:1"))
        .by("argocd-controller Apply 1", json!({"f:metadata": {"f:labels": {}}}))
        .by("team-operator Update 2", json!({"f:spec": {"f:jobs": {}}}))
        .applied_before(json!({"spec": jobs("60m", "good:1")}));
    assert!(!counted(&behind).is_empty());
    assert_eq!(kept(&behind), Vec::<String>::new());
}

#[test]
fn no_controller_reorders_what_the_first_of_counts() {
    let ordered = |kind: &'static str, spec: Value, other: Value, field: &'static str| {
        let mut theirs = json!({"f:spec": {}});
        theirs["f:spec"][format!("f:{field}")] = json!({});
        Scene::new(kind, json!({"spec": spec}), json!({"spec": other}))
            .by("argocd-controller Apply 1", json!({"f:metadata": {"f:labels": {}}}))
            .by("team-operator Update 2", theirs)
    };
    let service = |one: &str, other: &str| json!({"clusterIPs": [one, other]});
    let scene =
        ordered("v1 Service", service("10.0.0.1", "fd00::1"), service("fd00::1", "10.0.0.1"), "clusterIPs");
    assert_eq!(counted(&scene), ["/spec/clusterIPs"]);
    for field in ["middlewares", "authFilters", "trustedIssuers"] {
        let list = |one: &str, other: &str| json!({field: [{"name": one}, {"name": other}]});
        let scene = ordered("example.io/v1 Thing", list("auth", "log"), list("log", "auth"), field);
        assert_eq!(counted(&scene), [format!("/spec/{field}")]);
    }
}

#[test]
fn a_reference_that_lifts_a_rule_is_no_item_beside_git() {
    for field in [
        "clusterResourceWhitelist",
        "exemptions",
        "excludedNamespaces",
        "middlewares",
        "dependsOn",
        "secretRefs",
    ] {
        let mut theirs = json!({"f:spec": {}});
        theirs["f:spec"][format!("f:{field}")] = json!({});
        let all = json!({"group": "*", "kind": "*", "name": "*"});
        let scene = thing(json!({field: [{"name": "a"}]}), json!({field: [{"name": "a"}, all]}))
            .by("argocd-controller Apply 1", json!({"f:metadata": {"f:labels": {}}}))
            .by("team-operator Update 2", theirs);
        assert_eq!(counted(&scene), [format!("/spec/{field}/1")]);
    }
}

/// The API server fills in a default only where the map around it is there.
#[test]
fn a_default_that_went_with_the_map_around_it_is_a_removal() {
    for writer in ["kubectl-edit", "team-operator"] {
        let git = json!({"security": {"enforced": true}});
        let mut scene = thing(git.clone(), json!({}))
            .by("argocd-controller Apply 1", json!({"f:spec": {}}))
            .by("team-operator Update 2", json!({"f:metadata": {"f:finalizers": {}}}))
            .server_makes(json!({"spec": git}));
        scene.live["metadata"] =
            json!({"annotations": {"plumb.dev/last-writer": format!("2026-01-01T00:00:02Z {writer}")}});
        assert_eq!(counted(&scene), ["/spec/security/enforced"], "{writer}");
    }
}

#[test]
fn under_a_random_name_the_content_counts() {
    let pod = |name: &str, image: &str| json!({"spec": {"template": {"spec": {"containers": [{"name": name, "image": image}]}}}});
    let fields = |name: &str| {
        json!({"f:spec": {"f:template": {"f:spec": {"f:containers": {
            format!("k:{{\"name\":\"{name}\"}}"): {".": {}, "f:name": {}, "f:image": {}}}}}}})
    };
    let scene = |image: &str| {
        Scene::new("apps/v1 Deployment", pod("run-aaaaa", "good:1"), pod("run-zzzzz", image))
            .by("argocd-controller Apply 1", fields("run-zzzzz"))
            .rendered_again(pod("run-bbbbb", "good:1"))
            .applied_before(pod("run-zzzzz", "good:1"))
            .server_makes(pod("run-aaaaa", "good:1"))
    };
    assert_eq!(counted(&scene("good:1")), Vec::<String>::new());
    assert!(!counted(&scene("evil:1")).is_empty(), "{:?}", scene("evil:1").verdict().findings);
    assert!(!counted(&scene("evil:1").of_the_same_commit()).is_empty());
    assert_eq!(counted(&scene("good:1").of_the_same_commit()), Vec::<String>::new());
    // A value that varies with the name is not compared.
    let config = |key: &str, value: &str| json!({"data": {key: value}});
    let data = |value: &str, again: &str| {
        Scene::new("v1 ConfigMap", config("run-aaaaa", "one"), config("run-zzzzz", value))
            .by("argocd-controller Apply 1", json!({"f:data": {"f:run-zzzzz": {}}}))
            .rendered_again(config("run-bbbbb", again))
            .applied_before(config("run-zzzzz", "one"))
            .server_makes(config("run-aaaaa", "one"))
    };
    assert_eq!(counted(&data("two", "three")), Vec::<String>::new());
    assert!(!counted(&data("two", "one")).is_empty());
}

#[test]
fn a_large_number_is_not_the_float_beside_it() {
    let owned = json!({"f:spec": {"f:workers": {}}});
    let scene = |git: &str, live: &str| {
        let number = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        thing(json!({"workers": number(git)}), json!({"workers": number(live)}))
            .by("argocd-controller Apply 1", json!({"f:metadata": {"f:labels": {}}}))
            .by("kubectl-edit Update 2", owned.clone())
    };
    assert_eq!(counted(&scene("9007199254740993", "9007199254740992.0")), ["/spec/workers"]);
    assert_eq!(counted(&scene("18446744073709551615", "18446744073709551614")), ["/spec/workers"]);
    assert_eq!(counted(&scene("3", "3.0")), Vec::<String>::new());
}
