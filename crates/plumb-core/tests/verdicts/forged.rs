//! Writers that take the name of a controller. The name is chosen by the client, so it excuses nothing by itself.

use expect_test::expect;
use serde_json::{Value, json};

use crate::scene::{Scene, check, config, said, thing};

/// Names that an attacker would choose, with and without a subresource.
const NAMES: [&str; 10] = [
    "kube-controller-manager Update 2",
    "kube-controller-manager Apply 2",
    "kube-scheduler Update 2",
    "clusterrole-aggregation-controller Apply 2",
    "cert-manager-cainjector Update 2",
    "team-operator Update 2",
    "system:serviceaccount:kube-system:deployment-controller Update 2",
    "argocd-controller Update 2",
    "argocd-controller Update 2 scale",
    "kube-controller-manager Update 2 scale",
];

/// An object whose field Git sets to one value and the live object has with another, written under `name`.
fn edited(
    kind: &'static str,
    at: &[&str],
    git: Value,
    live: Value,
    name: &'static str,
    fields: Value,
) -> Scene {
    let nest = |value: Value| at.iter().rev().fold(value, |inner, field| json!({*field: inner}));
    let ours = json!({"f:metadata": {"f:labels": {}}});
    Scene::new(kind, nest(git), nest(live)).by("argocd-controller Apply 1", ours).by(name, fields)
}

#[test]
fn no_name_excuses_a_change_that_does_harm() {
    let container = |image: &str| json!([{"name": "c", "image": image}]);
    let owned_image = json!({"f:spec": {"f:template": {"f:spec": {"f:containers": {
        "k:{\"name\":\"c\"}": {".": {}, "f:name": {}, "f:image": {}}}}}}});
    let owned = |field: &str| json!({format!("f:{field}"): {}});
    let rule = |verb: &str| json!([{"apiGroups": [""], "resources": ["secrets"], "verbs": [verb]}]);
    let user = |name: &str| json!([{"kind": "User", "name": name, "apiGroup": "rbac.authorization.k8s.io"}]);
    let two_users = json!([user("a")[0], user("mallory")[0]]);
    for name in NAMES {
        let scenes = || {
            [
                edited(
                    "apps/v1 Deployment",
                    &["spec", "template", "spec", "containers"],
                    container("good:1"),
                    container("evil:1"),
                    name,
                    owned_image.clone(),
                ),
                edited(
                    "apps/v1 Deployment",
                    &["spec", "replicas"],
                    json!(3),
                    json!(0),
                    name,
                    json!({"f:spec": {"f:replicas": {}}}),
                ),
                edited(
                    "rbac.authorization.k8s.io/v1 Role",
                    &["rules"],
                    rule("get"),
                    rule("*"),
                    name,
                    owned("rules"),
                ),
                edited(
                    "rbac.authorization.k8s.io/v1 ClusterRole",
                    &["rules"],
                    rule("get"),
                    rule("*"),
                    name,
                    owned("rules"),
                ),
                edited(
                    "rbac.authorization.k8s.io/v1 RoleBinding",
                    &["subjects"],
                    user("a"),
                    two_users.clone(),
                    name,
                    owned("subjects"),
                ),
                edited(
                    "v1 ConfigMap",
                    &["data"],
                    json!({"level": "info"}),
                    json!({"level": "off"}),
                    name,
                    json!({"f:data": {"f:level": {}}}),
                ),
                edited(
                    "v1 Service",
                    &["spec", "selector"],
                    json!({"app": "a"}),
                    json!({"app": "evil"}),
                    name,
                    json!({"f:spec": {"f:selector": {}}}),
                ),
                edited(
                    "v1 PersistentVolumeClaim",
                    &["spec", "resources", "requests", "storage"],
                    json!("9Gi"),
                    json!("1Gi"),
                    name,
                    json!({"f:spec": {"f:resources": {"f:requests": {"f:storage": {}}}}}),
                ),
                edited(
                    "v1 PersistentVolumeClaim",
                    &["spec", "volumeName"],
                    json!("mine"),
                    json!("theirs"),
                    name,
                    json!({"f:spec": {"f:volumeName": {}}}),
                ),
            ]
        };
        // An autoscaler excuses other replicas, and nothing else.
        let autoscaled = scenes().map(|scene| scene.autoscaler("web"));
        for scene in scenes().into_iter().chain(autoscaled) {
            let verdict = scene.verdict();
            let counted: Vec<_> = verdict.findings.iter().filter(|finding| finding.counts).collect();
            assert!(!counted.is_empty(), "{name}: {:?}", verdict.findings);
            assert!(
                verdict.advice.keep_live.is_empty(),
                "{name}: a sync would keep {:?}",
                verdict.advice.keep_live
            );
        }
    }
}

