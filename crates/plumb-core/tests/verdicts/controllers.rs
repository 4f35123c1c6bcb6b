//! What controllers and autoscalers write.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use expect_test::expect;
use serde_json::{Value, json};

use crate::scene::{Scene, check, offered, said, thing};

#[test]
fn only_a_known_controller_may_add_to_a_list() {
    let account = |manager: &'static str| {
        let (one, two) = (json!({"name": "a"}), json!({"name": "b"}));
        Scene::new(
            "v1 ServiceAccount",
            json!({"imagePullSecrets": [one]}),
            json!({"imagePullSecrets": [one, two]}),
        )
        .by("argocd-controller Apply 1", json!({"f:metadata": {"f:labels": {}}}))
        .by(manager, json!({"f:imagePullSecrets": {}}))
    };
    check(account("someone Update 2"), expect!["! LiveEdit /imagePullSecrets/1 by someone"]);
    check(account("deploy-script Update 2"), expect!["! LiveEdit /imagePullSecrets/1 by deploy-script"]);
    check(account("team-operator Update 2"), expect!["ControllerOwned /imagePullSecrets/1 by team-operator"]);
    // A writer of the status is a controller.
    check(
        account("shopd Update 2").by("shopd Update 2 status", json!({"f:status": {"f:ready": {}}})),
        expect!["ControllerOwned /imagePullSecrets/1 by shopd"],
    );
    let tags = |manager: &'static str| {
        thing(json!({"items": ["a", "b"]}), json!({"items": ["b", "a"]}))
            .by("argocd-controller Apply 1", json!({"f:metadata": {"f:labels": {}}}))
            .by(manager, json!({"f:spec": {"f:items": {}}}))
    };
    check(tags("someone Update 2"), expect!["! LiveEdit /spec/items by someone"]);
    check(tags("queue-controller Update 2"), expect!["ControllerOwned /spec/items by queue-controller"]);
}

#[test]
fn replicas_belong_to_an_autoscaler_that_exists() {
    let replicas = |manager: &'static str| {
        Scene::new("apps/v1 Deployment", json!({"spec": {"replicas": 1}}), json!({"spec": {"replicas": 3}}))
            .by("argocd-controller Apply 1", json!({"f:metadata": {"f:labels": {}}}))
            .by(manager, json!({"f:spec": {"f:replicas": {}}}))
    };
    check(replicas("someone Update 2 scale"), expect!["! LiveEdit /spec/replicas by someone"]);
    check(
        replicas("queue-autoscaler Update 2 scale"),
        expect!["! LiveEdit /spec/replicas by queue-autoscaler"],
    );
    check(
        replicas("someone Update 2 scale").autoscaler("web"),
        expect!["ControllerOwned /spec/replicas by someone"],
    );
    check(
        replicas("vpa-updater Update 2").autoscaled_by("VerticalPodAutoscaler", "web", false),
        expect!["! LiveEdit /spec/replicas by vpa-updater"],
    );
}

#[test]
fn a_value_that_a_controller_reformats_is_equivalent() {
    let reprinted = |field: &str, git: &str, live: &str, manager: &'static str| {
        let (ours, mut theirs) = (json!({"f:metadata": {"f:labels": {}}}), json!({"f:spec": {}}));
        theirs["f:spec"][format!("f:{field}")] = json!({});
        thing(json!({field: git}), json!({field: live}))
            .by("argocd-controller Apply 1", ours)
            .by(manager, theirs)
    };
    for (git, live) in [
        ("8760h", "8760h0m0s"),
        ("8760h0m0s", "8760h"),
        ("60s", "1m"),
        ("0.5s", "500ms"),
        ("0.5", "500m"),
        ("500m", "0.5"),
        ("1Gi", "1024Mi"),
    ] {
        let verdict = reprinted("every", git, live, "parcel-operator Update 2").verdict();
        assert_eq!(verdict.findings[0].class.name(), "EquivalentValue", "{git} {live}");
    }
    for (git, live) in [("60s", "2m"), ("0.5", "600m"), ("1.0", "1"), ("1h", "one hour")] {
        let verdict = reprinted("every", git, live, "parcel-operator Update 2").verdict();
        assert_eq!(verdict.findings[0].class.name(), "LiveEdit", "{git} {live}");
    }
    // A person who writes another string means another value; so does every writer of free text.
    check(
        reprinted("every", "60s", "1m", "kubectl-edit Update 2"),
        expect!["! LiveEdit /spec/every by kubectl-edit"],
    );
    let owner = json!({"f:metadata": {"f:labels": {}}});
    check(
        thing(json!({"args": ["60s"]}), json!({"args": ["1m"]}))
            .by("argocd-controller Apply 1", owner.clone())
            .by("parcel-operator Update 2", json!({"f:spec": {"f:args": {}}})),
        expect!["! LiveEdit /spec/args/0 by parcel-operator"],
    );
    check(
        Scene::new("v1 ConfigMap", json!({"data": {"every": "60s"}}), json!({"data": {"every": "1m0s"}}))
            .by("argocd-controller Apply 1", owner)
            .by("parcel-operator Update 2", json!({"f:data": {"f:every": {}}})),
        expect!["! LiveEdit /data/every by parcel-operator"],
    );
}

