//! Noise of every kind in one app, and a real change beside each.

use anyhow::Result;
use plumb_testkit::{objects, wait};
use serde_json::{Value, json};

use super::report::{expect, serve_knobs};
use crate::stage::Stage;

/// Prefixes `data.image` of the `ConfigMaps` of this story, as a policy for a mirror does.
async fn mirror_images(stage: &Stage) -> Result<()> {
    let name = stage.place.name();
    let group = "admissionregistration.k8s.io/v1";
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["configmaps"]});
    let policy = json!({"apiVersion": group, "kind": "MutatingAdmissionPolicy", "metadata": {"name": name}, "spec": {
        "failurePolicy": "Fail", "reinvocationPolicy": "Never",
        "matchConstraints": {"resourceRules": [rule], "objectSelector": {"matchLabels": {"mirror": name}}},
        "matchConditions": [{"name": "not-yet", "expression": "!object.data.image.startsWith('mirror/')"}],
        "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {
            "expression": "Object{data: {\"image\": \"mirror/\" + object.data.image}}"}}],
    }});
    let binding = json!({"apiVersion": group, "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": name}, "spec": {"policyName": name}});
    stage.place.apply(&policy).await?;
    stage.place.apply(&binding).await?;
    // A policy works a moment after it was written, which nothing tells.
    let probe = objects::labelled(objects::config_map("probe", &[("image", "a")]), "mirror", name);
    let works = async || {
        let _ = stage.place.delete(&probe).await;
        stage.place.apply(&probe).await.is_ok_and(|live| live["data"]["image"] == "mirror/a")
    };
    wait::until_seen(wait::LIMIT, "the policy works", works, |works| *works).await?;
    Ok(())
}

/// A role that is filled by the aggregation controller, and one that it is filled from.
fn aggregated(name: &str) -> [Value; 2] {
    let role = |name: String| json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": []});
    let selector = json!([{"matchLabels": {"part-of": name}}]);
    let whole = objects::with(role(name.to_owned()), "/aggregationRule/clusterRoleSelectors", selector);
    let rules = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]);
    let part = objects::labelled(role(format!("{name}-part")), "part-of", name);
    [objects::labelled(whole, "team", "a"), objects::with(part, "/rules", rules)]
}

#[tokio::test]
async fn noise_of_every_class_is_green_and_a_change_beside_it_is_red() -> Result<()> {
    let stage = Stage::set().await?;
    mirror_images(&stage).await?;
    let group = serve_knobs(&stage).await?;
    let knob = |name: &str, spec: Value| objects::custom(&group, "Knob", name, &spec);
    let name = stage.place.name();
    let defaulted = knob("defaulted", json!({"mode": "fast"}));
    let zeros = knob("zeros", json!({"mode": "fast", "level": "info", "enabled": false, "size": 0}));
    let spelled = knob("spelled", json!({"mode": "fast", "level": "info", "cpu": "1000m"}));
    let resized = knob("resized", json!({"mode": "fast", "level": "info", "cpu": "1000m"}));
    let mut with_status = knob("with-status", json!({"mode": "fast", "level": "info"}));
    with_status["status"] = json!({"phase": "Pending"});
    let scaled = objects::deployment("scaled", 1);
    let by_load = objects::autoscaler("scaled", "scaled", 2, 5);
    let [role, part] = aggregated(name);
    let account =
        objects::with(objects::service_account("builder"), "/imagePullSecrets", json!([{"name": "a"}]));
    let mirrored = objects::config_map("mirrored", &[("image", "web:1"), ("key", "1")]);
    let mirrored = objects::labelled(mirrored, "mirror", name);
    let added = objects::config_map("added", &[("key", "1")]);
    let all = [
        &defaulted,
        &zeros,
        &spelled,
        &resized,
        &with_status,
        &scaled,
        &by_load,
        &role,
        &part,
        &account,
        &mirrored,
        &added,
    ];
    let all: Vec<Value> = all.into_iter().cloned().collect();
    stage.repo.commit(&[("app/all.yaml", objects::manifests(&all))])?;
    let app = stage.application("noise", |app| app["spec"]["syncPolicy"] = json!({"automated": {}})).await?;
    stage.until_sync(&app, "Synced").await?;

    // A typed client drops zeros, an operator prints a quantity in its own way, others add what Git does not have.
    for (manager, object, patch) in [
        ("knob-operator", &zeros, json!({"spec": {"enabled": null, "size": null}})),
        ("knob-operator", &spelled, json!({"spec": {"cpu": "1"}})),
        ("pull-secret-controller", &account, json!({"imagePullSecrets": [{"name": "a"}, {"name": "b"}]})),
        ("somebody", &added, json!({"data": {"extra": "2"}})),
    ] {
        stage.place.patch_as(manager, object, &patch).await?;
    }
    stage.place.patch_status_as("knob-operator", &with_status, &json!({"phase": "Running"})).await?;
    let roles = format!("ClusterRole/{name} ControllerOwned /rules/0");
    let noise = [
        "Knob/defaulted SchemaDefault /spec/level",
        "Knob/zeros PhantomDefault /spec/enabled /spec/size",
        "Knob/spelled EquivalentValue /spec/cpu",
        "Knob/with-status RejectedField /status",
        "Deployment/scaled ControllerOwned /spec/replicas",
        &roles,
        "ServiceAccount/builder ControllerOwned /imagePullSecrets/1",
        "ConfigMap/mirrored AdmissionMutated /data/image",
        "ConfigMap/added UnclaimedAddition /data/extra",
    ];
    expect(&stage, &app, "Synced", &noise).await?;

    // A person changes what Git sets in each of them. Whoever writes an atomic list owns all of it.
    let other_image = json!({"name": "main", "image": "registry.example/app:2"});
    for (object, patch) in [
        (&defaulted, json!({"spec": {"mode": "slow"}})),
        (&zeros, json!({"spec": {"mode": "slow"}})),
        (&spelled, json!({"spec": {"mode": "slow"}})),
        (&resized, json!({"spec": {"cpu": "2"}})),
        (&with_status, json!({"spec": {"mode": "slow"}})),
        (&scaled, json!({"spec": {"template": {"spec": {"containers": [other_image]}}}})),
        (&role, json!({"metadata": {"labels": {"team": "b"}}})),
        (&account, json!({"imagePullSecrets": [{"name": "mine"}]})),
        (&mirrored, json!({"data": {"key": "2"}})),
        (&added, json!({"data": {"key": "2"}})),
    ] {
        stage.place.patch_as("kubectl-edit", object, &patch).await?;
    }
    let role_edited = format!("ClusterRole/{name} LiveEdit! /metadata/labels/team");
    let red = [
        "Knob/defaulted LiveEdit! /spec/mode",
        "Knob/zeros LiveEdit! /spec/mode",
        "Knob/spelled LiveEdit! /spec/mode",
        "Knob/resized LiveEdit! /spec/cpu",
        "Knob/with-status LiveEdit! /spec/mode",
        &role_edited,
        "ServiceAccount/builder LiveEdit! /imagePullSecrets/0/name",
        "ConfigMap/mirrored LiveEdit! /data/key",
        "ConfigMap/added LiveEdit! /data/key",
        "Deployment/scaled LiveEdit! /spec/template/spec/containers/0/image",
    ];
    let still = noise.into_iter().filter(|line| !line.starts_with("ServiceAccount"));
    let both: Vec<&str> = red.into_iter().chain(still).collect();
    expect(&stage, &app, "OutOfSync", &both).await
}