#[test]
fn a_write_through_scale_excuses_the_replicas_and_nothing_else() {
    let scene = |git: Value, live: Value, fields: Value| {
        thing(git, live)
            .by("argocd-controller Apply 1", json!({"f:metadata": {"f:labels": {}}}))
            .by("kube-controller-manager Update 2 scale", fields)
            .autoscaler("web")
    };
    let size = |size: Value| json!({"size": size});
    let owned = |fields: Value| json!({"f:spec": fields});
    check(
        scene(size(json!(2)), size(json!(5)), owned(json!({"f:size": {}}))),
        expect!["ControllerOwned /spec/size by kube-controller-manager"],
    );
    // A text is no number of replicas, and an entry of `scale` has one field.
    check(
        scene(size(json!("2")), size(json!("5")), owned(json!({"f:size": {}}))),
        expect!["! LiveEdit /spec/size by kube-controller-manager"],
    );
    check(
        scene(size(json!(2)), size(json!(5)), owned(json!({"f:size": {}, "f:image": {}}))),
        expect!["! LiveEdit /spec/size by kube-controller-manager"],
    );
    let addition = scene(json!({"a": 1}), json!({"a": 1, "image": "evil"}), owned(json!({"f:image": {}})));
    check(addition.strict(), expect!["! UnclaimedAddition /spec/image by kube-controller-manager"]);
}

#[test]
fn an_addition_whose_record_was_erased_is_still_an_addition() {
    let deployment = |containers: Value| json!({"spec": {"template": {"spec": {"containers": containers}}}});
    let one = json!({"name": "c", "image": "good:1"});
    let two = json!([one, {"name": "evil", "image": "evil:1"}]);
    let ours = json!({"f:spec": {"f:template": {"f:spec": {"f:containers": {
        "k:{\"name\":\"c\"}": {".": {}, "f:name": {}, "f:image": {}}}}}}});
    let sidecar = || {
        Scene::new("apps/v1 Deployment", deployment(json!([one])), deployment(two.clone()))
            .by("argocd-controller Apply 1", ours.clone())
    };
    check(sidecar(), expect!["UnclaimedAddition /spec/template/spec/containers/1"]);
    check(sidecar().strict(), expect!["! UnclaimedAddition /spec/template/spec/containers/1"]);
    let key = || {
        Scene::new("v1 ConfigMap", json!({"data": {"a": "1"}}), json!({"data": {"a": "1", "b": "2"}}))
            .by("argocd-controller Apply 1", json!({"f:data": {"f:a": {}}}))
    };
    check(key(), expect!["UnclaimedAddition /data/b"]);
    check(key().strict(), expect!["! UnclaimedAddition /data/b"]);
}