#[test]
fn the_replicas_of_a_custom_resource_may_be_another_field() {
    let scaled = |manager: &'static str| {
        thing(json!({"workers": 1}), json!({"workers": 3}))
            .by("argocd-controller Apply 1", json!({"f:metadata": {"f:labels": {}}}))
            .by(manager, json!({"f:spec": {"f:workers": {}}}))
    };
    check(
        scaled("kube-controller-manager Update 2 scale").autoscaler("web"),
        expect!["ControllerOwned /spec/workers by kube-controller-manager"],
    );
    check(scaled("kubectl Update 2 scale"), expect!["! LiveEdit /spec/workers by kubectl"]);
    check(scaled("kubectl Update 2").autoscaler("web"), expect!["! LiveEdit /spec/workers by kubectl"]);
}

#[test]
fn the_rules_of_an_aggregated_role_belong_to_its_controller() {
    let gets = |verb: &str| json!([{"verbs": [verb], "resources": ["pods"]}]);
    let scene = |aggregation: Value, writer: &'static str| {
        let role = |verb: &str| {
            let mut role = json!({"rules": gets(verb)});
            if !aggregation.is_null() {
                role["aggregationRule"] = aggregation.clone();
            }
            role
        };
        Scene::new("rbac.authorization.k8s.io/v1 ClusterRole", role("get"), role("list"))
            .by("argocd-controller Apply 1", json!({"f:aggregationRule": {}}))
            .by(writer, json!({"f:rules": {}}))
    };
    let aggregation = json!({"clusterRoleSelectors": [{"matchLabels": {"to": "x"}}]});
    check(
        scene(aggregation.clone(), "clusterrole-aggregation-controller Apply 2"),
        expect!["ControllerOwned /rules/0/verbs/0 by clusterrole-aggregation-controller"],
    );
    check(scene(aggregation, "kubectl-edit Update 2"), expect!["ControllerOwned /rules/0/verbs/0"]);
    check(
        scene(Value::Null, "kubectl-edit Update 2"),
        expect!["! LiveEdit /rules/0/verbs/0 by kubectl-edit"],
    );
}

#[test]
fn a_disabled_autoscaler_does_not_own_the_replicas() {
    let scene = |live: i64, writer: &'static str| {
        Scene::new(
            "apps/v1 Deployment",
            json!({"spec": {"replicas": 3}}),
            json!({"spec": {"replicas": live}}),
        )
        .by("argocd-controller Apply 1", json!({"f:metadata": {"f:labels": {}}}))
        .by(writer, json!({"f:spec": {"f:replicas": {}}}))
        .autoscaler("web")
    };
    check(scene(5, "kubectl Update 2 scale"), expect!["ControllerOwned /spec/replicas by kubectl"]);
    check(scene(0, "kubectl Update 2 scale"), expect!["! LiveEdit /spec/replicas by kubectl"]);
    check(
        scene(0, "kube-controller-manager Update 2 scale"),
        expect!["! LiveEdit /spec/replicas by kube-controller-manager"],
    );
    check(
        scene(0, "keda-operator Update 2 scale").autoscaled_by("ScaledObject", "web", true),
        expect!["ControllerOwned /spec/replicas by keda-operator"],
    );
}

