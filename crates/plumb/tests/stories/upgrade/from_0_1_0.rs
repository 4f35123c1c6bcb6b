//! From the manifests of version 0.1.0 to the present ones, with apps running: nothing is lost, nothing restarts twice.
//!
//! `manifests-0.1.0.jsonl` has the objects that 0.1.0 was installed from, without the descriptions in schemas.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use plumb_testkit::{PrivateCluster, objects};
use serde_json::{Value, json};

use crate::install::kubectl;
use crate::stage::Stage;

const BEFORE: &str = include_str!("manifests-0.1.0.jsonl");
const APPLY: [&str; 2] = ["apply", "--server-side"];

/// The objects of 0.1.0 for this namespace.
fn before(namespace: &str) -> Result<Vec<Value>> {
    BEFORE
        .lines()
        .map(|line| {
            let line = line.replace("\"namespace\":\"argocd\"", &format!("\"namespace\":\"{namespace}\""));
            serde_json::from_str(&line).context("the fixture is JSON")
        })
        .collect()
}

fn stream(objects: &[Value]) -> String {
    objects.iter().fold(String::new(), |text, object| text + "---\n" + &object.to_string() + "\n")
}

fn names(objects: &[Value]) -> BTreeSet<String> {
    objects.iter().map(|object| format!("{} {}", object["kind"], object["metadata"]["name"])).collect()
}

/// The present objects, as a user gets them.
fn present(stage: &Stage) -> Result<(String, Vec<Value>)> {
    let printed =
        stage.plumb(&["install", "--image", "registry.example/plumb:0.2.0", "--without-project"])?;
    let limits = plumb_core::yaml::Limits::default();
    let read = plumb_core::yaml::parse_documents(&printed, &limits)
        .map_err(|error| anyhow::anyhow!("cannot read what plumb install prints: {error}"))?;
    Ok((printed, read.into_iter().map(|document| document.value).filter(|value| !value.is_null()).collect()))
}

/// The `ReplicaSets` of plumb's own Deployment: one per rollout.
async fn rollouts(stage: &Stage) -> Result<usize> {
    Ok(stage.place.list("apps/v1", "ReplicaSet", "app.kubernetes.io/name=plumb").await?.len())
}

async fn is_rolled_out(stage: &Stage) -> Result<Value> {
    let is_done = |live: &Value| {
        live["status"]["observedGeneration"] == live["metadata"]["generation"]
            && live["status"]["updatedReplicas"] == live["spec"]["replicas"]
            && live["status"]["readyReplicas"] == live["spec"]["replicas"]
            && live["status"]["replicas"] == live["spec"]["replicas"]
    };
    stage.place.wait(&objects::deployment("plumb", 2), "is rolled out", is_done).await
}

#[tokio::test]
async fn the_manifests_of_0_1_0_are_upgraded_with_apps_running() -> Result<()> {
    let cluster = tokio::task::spawn_blocking(PrivateCluster::start).await.context("a thread ended")??;
    let mut stage = Stage::bare_in(cluster.shared()).await?;
    stage.installs = false;
    let old = before(stage.place.name())?;
    let (kinds, rest): (Vec<Value>, Vec<Value>) =
        old.iter().cloned().partition(|object| object["kind"] == "CustomResourceDefinition");
    kubectl(&stage, &APPLY, &stream(&kinds))?;
    kubectl(&stage, &["wait", "--for=condition=Established", "--timeout=60s"], &stream(&kinds))?;
    kubectl(&stage, &APPLY, &stream(&rest))?;
    is_rolled_out(&stage).await?;

    // Apps at work, with a history.
    let (web, map) = (objects::deployment("web", 1), objects::config_map("map", &[("a", "1")]));
    stage.repo.commit(&[("app/all.yaml", objects::manifests(&[web.clone(), map.clone()]))])?;
    stage.start_plumb()?;
    stage.place.wait(&objects::app_project("default"), "is there", |_| true).await?;
    let app = stage
        .application("shop", |app| {
            app["spec"]["syncPolicy"] = json!({"automated": {"prune": true, "selfHeal": true}});
        })
        .await?;
    stage.until_sync(&app, "Synced").await?;
    let web_before = stage.place.wait(&web, "is ready", |live| live["status"]["readyReplicas"] == 1).await?;
    let map_before = stage.place.get(&map).await?.context("the map is gone")?;
    let app_before = stage.place.get(&app).await?.context("the app is gone")?;
    let plumb_before = is_rolled_out(&stage).await?;

    // The upgrade, while plumb works. Then the new pod takes over.
    let (text, new) = present(&stage)?;
    kubectl(&stage, &APPLY, &text)?;
    let plumb_after = is_rolled_out(&stage).await?;
    stage.stop_plumb()?;
    stage.start_plumb()?;
    stage.refresh_hard(&app).await?;
    stage.until_sync(&app, "Synced").await?;

    // Nothing is lost.
    let lost: Vec<_> = names(&old).difference(&names(&new)).cloned().collect();
    ensure!(lost.is_empty(), "the present manifests leave these behind: {lost:?}");
    let app_after = stage.place.get(&app).await?.context("the app is gone")?;
    for part in ["/metadata/uid", "/spec", "/status/history", "/status/operationState", "/status/resources"] {
        ensure!(app_after.pointer(part) == app_before.pointer(part), "{part} changed:\n{app_after:#}");
    }
    // What runs goes on: not even a write.
    let map_after = stage.place.get(&map).await?.context("the map is gone")?;
    ensure!(map_after["metadata"] == map_before["metadata"], "{map_after:#}");
    let web_after = stage.place.get(&web).await?.context("the Deployment is gone")?;
    ensure!(web_after["metadata"] == web_before["metadata"], "{web_after:#}");
    ensure!(stage.place.list("apps/v1", "ReplicaSet", "app=web").await?.len() <= 1, "web was restarted");

    // plumb restarts once, and not again when the same is applied again.
    let generation = |object: &Value| object["metadata"]["generation"].as_i64().unwrap_or_default();
    ensure!(generation(&plumb_after) == generation(&plumb_before) + 1, "{plumb_after:#}");
    ensure!(rollouts(&stage).await? == 2, "one rollout for each version");
    kubectl(&stage, &APPLY, &text)?;
    let again = is_rolled_out(&stage).await?;
    ensure!(generation(&again) == generation(&plumb_after), "a second time there is nothing to do");
    ensure!(rollouts(&stage).await? == 2, "nothing restarts twice");

    // The next commit is synced as ever.
    let next = objects::config_map("map", &[("a", "2")]);
    stage.repo.commit(&[("app/all.yaml", objects::manifests(&[web, next]))])?;
    stage.refresh(&app).await?;
    stage.place.wait(&map, "has the next commit", |live| live["data"]["a"] == "2").await?;
    drop(stage);
    tokio::task::spawn_blocking(move || drop(cluster)).await.context("a thread ended")
}