#[test]
fn a_weaker_failure_policy_counts_whoever_owns_the_webhook() {
    let webhook = |policy: &str, bundle: &str| json!({"webhooks": [{"name": "a", "failurePolicy": policy, "clientConfig": {"caBundle": bundle}}]});
    let theirs = json!({"f:webhooks": {"k:{\"name\":\"a\"}": {
        "f:failurePolicy": {}, "f:clientConfig": {"f:caBundle": {}}}}});
    let certificate = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg==";
    let scene = |git: &str, live: &str| {
        Scene::new(
            "admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration",
            webhook(git, "Cg=="),
            webhook(live, certificate),
        )
        .by("argocd-controller Apply 1", json!({}))
        .by("pilot-discovery Update 2", theirs.clone())
    };
    check(
        scene("Ignore", "Fail"),
        expect![
            "ControllerOwned /webhooks/0/clientConfig/caBundle /webhooks/0/failurePolicy by pilot-discovery"
        ],
    );
    check(
        scene("Fail", "Ignore"),
        expect![[r"
            ! LiveEdit /webhooks/0/failurePolicy by pilot-discovery
            ControllerOwned /webhooks/0/clientConfig/caBundle by pilot-discovery"]],
    );
}

#[test]
fn a_bundle_that_is_no_certificate_is_an_edit() {
    let of = |bundle: &str| json!({"webhooks": [{"name": "a", "clientConfig": {"caBundle": bundle}}]});
    let theirs = json!({"f:webhooks": {"k:{\"name\":\"a\"}": {"f:clientConfig": {"f:caBundle": {}}}}});
    let kind = "admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration";
    let scene = Scene::new(kind, of("Cg=="), of("bm8gY2VydGlmaWNhdGU="))
        .by("argocd-controller Apply 1", json!({}))
        .by("cert-manager-cainjector Update 2", theirs);
    check(scene, expect!["! LiveEdit /webhooks/0/clientConfig/caBundle by cert-manager-cainjector"]);
    // In another kind, a field of that name may decide whom a client trusts.
    let vault =
        thing(json!({"caBundle": "Cg=="}), json!({"caBundle": "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg=="}))
            .by("argocd-controller Apply 1", json!({"f:metadata": {"f:labels": {}}}))
            .by("cert-manager-cainjector Update 2", json!({"f:spec": {"f:caBundle": {}}}));
    check(vault, expect!["! LiveEdit /spec/caBundle by cert-manager-cainjector"]);
}

#[test]
fn the_rules_of_a_role_count_when_its_aggregation_is_gone() {
    let aggregation = json!({"clusterRoleSelectors": [{"matchLabels": {"to": "x"}}]});
    let rules = |verb: &str| json!([{"verbs": [verb], "resources": ["pods"]}]);
    let scene = Scene::new(
        "rbac.authorization.k8s.io/v1 ClusterRole",
        json!({"aggregationRule": aggregation, "rules": rules("get")}),
        json!({"rules": rules("*")}),
    )
    .by("argocd-controller Apply 1", json!({"f:metadata": {"f:labels": {}}}))
    .by("clusterrole-aggregation-controller Apply 2", json!({"f:rules": {}}));
    let verdict = scene.verdict();
    let counted = verdict.findings.iter().filter(|finding| finding.counts);
    let fields: Vec<String> = counted.flat_map(|finding| &finding.fields).map(ToString::to_string).collect();
    assert!(fields.iter().any(|field| field.starts_with("/rules")), "{fields:?}");
}

#[test]
fn an_item_beside_those_of_git_is_no_rule_and_no_command() {
    for field in ["rules", "subjects", "command", "args", "ingress", "containers"] {
        let mut theirs = json!({"f:spec": {}});
        theirs["f:spec"][format!("f:{field}")] = json!({});
        let scene = thing(json!({field: ["a"]}), json!({field: ["a", "b"]}))
            .by("argocd-controller Apply 1", json!({"f:metadata": {"f:labels": {}}}))
            .by("parcel-operator Update 2", theirs);
        assert!(scene.verdict().findings.iter().any(|finding| finding.counts), "{field}");
    }
    let beside = |item: Value| {
        thing(json!({"items": [{"name": "a"}]}), json!({"items": [{"name": "a"}, item]}))
            .by("argocd-controller Apply 1", json!({"f:metadata": {"f:labels": {}}}))
            .by("parcel-operator Update 2", json!({"f:spec": {"f:items": {}}}))
    };
    let right = beside(json!({"name": "b", "verbs": ["*"]}));
    check(right, expect!["! LiveEdit /spec/items/1 by parcel-operator"]);
    let beside = beside(json!({"name": "b"}));
    check(beside, expect!["ControllerOwned /spec/items/1 by parcel-operator"]);
}

#[test]
fn what_was_removed_from_git_goes_whatever_the_name_of_its_other_owner() {
    // Another writer applied the same field, so that it stays when Git drops it.
    for name in ["team-operator Apply 2", "kube-controller-manager Apply 2", "someone Apply 2"] {
        let fields = json!({"f:data": {"f:admin": {}}});
        let ours = json!({"f:data": {"f:level": {}, "f:admin": {}}});
        let scene = || {
            Scene::new(
                "v1 ConfigMap",
                json!({"data": {"level": "info"}}),
                json!({"data": {"level": "info", "admin": "mallory"}}),
            )
            .by("argocd-controller Apply 1", ours.clone())
            .by(name, fields.clone())
        };
        for scene in [
            scene().after_restart(),
            scene().applied_before(json!({"data": {"level": "info", "admin": "mallory"}})),
        ] {
            let verdict = scene.verdict();
            assert!(verdict.findings.iter().any(|finding| finding.counts), "{name}: {:?}", verdict.findings);
        }
    }
}

#[test]
fn a_forged_record_of_a_client_side_apply_hides_nothing_that_git_dropped() {
    let mut scene = config(json!({"level": "info"}), json!({"level": "info", "admin": "mallory"}))
        .by("kubectl-client-side-apply Update 0", json!({"f:data": {"f:admin": {}}}))
        .after_restart();
    scene.managers[0].1 = json!({"f:data": {"f:level": {}, "f:admin": {}}});
    scene.last_applied = Some(json!({"data": {}}));
    assert!(scene.verdict().findings.iter().any(|finding| finding.counts));
}

#[test]
fn a_generated_value_that_another_writer_replaced_is_an_edit() {
    let scene = |manager: &'static str| {
        Scene::new(
            "v1 ConfigMap",
            json!({"data": {"token": "aaa"}}),
            json!({"data": {"token": "chosen-by-mallory"}}),
        )
        .by("argocd-controller Apply 1", json!({"f:metadata": {"f:labels": {}}}))
        .by(manager, json!({"f:data": {"f:token": {}}}))
        .rendered_again(json!({"data": {"token": "bbb"}}))
    };
    check(scene("kubectl-edit Update 2"), expect!["! LiveEdit /data/token by kubectl-edit"]);
    check(scene("team-operator Update 2"), expect!["! LiveEdit /data/token by team-operator"]);
}

#[test]
fn under_strict_no_name_excuses_an_addition_that_does_harm() {
    for name in
        ["kube-controller-manager Update 2", "kubelet Update 2", "kube-controller-manager Update 2 status"]
    {
        let mut scene = Scene::new(
            "apps/v1 Deployment",
            json!({"spec": {"replicas": 1}}),
            json!({"spec": {"replicas": 1, "template": {"spec": {"hostNetwork": true}}}}),
        )
        .by("argocd-controller Apply 1", json!({"f:spec": {"f:replicas": {}}}))
        .by(name, json!({"f:spec": {"f:template": {"f:spec": {"f:hostNetwork": {}}}}}));
        scene.strict = true;
        let verdict = scene.verdict();
        assert!(verdict.findings.iter().any(|finding| finding.counts), "{name}: {:?}", verdict.findings);
    }
}

#[test]
fn a_write_under_our_own_name_is_no_generated_value() {
    // The chart prints the date, so each day renders something else; another client applied as `argocd-controller`.
    let web = |image: &str, day: &str| {
        json!({
            "metadata": {"annotations": {"day": day}},
            "spec": {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}},
        })
    };
    let fields = json!({
        "f:metadata": {"f:annotations": {"f:day": {}}},
        "f:spec": {"f:template": {"f:spec": {"f:containers": {
            "k:{\"name\":\"c\"}": {".": {}, "f:name": {}, "f:image": {}}}}}},
    });
    let scene = Scene::new("apps/v1 Deployment", web("good:1", "Tue"), web("evil:1", "Mon"))
        .by("argocd-controller Apply 2", fields)
        .rendered_again(web("good:1", "Tue"))
        .server_makes(web("good:1", "Tue"))
        .of_the_same_commit();
    let verdict = scene.verdict();
    let counted: Vec<String> = verdict
        .findings
        .iter()
        .filter(|finding| finding.counts)
        .flat_map(|finding| finding.fields.iter().map(ToString::to_string))
        .collect();
    assert_eq!(counted, ["/spec/template/spec/containers/0/image"], "{:?}", verdict.findings);
}

