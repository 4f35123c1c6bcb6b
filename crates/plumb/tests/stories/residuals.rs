//! What was left over on a real cluster when everything else was explained: each is green as it is, and red by
//! exactly the field that a person changes.

use std::time::Duration;

use anyhow::Result;
use plumb_testkit::{objects, wait};
use serde_json::{Value, json};

use crate::stage::Stage;

fn open_schema() -> Value {
    json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

fn external_secret_schema() -> Value {
    let text = |default: &str| json!({"type": "string", "default": default});
    json!({"type": "object", "properties": {
        "refreshInterval": text("1h0m0s"),
        "data": {"type": "array", "items": {"type": "object", "properties": {
            "secretKey": {"type": "string"},
            "remoteRef": {"type": "object", "properties": {
                "key": {"type": "string"},
                "conversionStrategy": text("Default"),
                "decodingStrategy": text("None"),
                "metadataPolicy": text("None"),
            }},
        }}},
    }})
}

/// A stateful set as the chart of a virtual cluster has it: little is said, the server fills in the rest.
fn virtual_cluster() -> Value {
    json!({"apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {"name": "experiments", "annotations": {"vClusterConfigHash": "0f3a"}},
        "spec": {
            "serviceName": "experiments-headless", "selector": {"matchLabels": {"app": "vcluster"}},
            "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain"},
            "volumeClaimTemplates": [{"metadata": {"name": "data"},
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "5Gi"}}}}],
            "template": {
                "metadata": {"labels": {"app": "vcluster"}, "annotations": {"vClusterConfigHash": "0f3a"}},
                "spec": {"containers": [{"name": "syncer", "image": "registry.example/syncer:1",
                    "securityContext": {"runAsUser": 0, "allowPrivilegeEscalation": false},
                    "volumeMounts": [{"name": "data", "mountPath": "/data"}]}]},
            },
        },
    })
}

fn chart() -> [(&'static str, &'static str); 3] {
    [
        ("chart/Chart.yaml", "apiVersion: v2\nname: grafana\nversion: 1.0.0\n"),
        (
            "chart/templates/all.yaml",
            "{{ $password := randAlphaNum 10 }}\n\
             apiVersion: v1\nkind: Secret\nmetadata: {name: random}\nstringData: {password: {{ $password | quote }}}\n\
             ---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: stamped}\n\
             data: {at: {{ now | unixEpoch | quote }}, key: fixed}\n\
             ---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: grafana}\nspec:\n  replicas: 1\n  \
             selector: {matchLabels: {app: grafana}}\n  template:\n    \
             metadata: {labels: {app: grafana}, annotations: {checksum/secret: {{ $password | sha256sum }}}}\n    \
             spec: {containers: [{name: grafana, image: registry.example/grafana:1}]}\n",
        ),
        ("chart/values.yaml", "{}\n"),
    ]
}

/// Changes one field by hand, and waits until exactly that counts.
async fn edit(stage: &Stage, app: &Value, object: &Value, patch: &Value, field: &str) -> Result<()> {
    let (kind, name) = (
        object["kind"].as_str().unwrap_or_default(),
        object["metadata"]["name"].as_str().unwrap_or_default(),
    );
    stage.place.patch_as("kubectl-edit", object, patch).await?;
    let finding = stage.finding(app, kind, name, "LiveEdit").await?;
    assert_eq!(finding["fields"], json!([field]), "{kind} {name}");
    assert_eq!((&finding["counts"], &finding["actor"]), (&json!(true), &json!("kubectl-edit")));
    Ok(())
}