#[test]
fn certificates_may_be_injected_over_a_placeholder() {
    let pem = |text: &str| STANDARD.encode(format!("-----BEGIN CERTIFICATE-----\n{text}\n"));
    let scene = |git: &str, writer: &'static str| {
        let of = |bundle: &str| json!({"webhooks": [{"name": "a", "clientConfig": {"caBundle": bundle}}]});
        let theirs = json!({"f:webhooks": {"k:{\"name\":\"a\"}": {"f:clientConfig": {"f:caBundle": {}}}}});
        Scene::new(
            "admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration",
            of(git),
            of(&pem("live")),
        )
        .by("argocd-controller Apply 1", json!({}))
        .by(writer, theirs)
    };
    check(
        scene("Cg==", "certs Update 2"),
        expect!["ControllerOwned /webhooks/0/clientConfig/caBundle by certs"],
    );
    check(
        scene(&pem("git"), "certs Update 2"),
        expect!["! LiveEdit /webhooks/0/clientConfig/caBundle by certs"],
    );
    check(
        scene(&pem("git"), "cert-manager-cainjector Update 2"),
        expect!["! LiveEdit /webhooks/0/clientConfig/caBundle by cert-manager-cainjector"],
    );
    check(
        scene("Cg==", "kubectl-edit Update 2"),
        expect!["! LiveEdit /webhooks/0/clientConfig/caBundle by kubectl-edit"],
    );
}

#[test]
fn a_patch_removes_only_what_git_itself_says_there() {
    let ours = || json!({"f:metadata": {"f:labels": {}}});
    let (pull, docker) = (json!({"name": "a"}), json!({"name": "dockercfg"}));
    // The controller's item is first in the cluster, Git's own in Git.
    let account = Scene::new(
        "v1 ServiceAccount",
        json!({"imagePullSecrets": [pull]}),
        json!({"imagePullSecrets": [docker, pull]}),
    )
    .by("argocd-controller Apply 1", ours())
    .by("openshift-controller-manager Update 2", json!({"f:imagePullSecrets": {}}));
    assert_eq!(offered(&account), "");
    check(account, expect!["ControllerOwned /imagePullSecrets/0 by openshift-controller-manager"]);
}

#[test]
fn git_takes_over_what_it_must_not_leave_out() {
    let ours = || json!({"f:metadata": {"f:labels": {}}});
    let reordered = thing(json!({"items": ["a", "b"]}), json!({"items": ["b", "a"]}))
        .by("argocd-controller Apply 1", ours())
        .by("queue-controller Update 2", json!({"f:spec": {"f:items": {}}}));
    expect![[r#"- {"op":"replace","path":"/spec/items","value":["b","a"]}"#]].assert_eq(&offered(&reordered));
    let claim = |size: &str| json!({"spec": {"resources": {"requests": {"storage": size}}}});
    let storage = json!({"f:spec": {"f:resources": {"f:requests": {"f:storage": {}}}}});
    let grown = Scene::new("v1 PersistentVolumeClaim", claim("1Gi"), claim("2Gi"))
        .by("argocd-controller Apply 1", ours())
        .by("csi-resizer Update 2", storage);
    expect![[r#"- {"op":"replace","path":"/spec/resources/requests/storage","value":"2Gi"}"#]]
        .assert_eq(&offered(&grown));
    expect![[r#"
        `csi-resizer` expanded the volume, which cannot shrink again: Git says "1Gi", the cluster has "2Gi"
        -> write the value of the cluster to Git (without the field, a sync would remove it from the cluster or be refused), or ignore exactly this: `jsonPointers: [/spec/resources/requests/storage]`"#]].assert_eq(&said(&grown));
    let scaled =
        Scene::new("apps/v1 Deployment", json!({"spec": {"replicas": 1}}), json!({"spec": {"replicas": 3}}))
            .by("argocd-controller Apply 1", ours())
            .autoscaler("web");
    expect![[r#"- {"op":"remove","path":"/spec/replicas"}"#]].assert_eq(&offered(&scaled));
    expect![[r"
        HorizontalPodAutoscaler `web` targets this object and sets its replicas: Git says 1, the cluster has 3
        -> remove the field from Git (server-side apply keeps the live value; the first client-side apply without the field sets its default once), or ignore exactly this: `jsonPointers: [/spec/replicas]`"]].assert_eq(&said(&scaled));
}