#[test]
fn the_user_that_the_api_server_knows_is_shown_and_decides() {
    // Additions of the control plane are excused under `Strict`, but not if a person signed as the control plane.
    let scene = |user: &str| {
        let mut scene = Scene::new(
            "v1 ConfigMap",
            json!({"data": {"level": "info"}}),
            json!({"data": {"level": "info"}, "metadata": {"annotations": {
                "volume.kubernetes.io/x": "y",
                "plumb.dev/last-writer": format!("2026-01-01T00:00:02Z \"{user}\" kube-controller-manager"),
            }}}),
        )
        .by("argocd-controller Apply 1", json!({"f:data": {"f:level": {}}}))
        .by(
            "kube-controller-manager Update 2",
            json!({"f:metadata": {"f:annotations": {"f:volume.kubernetes.io/x": {}}}}),
        );
        scene.strict = true;
        scene.verdict().findings.iter().any(|finding| finding.counts)
    };
    assert!(!scene("system:kube-controller-manager"));
    assert!(!scene("system:serviceaccount:kube-system:pv-protection"));
    assert!(scene("mallory"));
    let edit = config(json!({"level": "info"}), json!({"level": "off"}));
    let mut edit = edit.by("kube-controller-manager Update 2", json!({"f:data": {"f:level": {}}}));
    edit.live["metadata"] = json!({"annotations": {
        "plumb.dev/last-writer": "2026-01-01T00:00:02Z \"mallory\" kube-controller-manager"}});
    let verdict = edit.verdict();
    let evidence = format!("{:?}", verdict.findings[0].evidence);
    assert!(evidence.contains("(user `mallory`)"), "{evidence}");
}