#[tokio::test]
async fn what_operators_and_the_server_fill_in_is_green_and_an_edit_beside_it_is_red() -> Result<()> {
    let stage = Stage::set().await?;
    let group = format!("{}.example.com", stage.place.name());
    let definitions = [
        objects::crd(&group, "Task", &open_schema()),
        objects::crd(&group, "Policy", &open_schema()),
        objects::crd(&group, "ExternalSecret", &external_secret_schema()),
    ];
    for definition in &definitions {
        stage.place.apply(definition).await?;
    }
    // A bootstrap installed it long ago, and nobody marked it.
    let bootstrapped = objects::crd(&group, "Rollout", &open_schema());
    stage.place.apply_as("kubectl", &bootstrapped).await?;
    let task = objects::custom(
        &group,
        "Task",
        "build-push",
        &json!({
        "params": [{"name": "image"}, {"name": "tag", "default": "latest"}],
        "steps": [{"name": "build", "image": "kaniko", "computeResources": {"requests": {"cpu": "1000m"}}}]}),
    );
    let policy = objects::custom(
        &group,
        "Policy",
        "cluster-policy",
        &json!({
        "driver": {"enabled": false}, "mig": {"strategy": "single"}, "plugins": [{"name": "a"}, {"name": "b"}]}),
    );
    let external = objects::custom(
        &group,
        "ExternalSecret",
        "db",
        &json!({
        "data": [{"secretKey": "user", "remoteRef": {"key": "db"}}, {"secretKey": "password", "remoteRef": {"key": "db"}}]}),
    );
    let mut child = objects::application("child", "https://example.com/none.git", "x", stage.place.name());
    child["metadata"]["namespace"] = json!(stage.place.name());
    child["spec"]["syncPolicy"] = json!({"automated": {"prune": false, "selfHeal": true}});
    child["spec"]["ignoreDifferences"] =
        json!([{"group": "", "kind": "Service", "jsonPointers": ["/spec/clusterIP"]}]);
    let mut adopted = bootstrapped.clone();
    adopted["spec"]["preserveUnknownFields"] = json!(false);
    let set = virtual_cluster();
    let files = [&task, &policy, &external, &child, &adopted, &set].map(|object| {
        (
            format!("app/{}.yaml", object["metadata"]["name"].as_str().unwrap_or_default()),
            objects::manifests(std::slice::from_ref(object)),
        )
    });
    // The kinds are served a moment after their definitions were applied, which no watch tells.
    let served = async || stage.place.get(&external).await.is_ok() && stage.place.get(&task).await.is_ok();
    wait::until_seen(Duration::from_mins(1), "the kinds are served", served, |done| *done).await?;
    stage.repo.commit(&files)?;
    let app = stage.application("rest", |app| app["spec"]["syncPolicy"] = json!({"automated": {}})).await?;
    stage.until_sync(&app, "Synced").await?;

    // A webhook adds to list items, an operator fills its spec, a typed client writes back what it read.
    let typed = json!({"spec": {"params": [{"name": "image", "type": "string"}, {"name": "tag", "type": "string", "default": "latest"}]}});
    stage.place.patch_as("tekton-webhook", &task, &typed).await?;
    let filled: serde_json::Map<String, Value> =
        (0..40).map(|at| (format!("component{at}"), json!({"enabled": true, "args": [at]}))).collect();
    let filled = json!({"spec": {"driver": {"usePrecompiled": false}, "operator": filled}});
    stage.place.patch_as("gpu-operator", &policy, &filled).await?;
    let rewritten = json!({"spec": {"syncPolicy": {"automated": {"prune": null}}, "ignoreDifferences":
        [{"kind": "Service", "jsonPointers": ["/spec/clusterIP"]}]}});
    stage.place.patch_as("argocd-application-controller", &child, &rewritten).await?;

    let webhook = stage.finding(&app, "Task", "build-push", "UnclaimedAddition").await?;
    assert!(webhook.to_string().contains("tekton-webhook"), "{webhook}");
    let operator = stage.finding(&app, "Policy", "cluster-policy", "UnclaimedAddition").await?;
    assert_eq!(operator["actor"], "gpu-operator");
    let defaults = stage.finding(&app, "ExternalSecret", "db", "SchemaDefault").await?;
    let pointers = defaults["fields"].to_string();
    assert!(pointers.contains("/spec/refreshInterval"), "{pointers}");
    for field in ["conversionStrategy", "decodingStrategy", "metadataPolicy"] {
        assert!(pointers.contains(&format!("/spec/data/1/remoteRef/{field}")), "{pointers}");
    }
    let zeros = stage.finding(&app, "Application", "child", "PhantomDefault").await?;
    assert!(zeros["fields"].to_string().contains("/spec/syncPolicy/automated/prune"), "{zeros}");
    assert!(zeros["fix"]["patch"].as_str().unwrap_or_default().contains("\"remove\""), "{zeros}");
    let name = adopted["metadata"]["name"].as_str().unwrap_or_default();
    let dropped = stage.finding(&app, "CustomResourceDefinition", name, "PhantomDefault").await?;
    assert_eq!(dropped["fields"], json!(["/spec/preserveUnknownFields"]));
    stage.finding(&app, "StatefulSet", "experiments", "SchemaDefault").await?;
    stage.refresh_hard(&app).await?;
    let live = stage.until_sync(&app, "Synced").await?;
    let red =
        live["status"]["resources"].as_array().into_iter().flatten().filter(|one| one["status"] != "Synced");
    assert_eq!(red.count(), 0, "{live}");

    let steps = json!({"spec": {"steps": [{"name": "build", "image": "other", "computeResources": {"requests": {"cpu": "1000m"}}}]}});
    edit(&stage, &app, &task, &steps, "/spec/steps/0/image").await?;
    let strategy = json!({"spec": {"mig": {"strategy": "mixed"}}});
    edit(&stage, &app, &policy, &strategy, "/spec/mig/strategy").await?;
    let hash = json!({"spec": {"template": {"metadata": {"annotations": {"vClusterConfigHash": "dead"}}}}});
    edit(&stage, &app, &set, &hash, "/spec/template/metadata/annotations/vClusterConfigHash").await?;
    let heal = json!({"spec": {"syncPolicy": {"automated": {"selfHeal": false}}}});
    edit(&stage, &app, &child, &heal, "/spec/syncPolicy/automated/selfHeal").await?;
    stage.until_sync(&app, "OutOfSync").await?;
    Ok(())
}

