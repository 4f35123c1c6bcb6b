//! Kinds that change while an app is synced: their scope, their schema, whether they are served at all.

use std::time::Duration;

use anyhow::Result;
use plumb_testkit::{objects, wait};
use serde_json::{Value, json};

use crate::borders::project_for;
use crate::stage::Stage;

/// Automated, without self-heal, and with few and quick retries.
fn impatient(app: &mut Value) {
    app["spec"]["syncPolicy"] = json!({
        "automated": {},
        "retry": {"limit": 1, "backoff": {"duration": "1s", "factor": 1, "maxDuration": "1s"}},
    });
}

/// Waits until the automated sync has failed for good, and returns the Application.
async fn until_failed(stage: &Stage, app: &Value) -> Result<Value> {
    let failed = |app: &Value| {
        let phase = &app["status"]["operationState"]["phase"];
        app["operation"].is_null() && (phase == "Failed" || phase == "Error")
    };
    stage.place.wait(app, "the sync has failed", failed).await
}

async fn until_served(stage: &Stage, crd: &Value) -> Result<()> {
    let is_served = |crd: &Value| {
        let all = crd["status"]["conditions"].as_array().into_iter().flatten();
        all.into_iter().any(|one| one["type"] == "Established" && one["status"] == "True")
    };
    stage.place.wait(crd, "is served", is_served).await?;
    Ok(())
}

/// Waits until plumb has planned this often.
async fn until_planned(stage: &Stage, times: usize) -> Result<()> {
    let planned = async || stage.log().map_or(0, |log| log.matches("sync planned").count());
    let is_so = |found: &usize| *found >= times;
    wait::until_seen(Duration::from_mins(1), "the sync is planned again", planned, is_so).await?;
    Ok(())
}

/// Replaces a CRD by another one of the same name.
async fn replace(stage: &Stage, crd: &Value) -> Result<()> {
    stage.place.delete(crd).await?;
    stage.place.wait_gone(crd).await?;
    stage.place.apply(crd).await?;
    until_served(stage, crd).await
}

#[tokio::test]
async fn a_sync_that_failed_because_of_a_kind_is_tried_again_when_the_kind_changes() -> Result<()> {
    let stage = Stage::set().await?;
    let group = format!("{}.example.com", stage.place.name());
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    // A kind of another scope for a while.
    let moved = objects::crd(&group, "Moved", &any);
    let elsewhere = objects::with(moved.clone(), "/spec/scope", json!("Cluster"));
    // A kind whose schema does not fit for a while.
    let number = json!({"type": "object", "properties": {"size": {"type": "integer"}}});
    let text = json!({"type": "object", "properties": {"size": {"type": "string"}}});
    let typed = objects::crd(&group, "Typed", &number);
    // A kind that comes later.
    let late = objects::crd(&group, "Late", &any);
    for crd in [&elsewhere, &typed] {
        stage.place.apply(crd).await?;
        until_served(&stage, crd).await?;
    }
    let hook = objects::config_map("before", &[("a", "1")]);
    let hook = objects::annotated(hook, "argocd.argoproj.io/hook", "PreSync");
    let objects = [
        ("moved", objects::custom(&group, "Moved", "moved", &json!({}))),
        ("typed", objects::custom(&group, "Typed", "typed", &json!({"size": "large"}))),
        ("late", objects::custom(&group, "Late", "late", &json!({}))),
    ];
    for (name, object) in &objects {
        let hook = objects::with(hook.clone(), "/metadata/name", json!(format!("before-{name}")));
        let path = format!("{name}/all.yaml");
        stage.repo.commit(&[(path, objects::manifests(&[hook, object.clone()]))])?;
    }
    // The project permits nothing that is cluster-scoped.
    project_for(&stage, "team", stage.place.name()).await?;
    let mut apps = Vec::new();
    for (name, _) in &objects {
        let app = stage.application(name, |app| {
            app["spec"]["project"] = json!("team");
            app["spec"]["source"]["path"] = json!(name);
            impatient(app);
        });
        apps.push(app.await?);
    }
    for app in &apps {
        until_failed(&stage, app).await?;
    }

    replace(&stage, &moved).await?;
    stage.place.apply(&objects::crd(&group, "Typed", &text)).await?;
    stage.place.apply(&late).await?;
    for (app, (_, object)) in apps.iter().zip(&objects) {
        stage.until_sync(app, "Synced").await?;
        assert!(stage.place.get(object).await?.is_some(), "{object}");
    }
    for crd in [&moved, &typed, &late] {
        stage.place.delete(crd).await?;
    }
    Ok(())
}

/// The sync waits for a Service while the kind of a later wave is replaced and put back. It goes on with the kind as it is
/// then, and its hook does not run again.
#[tokio::test]
async fn a_kind_that_is_replaced_and_put_back_during_a_sync_costs_no_retry() -> Result<()> {
    let stage = Stage::set().await?;
    let group = format!("{}.example.com", stage.place.name());
    let longest = |length: u32| json!({"type": "object", "properties": {"size": {"type": "string", "maxLength": length}}});
    let crd = objects::crd(&group, "Grant", &longest(10));
    stage.place.apply(&crd).await?;
    until_served(&stage, &crd).await?;
    let grant = objects::custom(&group, "Grant", "one", &json!({"size": "large"}));
    let grant = objects::annotated(grant, "argocd.argoproj.io/sync-wave", "1");
    let door = objects::with(objects::service("door", 80), "/spec/type", json!("LoadBalancer"));
    let hook = objects::config_map("before", &[("a", "1")]);
    let hook = objects::annotated(hook, "argocd.argoproj.io/hook", "PreSync");
    stage
        .repo
        .commit(&[("app/all.yaml", objects::manifests(&[hook.clone(), door.clone(), grant.clone()]))])?;
    let app = stage.application("late", |app| app["operation"] = json!({"sync": {}})).await?;
    let waits = |app: &Value| {
        let message = app["status"]["operationState"]["message"].as_str();
        message.is_some_and(|message| message.contains("waiting for healthy state"))
    };
    stage.place.wait(&app, "waits for the Service", waits).await?;
    let ran = stage.place.get(&hook).await?.map(|hook| hook["metadata"]["uid"].clone());
    let other = objects::crd(&group, "Grant", &longest(20));
    replace(&stage, &objects::with(other.clone(), "/spec/scope", json!("Cluster"))).await?;
    until_planned(&stage, 2).await?;
    replace(&stage, &other).await?;
    let address = json!({"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}});
    stage.place.patch_status_as("a-story", &door, &address).await?;
    let ended = |app: &Value| app["status"]["operationState"]["finishedAt"].is_string();
    let after = stage.place.wait(&app, "the operation has ended", ended).await?;
    let operation = &after["status"]["operationState"];
    assert_eq!(operation["phase"], "Succeeded", "{operation}");
    assert!(operation["retryCount"].is_null(), "{operation}");
    assert!(stage.place.get(&grant).await?.is_some(), "{operation}");
    let now = stage.place.get(&hook).await?.map(|hook| hook["metadata"]["uid"].clone());
    assert_eq!(now, ran, "the hook ran once");
    stage.place.delete(&other).await?;
    Ok(())
}