#[test]
fn an_update_under_our_own_name_is_an_edit() {
    let mut added = Scene::new(
        "v1 ConfigMap",
        json!({"data": {"level": "info"}}),
        json!({"data": {"level": "info", "admin": "mallory"}}),
    )
    .by("argocd-controller Apply 1", json!({"f:data": {"f:level": {}}}))
    .by("argocd-controller Update 2", json!({"f:data": {"f:admin": {}}}));
    added.strict = true;
    assert!(added.verdict().findings.iter().any(|finding| finding.counts), "{:?}", added.verdict().findings);
    let generated =
        Scene::new("v1 ConfigMap", json!({"data": {"token": "a"}}), json!({"data": {"token": "chosen"}}))
            .by("argocd-controller Apply 1", json!({"f:metadata": {"f:labels": {}}}))
            .by("argocd-controller Update 2", json!({"f:data": {"f:token": {}}}))
            .rendered_again(json!({"data": {"token": "b"}}));
    check(generated, expect!["! LiveEdit /data/token by argocd-controller"]);
}

#[test]
fn a_field_that_git_dropped_counts_when_its_record_was_erased() {
    let scene = Scene::new(
        "v1 ConfigMap",
        json!({"data": {"level": "info"}}),
        json!({"data": {"level": "info", "admin": "mallory"}}),
    )
    .by("kubectl Update 2", json!({"f:metadata": {"f:labels": {}}}))
    .applied_before(json!({"data": {"level": "info", "admin": "mallory"}}));
    assert!(scene.verdict().findings.iter().any(|finding| finding.counts), "{:?}", scene.verdict().findings);
}