#[tokio::test]
async fn a_chart_that_makes_things_up_is_green_and_an_edit_beside_it_is_red() -> Result<()> {
    let stage = Stage::set().await?;
    stage.repo.commit(&chart())?;
    // The server's word on an empty string where it takes a number or a share.
    let budget = "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: postgresql}\n\
        spec: {maxUnavailable: \"\", selector: {matchLabels: {app: pg}}}\n";
    let beside = objects::manifests(&[objects::config_map("beside", &[])]);
    stage.repo.commit(&[("budget/pdb.yaml", budget.to_owned()), ("budget/beside.yaml", beside)])?;
    let of = |path: &'static str| {
        move |app: &mut Value| {
            app["spec"]["source"]["path"] = json!(path);
            app["spec"]["syncPolicy"] = json!({"automated": {}, "retry": {"limit": 0}});
        }
    };
    let app = stage.application("made-up", of("chart")).await?;
    let budgets = stage.application("budget", of("budget")).await?;
    let synced = stage.until_sync(&app, "Synced").await?;
    let stamp = |report: &Value| {
        let findings = report["findings"].as_array().into_iter().flatten();
        findings
            .into_iter()
            .any(|finding| finding["name"] == "stamped" && finding["class"] == "UnstableRender")
    };
    let report =
        json!({"apiVersion": "plumb.dev/v1alpha1", "kind": "DriftReport", "metadata": {"name": "made-up"}});
    // A rendering within the second of the first one prints the same time.
    loop {
        stage.refresh_hard(&app).await?;
        if stage.place.get(&report).await?.is_some_and(|report| stamp(&report)) {
            break;
        }
    }
    let live = stage.until_sync(&app, "Synced").await?;
    assert_eq!(live["status"]["history"], synced["status"]["history"], "nothing was synced again");
    for (kind, name, field) in [
        ("Secret", "random", "/data/password"),
        ("ConfigMap", "stamped", "/data/at"),
        ("Deployment", "grafana", "/spec/template/metadata/annotations/checksum~1secret"),
    ] {
        let finding = stage.finding(&app, kind, name, "UnstableRender").await?;
        assert_eq!(finding["fields"], json!([field]), "{kind} {name}");
        let patch = finding["fix"]["patch"].as_str().unwrap_or_default();
        assert!(patch.contains("ignoreDifferences") && patch.contains(field), "{finding}");
    }
    let map = objects::config_map("stamped", &[]);
    edit(&stage, &app, &map, &json!({"data": {"key": "edited"}}), "/data/key").await?;
    stage.until_sync(&app, "OutOfSync").await?;

    let live = stage.until_sync(&budgets, "OutOfSync").await?;
    let finding = stage.finding(&budgets, "PodDisruptionBudget", "postgresql", "Blocked").await?;
    assert_eq!(finding["fields"], json!(["/spec/maxUnavailable"]), "{finding}");
    let beside = live["status"]["resources"].as_array().into_iter().flatten();
    let beside: Vec<&Value> = beside.filter(|one| one["name"] == "beside").collect();
    assert_eq!(beside.len(), 1, "the others keep their own verdicts: {live}");
    Ok(())
}
