//! Syncs: what Git asks comes, stays, goes.

use std::sync::Mutex;

use anyhow::Result;
use plumb_testkit::objects;
use serde_json::{Value, json};

use crate::stage::Stage;

#[tokio::test]
async fn what_git_asks_is_applied_and_a_live_edit_is_put_back() -> Result<()> {
    let stage = Stage::set().await?;
    let web = objects::deployment("web", 1);
    stage
        .repo
        .commit(&[("app/web.yaml", objects::manifests(&[web.clone(), objects::service("web", 80)]))])?;
    let app = stage
        .application("web", |app| app["spec"]["syncPolicy"] = json!({"automated": {"selfHeal": true}}))
        .await?;
    let synced = stage.until_sync(&app, "Synced").await?;
    assert_eq!(synced["status"]["operationState"]["phase"], "Succeeded");
    assert_eq!(synced["status"]["history"].as_array().map(Vec::len), Some(1), "one full sync, one entry");
    assert_eq!(synced["operation"], json!(null), "the lock is free again");
    let time = |pointer: &str| synced.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    assert!(
        time("/status/reconciledAt") >= time("/status/operationState/finishedAt"),
        "scripts wait until somebody looked after the end"
    );
    assert_eq!(synced["status"]["resources"][0]["health"], json!(null), "kept elsewhere unless settings ask");

    stage.place.scale_as("kubectl-scale", &web, 5).await?;
    stage.place.wait(&web, "is back at one replica", |live| live["spec"]["replicas"] == 1).await?;
    let healed = stage.until_sync(&app, "Synced").await?;
    assert_eq!(healed["status"]["history"].as_array().map(Vec::len), Some(1), "a heal is not the whole app");
    Ok(())
}

#[tokio::test]
async fn waves_and_hooks_run_in_order_once() -> Result<()> {
    let stage = Stage::set().await?;
    let wave = |object, wave: &str| objects::annotated(object, "argocd.argoproj.io/sync-wave", wave);
    let hook = objects::annotated(objects::job("migrate"), "argocd.argoproj.io/hook", "PreSync");
    let first = wave(objects::deployment("first", 1), "0");
    let second = wave(objects::config_map("second", &[("a", "b")]), "1");
    stage
        .repo
        .commit(&[("app/all.yaml", objects::manifests(&[second.clone(), hook.clone(), first.clone()]))])?;
    let app = stage.application("waves", |app| app["spec"]["syncPolicy"] = json!({"automated": {}})).await?;
    // The lock and the state of the operation change together, whoever looks when.
    let torn = Mutex::new(Vec::new());
    let is_synced = |live: &Value| {
        let phase = live["status"]["operationState"]["phase"].as_str().unwrap_or_default().to_owned();
        if live["operation"].is_null() == (phase == "Running")
            && let Ok(mut torn) = torn.lock()
        {
            torn.push(phase);
        }
        live["status"]["sync"]["status"] == "Synced"
    };
    let synced = stage.place.wait(&app, "is Synced", is_synced).await?;
    assert_eq!(synced["status"]["operationState"]["phase"], "Succeeded");
    assert_eq!(torn.into_inner()?, Vec::<String>::new());
    let resources = synced["status"]["resources"].as_array().cloned().unwrap_or_default();
    let shown = resources.iter().find(|resource| resource["name"] == "migrate").cloned().unwrap_or_default();
    assert_eq!((&shown["hook"], &shown["requiresPruning"]), (&json!(true), &json!(true)), "{shown}");
    assert_eq!(shown["status"], json!(null), "a hook is compared with nothing");

    let hook = stage.place.wait(&hook, "has finished", |job| job["status"]["succeeded"] == 1).await?;
    let first = stage.place.wait(&first, "exists", |_| true).await?;
    let second = stage.place.wait(&second, "exists", |_| true).await?;
    let created =
        |object: &serde_json::Value| object["metadata"]["creationTimestamp"].as_str().map(str::to_owned);
    assert!(created(&hook) <= created(&first) && created(&first) <= created(&second));
    Ok(())
}

#[tokio::test]
async fn what_leaves_git_is_pruned_into_a_tombstone() -> Result<()> {
    let stage = Stage::set().await?;
    let (keep, drop) =
        (objects::config_map("keep", &[("a", "1")]), objects::config_map("drop", &[("b", "2")]));
    stage.repo.commit(&[
        ("app/keep.yaml", objects::manifests(std::slice::from_ref(&keep))),
        ("app/drop.yaml", objects::manifests(std::slice::from_ref(&drop))),
    ])?;
    let app = stage
        .application("prune", |app| app["spec"]["syncPolicy"] = json!({"automated": {"prune": true}}))
        .await?;
    stage.until_sync(&app, "Synced").await?;
    stage.place.wait(&drop, "exists", |_| true).await?;

    stage.repo.remove(&["app/drop.yaml"])?;
    stage.refresh(&app).await?;
    stage.place.wait_gone(&drop).await?;
    assert!(stage.place.get(&keep).await?.is_some());
    let tombstones = stage.place.list("v1", "Secret", "plumb.dev/app=prune").await?;
    assert_eq!(tombstones.len(), 1, "the deleted object can be brought back");
    Ok(())
}

#[tokio::test]
async fn a_dry_run_is_no_sync_and_an_empty_commit_is_another_try() -> Result<()> {
    let stage = Stage::set().await?;
    let inside = format!("{}-later", stage.place.name());
    let map = objects::config_map("here", &[("a", "1")]);
    let mut other = objects::config_map("there", &[("a", "1")]);
    other["metadata"]["namespace"] = json!(inside);
    stage.repo.commit(&[("app/all.yaml", objects::manifests(&[map.clone(), other]))])?;
    let app = stage.application("tried", |_| {}).await?;
    stage.until_sync(&app, "OutOfSync").await?;
    let dry_run = json!({"operation": {"initiatedBy": {"username": "somebody"}, "sync": {"dryRun": true}}});
    stage.place.patch_as("somebody", &app, &dry_run).await?;
    let is_tried = |app: &Value| app["operation"].is_null() && !app["status"]["operationState"].is_null();
    stage.place.wait(&app, "was tried out", is_tried).await?;
    assert!(stage.place.get(&map).await?.is_none());

    let automated = json!({"spec": {"syncPolicy": {"automated": {}, "retry": {"limit": 0}}}});
    stage.place.patch_as("somebody", &app, &automated).await?;
    // The other namespace is not there.
    let failed = |app: &Value| {
        let last = &app["status"]["operationState"];
        last["phase"] == "Failed" && last["operation"]["initiatedBy"]["automated"] == true
    };
    stage.place.wait(&app, "is synced, and fails", failed).await?;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": inside}});
    stage.place.apply(&namespace).await?;
    stage.repo.commit(&[("elsewhere.md", "nothing of this app")])?;
    stage.refresh(&app).await?;
    stage.until_sync(&app, "Synced").await?;
    stage.place.delete(&namespace).await?;
    Ok(())
}
