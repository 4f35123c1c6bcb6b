//! Apps that plumb is told to leave alone, and projects that leave.

use anyhow::Result;
use plumb_testkit::objects;
use serde_json::{Value, json};

use crate::stage::Stage;

const SKIP: &str = "argocd.argoproj.io/skip-reconcile";

fn automated(app: &mut Value) {
    app["spec"]["syncPolicy"] = json!({"automated": {}});
}

#[tokio::test]
async fn an_app_that_is_left_alone_is_neither_compared_nor_synced() -> Result<()> {
    let stage = Stage::set().await?;
    let map = objects::config_map("left", &[("a", "1")]);
    stage.repo.commit(&[
        ("app/map.yaml", objects::manifests(std::slice::from_ref(&map))),
        ("other/map.yaml", objects::manifests(&[objects::config_map("other", &[("a", "1")])])),
    ])?;
    let left = stage
        .application("left", |app| {
            app["metadata"]["annotations"] = json!({SKIP: "true"});
            automated(app);
        })
        .await?;
    let other = stage
        .application("other", |app| {
            app["spec"]["source"]["path"] = json!("other");
            automated(app);
        })
        .await?;
    stage.until_sync(&other, "Synced").await?;
    let untouched = stage.place.get(&left).await?.unwrap_or_default();
    assert!(untouched["status"]["sync"].is_null(), "{untouched:#}");
    assert!(stage.place.get(&map).await?.is_none());

    stage.place.patch_as("a-person", &left, &json!({"metadata": {"annotations": {SKIP: null}}})).await?;
    stage.until_sync(&left, "Synced").await?;
    assert!(stage.place.get(&map).await?.is_some());
    Ok(())
}

#[tokio::test]
async fn the_apps_of_a_cluster_that_is_left_alone_are_too() -> Result<()> {
    let mut stage = Stage::bare().await?;
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "cluster-home", "annotations": {SKIP: "true"}},
        "stringData": {"name": "here", "server": "https://kubernetes.default.svc", "config": "{}"},
    });
    let secret = objects::labelled(secret, "argocd.argoproj.io/secret-type", "cluster");
    stage.place.apply(&secret).await?;
    stage.begin().await?;
    let map = objects::config_map("left", &[("a", "1")]);
    stage.repo.commit(&[("app/map.yaml", objects::manifests(std::slice::from_ref(&map)))])?;
    let left = stage.application("left", automated).await?;
    // An app of a cluster that nobody knows shows that apps are looked at.
    let lost = stage
        .application("lost", |app| app["spec"]["destination"]["server"] = json!("https://nowhere"))
        .await?;
    stage.place.wait(&lost, "is told", |app| app["status"]["conditions"][0]["type"].is_string()).await?;
    let untouched = stage.place.get(&left).await?.unwrap_or_default();
    assert!(untouched["status"]["sync"].is_null(), "{untouched:#}");
    assert!(stage.place.get(&map).await?.is_none());

    stage.place.patch_as("a-person", &secret, &json!({"metadata": {"annotations": {SKIP: null}}})).await?;
    stage.until_sync(&left, "Synced").await?;
    Ok(())
}

#[tokio::test]
async fn a_project_with_a_finalizer_goes_with_its_last_app() -> Result<()> {
    let stage = Stage::set().await?;
    stage.repo.commit(&[("app/map.yaml", objects::manifests(&[objects::config_map("map", &[])]))])?;
    let mut project = objects::app_project("team");
    project["metadata"]["finalizers"] = json!(["resources-finalizer.argocd.argoproj.io"]);
    stage.place.apply(&project).await?;
    let app = stage.application("last", |app| app["spec"]["project"] = json!("team")).await?;
    stage.until_sync(&app, "OutOfSync").await?;
    stage.place.delete(&project).await?;
    stage.refresh(&app).await?;
    let live = stage.place.get(&project).await?.unwrap_or_default();
    assert!(live["metadata"]["deletionTimestamp"].is_string(), "{live:#}");
    assert_eq!(live["metadata"]["finalizers"][0], "resources-finalizer.argocd.argoproj.io");
    stage.place.delete(&app).await?;
    stage.place.wait_gone(&project).await?;
    Ok(())
}