#[test]
fn a_list_of_many_replaced_items_is_judged_in_one_pass() {
    // Each item of Git is gone and a new one is there: what each rule asks for each of them must not be searched each time.
    let items = |name: &str| -> Vec<Value> {
        (0..1500).map(|n| json!({"name": format!("{name}{n}"), "port": n})).collect()
    };
    let fields: serde_json::Map<String, Value> = (0..1500)
        .map(|n| (format!("k:{{\"name\":\"b{n}\"}}"), json!({".": {}, "f:name": {}, "f:port": {}})))
        .collect();
    let scene = thing(json!({"ports": items("a")}), json!({"ports": items("b")}))
        .by("argocd-controller Apply 1", json!({"f:metadata": {"f:labels": {}}}))
        .by("kubectl-edit Update 2", json!({"f:spec": {"f:ports": fields}}));
    assert!(scene.verdict().findings.iter().any(|finding| finding.counts));
}

/// The fields that count in a verdict.
fn counted(scene: &Scene) -> Vec<String> {
    let verdict = scene.verdict();
    let counted = verdict.findings.iter().filter(|finding| finding.counts);
    counted.flat_map(|finding| finding.fields.iter().map(ToString::to_string)).collect()
}

#[test]
fn a_removed_field_counts_although_managed_fields_still_name_it() {
    // A client removes a field, and then writes `managedFields` in which plumb's entry names it as before.
    let git = json!({"data": {"level": "info", "audit": "on"}});
    let all = json!({"f:data": {"f:level": {}, "f:audit": {}}});
    let scene = || {
        Scene::new("v1 ConfigMap", git.clone(), json!({"data": {"level": "info"}}))
            .by("argocd-controller Apply 1", all.clone())
    };
    assert_eq!(counted(&scene().server_makes(git.clone())), ["/data/audit"]);
    assert_eq!(counted(&scene()), ["/data/audit"], "the API server did not answer");
    assert_eq!(counted(&scene().after_restart().server_makes(git.clone())), ["/data/audit"]);
    // What the API server itself drops does not count.
    let dropped = scene().server_makes(json!({"data": {"level": "info"}}));
    check(dropped, expect!["RejectedField /data/audit"]);
}

#[test]
fn a_field_removed_from_a_list_by_an_apply_under_our_name_counts() {
    let of = |rule: Value| json!({"spec": {"podSelector": {}, "ingress": [rule]}});
    let git = of(json!({"from": [{"podSelector": {"matchLabels": {"app": "a"}}, "note": "x"}]}));
    let scene = Scene::new("networking.k8s.io/v1 NetworkPolicy", git.clone(), of(json!({})))
        .by("argocd-controller Apply 2", json!({"f:spec": {"f:podSelector": {}, "f:ingress": {}}}))
        .server_makes(git);
    assert_eq!(counted(&scene), ["/spec/ingress/0/from"]);
}

