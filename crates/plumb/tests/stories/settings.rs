//! What projects and settings ask of an app, and what plumb writes back to it.

use anyhow::Result;
use plumb_testkit::objects;
use serde_json::{Value, json};

use crate::stage::Stage;

fn messages(app: &Value, condition: &str) -> Vec<String> {
    let conditions = app["status"]["conditions"].as_array().into_iter().flatten();
    let ours = conditions.filter(|entry| entry["type"] == condition);
    ours.filter_map(|entry| entry["message"].as_str().map(str::to_owned)).collect()
}

#[tokio::test]
async fn objects_of_nobody_are_told_where_the_project_asks() -> Result<()> {
    let stage = Stage::set().await?;
    let project = objects::app_project("default");
    let rules = json!({"spec": {"orphanedResources": {"warn": true, "ignore": [{"kind": "ConfigMap", "name": "known-*"}]}}});
    stage.place.patch_as("a-person", &project, &rules).await?;
    let own = objects::config_map("own", &[("a", "1")]);
    stage.repo.commit(&[("app/own.yaml", objects::manifests(&[own]))])?;
    let app = stage.application("tidy", |app| app["spec"]["syncPolicy"] = json!({"automated": {}})).await?;
    let synced = stage.until_sync(&app, "Synced").await?;
    assert_eq!(messages(&synced, "OrphanedResourceWarning"), [""; 0], "{synced}");

    stage.place.apply(&objects::config_map("known-stray", &[])).await?;
    let stray = objects::config_map("stray", &[]);
    stage.place.apply(&stray).await?;
    let told =
        |app: &Value| messages(app, "OrphanedResourceWarning") == ["Application has 1 orphaned resources"];
    stage.place.wait(&app, "tells of the stray object", told).await?;
    stage.place.delete(&stray).await?;
    let gone = |app: &Value| messages(app, "OrphanedResourceWarning").is_empty();
    stage.place.wait(&app, "tells of nothing any more", gone).await?;
    Ok(())
}

#[tokio::test]
async fn finalizers_follow_deletion_hooks_and_excluded_kinds_are_left_out() -> Result<()> {
    let stage = Stage::set().await?;
    let hook = objects::annotated(objects::job("farewell"), "argocd.argoproj.io/hook", "PreDelete");
    let map = objects::config_map("map", &[("a", "1")]);
    stage.repo.commit(&[
        ("app/hook.yaml", objects::manifests(&[hook])),
        ("app/map.yaml", objects::manifests(std::slice::from_ref(&map))),
    ])?;
    let app = stage.application("hooked", |app| app["spec"]["syncPolicy"] = json!({"automated": {}})).await?;
    let finalizers = |app: &Value| {
        let all = app["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
        all.iter().filter(|entry| entry.as_str().is_some_and(|name| name.starts_with("pre-delete"))).count()
    };
    stage.place.wait(&app, "waits for its hook when it goes", |app| finalizers(app) == 2).await?;
    stage.until_sync(&app, "Synced").await?;
    stage.repo.remove(&["app/hook.yaml"])?;
    stage.refresh(&app).await?;
    stage.place.wait(&app, "has nothing to wait for", |app| finalizers(app) == 0).await?;

    let exclusions = "- apiGroups: ['']\n  kinds: [ConfigMap]\n";
    stage.place.apply(&objects::config_map("argocd-cm", &[("resource.exclusions", exclusions)])).await?;
    let told = |app: &Value| messages(app, "ExcludedResourceWarning").len() == 1;
    stage.place.wait(&app, "says what is left out", told).await?;
    assert!(stage.place.get(&map).await?.is_some(), "what is not looked at is not deleted");
    Ok(())
}

#[tokio::test]
async fn git_is_asked_as_often_as_the_settings_say() -> Result<()> {
    let stage = Stage::set().await?;
    let map = |value: &str| objects::manifests(&[objects::config_map("map", &[("a", value)])]);
    stage.repo.commit(&[("app/map.yaml", map("0"))])?;
    let app = stage.application("polled", |app| app["spec"]["syncPolicy"] = json!({"automated": {}})).await?;
    stage.until_sync(&app, "Synced").await?;
    let settings = [("timeout.reconciliation", "1s"), ("timeout.reconciliation.jitter", "0s")];
    stage.place.apply(&objects::config_map("argocd-cm", &settings)).await?;
    // Other settings are a reason to look by themselves, once.
    for value in ["1", "2"] {
        let commit = stage.repo.commit(&[("app/map.yaml", map(value))])?;
        let is_seen = |app: &Value| app["status"]["sync"]["revision"] == commit.as_str();
        stage.place.wait(&app, "has the new commit", is_seen).await?;
    }
    Ok(())
}