#[test]
fn a_zero_value_that_is_not_the_same_as_none_counts_although_managed_fields_name_it() {
    let account = |live: Value, owned: Value| {
        let git = json!({"automountServiceAccountToken": false});
        Scene::new("v1 ServiceAccount", git.clone(), live)
            .by("argocd-controller Apply 1", owned)
            .server_makes(git)
    };
    let owned = json!({"f:automountServiceAccountToken": {}});
    assert_eq!(counted(&account(json!({}), owned)), ["/automountServiceAccountToken"]);
    // The API server drops this one, and its absence means the same: no dry-run is needed.
    let of = |spec: Value| json!({"spec": {"template": {"spec": spec}}});
    let network = Scene::new("apps/v1 Deployment", of(json!({"hostNetwork": false})), of(json!({}))).by(
        "argocd-controller Apply 1",
        json!({"f:spec": {"f:template": {"f:spec": {"f:hostNetwork": {}}}}}),
    );
    assert_eq!(counted(&network), Vec::<String>::new());
    // A custom resource keeps its zero values.
    let git = json!({"allowPrivilegeEscalation": false});
    let custom = thing(git.clone(), json!({}))
        .by("argocd-controller Apply 1", json!({"f:spec": {"f:allowPrivilegeEscalation": {}}}))
        .server_makes(json!({"spec": git}));
    assert_eq!(counted(&custom), ["/spec/allowPrivilegeEscalation"]);
}

#[test]
fn an_addition_by_an_apply_under_our_name_counts() {
    let git = json!({"data": {"level": "info"}});
    let scene = || {
        Scene::new("v1 ConfigMap", git.clone(), json!({"data": {"level": "info", "admin": "mallory"}}))
            .by("argocd-controller Apply 2", json!({"f:data": {"f:level": {}, "f:admin": {}}}))
    };
    assert_eq!(counted(&scene().server_makes(git.clone())), ["/data/admin"]);
    assert_eq!(counted(&scene()), ["/data/admin"]);
    assert_eq!(counted(&scene().strict().server_makes(git.clone())), ["/data/admin"]);
    let said = said(&scene().server_makes(git.clone()));
    assert!(said.contains("under the name of plumb's field manager"), "{said}");
    // The API server fills it in: it is no edit.
    let filled = scene().server_makes(json!({"data": {"level": "info", "admin": "mallory"}}));
    assert_eq!(counted(&filled), Vec::<String>::new());
}

#[test]
fn a_value_beside_a_generated_one_is_not_excused_under_our_name() {
    let steps = |image: &str, token: &str| json!({"spec": {"steps": [{"name": "a", "image": image, "token": token}]}});
    let scene = Scene::new("example.io/v1 Thing", steps("good:1", "t2"), steps("evil:1", "t1"))
        .by("argocd-controller Apply 2", json!({"f:spec": {"f:steps": {}}}))
        .rendered_again(steps("good:1", "t3"))
        .server_makes(steps("good:1", "t2"));
    assert_eq!(counted(&scene), ["/spec/steps/0/image"]);
    let verdict = scene.verdict();
    let kept: Vec<String> = verdict.advice.keep_live.iter().map(ToString::to_string).collect();
    assert!(!kept.iter().any(|kept| "/spec/steps/0/image".starts_with(kept)), "{kept:?}");
}

#[test]
fn a_reference_beside_those_of_git_gives_nobody_a_right() {
    for field in
        ["users", "serviceAccounts", "groups", "adminRefs", "allowedNamespaces", "plugins", "middlewareHosts"]
    {
        let mut theirs = json!({"f:spec": {}});
        theirs["f:spec"][format!("f:{field}")] = json!({});
        let scene =
            thing(json!({field: [{"name": "a"}]}), json!({field: [{"name": "a"}, {"name": "mallory"}]}))
                .by("argocd-controller Apply 1", json!({"f:metadata": {"f:labels": {}}}))
                .by("parcel-operator Update 2", theirs);
        assert_eq!(counted(&scene), [format!("/spec/{field}/1")]);
    }
}

#[test]
fn a_tag_that_looks_like_a_quantity_is_not_reprinted() {
    for (field, git, live) in [("tag", "5k", "5000"), ("version", "1h", "60m"), ("image", "2M", "2000000")] {
        let owned = json!({"f:spec": {format!("f:{field}"): {}}});
        let scene = thing(json!({field: git}), json!({field: live}))
            .by("argocd-controller Apply 1", json!({"f:metadata": {"f:labels": {}}}))
            .by("parcel-operator Update 2", owned);
        assert_eq!(counted(&scene), [format!("/spec/{field}")]);
    }
}
