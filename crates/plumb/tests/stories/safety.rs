//! What must not happen: one app disturbing another, work lost in a crash, an app wiped out by an empty commit.

use std::time::Duration;

use anyhow::Result;
use plumb_testkit::proxy::{Fault, Requests, Times};
use plumb_testkit::{objects, wait};
use serde_json::{Value, json};

use crate::stage::Stage;

pub(crate) fn has_condition(app: &Value, condition: &str) -> bool {
    app["status"]["conditions"].as_array().into_iter().flatten().any(|entry| entry["type"] == condition)
}

#[tokio::test]
async fn a_broken_app_does_not_disturb_its_neighbour() -> Result<()> {
    let stage = Stage::set().await?;
    stage
        .repo
        .commit(&[("app/fine.yaml", objects::manifests(&[objects::config_map("fine", &[("a", "1")])]))])?;
    let no_path =
        stage.application("no-path", |app| app["spec"]["source"]["path"] = json!("nowhere")).await?;
    let no_project = stage.application("no-project", |app| app["spec"]["project"] = json!("nobody")).await?;
    let fine = stage.application("fine", |app| app["spec"]["syncPolicy"] = json!({"automated": {}})).await?;
    stage.until_sync(&fine, "Synced").await?;
    stage.place.wait(&no_path, "says what is wrong", |app| has_condition(app, "ComparisonError")).await?;
    stage.place.wait(&no_project, "says what is wrong", |app| has_condition(app, "InvalidSpecError")).await?;
    Ok(())
}

#[tokio::test]
async fn an_empty_commit_wipes_nothing_out() -> Result<()> {
    let stage = Stage::set().await?;
    let only = objects::config_map("only", &[("a", "1")]);
    stage.repo.commit(&[("app/only.yaml", objects::manifests(std::slice::from_ref(&only)))])?;
    let app = stage
        .application("empty", |app| app["spec"]["syncPolicy"] = json!({"automated": {"prune": true}}))
        .await?;
    stage.until_sync(&app, "Synced").await?;
    stage.repo.commit(&[("app/README.md", "nothing here")])?;
    stage.repo.remove(&["app/only.yaml"])?;
    stage.refresh(&app).await?;
    stage.place.wait(&app, "refuses to wipe it out", |app| has_condition(app, "SyncError")).await?;
    let live = stage.place.get(&only).await?.unwrap_or_default();
    assert_eq!(live["metadata"]["deletionTimestamp"], json!(null));
    Ok(())
}

#[tokio::test]
async fn a_status_that_the_cluster_cannot_store_still_says_so() -> Result<()> {
    let (stage, proxy) = Stage::set_behind_proxy().await?;
    stage.repo.commit(&[("app/a.yaml", objects::manifests(&[objects::config_map("a", &[])]))])?;
    proxy.inject(Fault::Error(413), Requests::to("/applications/large"), Times::ONCE);
    let app = stage.application("large", |_| {}).await?;
    let told = stage.place.wait(&app, "says why", |app| has_condition(app, "UnknownError")).await?;
    assert_eq!(told["status"]["resources"], json!(null), "what does not fit is left out");
    // The next look writes all of it, now that it fits.
    stage.refresh(&app).await?;
    stage.place.wait(&app, "is whole again", |app| !has_condition(app, "UnknownError")).await?;
    Ok(())
}

#[tokio::test]
async fn a_kind_that_cannot_be_listed_holds_a_deletion_up_and_is_named() -> Result<()> {
    let (stage, proxy) = Stage::set_behind_proxy().await?;
    let only = objects::config_map("only", &[("a", "1")]);
    stage.repo.commit(&[("app/only.yaml", objects::manifests(std::slice::from_ref(&only)))])?;
    let app = stage
        .application("leaving", |app| {
            app["metadata"]["finalizers"] = json!(["resources-finalizer.argocd.argoproj.io"]);
            app["spec"]["syncPolicy"] = json!({"automated": {}});
        })
        .await?;
    stage.until_sync(&app, "Synced").await?;

    // A kind comes whose objects nobody can see: some of them could be the app's.
    let group = format!("{}.hidden.plumb.dev", stage.place.name());
    proxy.inject(Fault::Error(500), Requests::to(&format!("/apis/{group}/v1/")), Times::Always);
    stage.place.apply(&objects::crd(&group, "Hidden", &json!({"type": "object"}))).await?;
    let asks = || async { proxy.count(&Requests::to(&format!("/apis/{group}/v1/"))) };
    wait::until_seen(Duration::from_mins(1), "plumb asks for the new kind", asks, |n| *n > 0).await?;
    stage.place.delete(&app).await?;
    stage
        .place
        .wait(&app, "says what it waits for", |app| {
            let conditions = app["status"]["conditions"].as_array().into_iter().flatten();
            conditions.into_iter().any(|entry| {
                entry["type"] == "DeletionError"
                    && entry["message"].as_str().is_some_and(|text| text.contains("Hidden"))
            })
        })
        .await?;
    assert!(stage.place.get(&only).await?.is_some(), "nothing is deleted before everything is known");

    // Nothing else happens but that the list comes through.
    proxy.heal();
    stage.place.wait_gone(&app).await?;
    assert!(stage.place.get(&only).await?.is_none());
    Ok(())
}

#[tokio::test]
async fn killed_in_the_middle_of_a_sync_it_goes_on_and_the_hook_runs_once() -> Result<()> {
    let mut stage = Stage::set().await?;
    let hook = objects::annotated(
        objects::troubled(objects::job("slow"), objects::Trouble::Hold),
        "argocd.argoproj.io/hook",
        "PreSync",
    );
    let after = objects::config_map("after", &[("a", "1")]);
    stage.repo.commit(&[("app/all.yaml", objects::manifests(&[hook.clone(), after.clone()]))])?;
    let app = stage.application("killed", |app| app["spec"]["syncPolicy"] = json!({"automated": {}})).await?;
    let running = |app: &Value| app["status"]["operationState"]["phase"] == "Running";
    stage.place.wait(&app, "waits for its hook", running).await?;
    let before = stage.place.wait(&hook, "exists", |_| true).await?;

    stage.kill_plumb()?;
    assert!(stage.place.get(&after).await?.is_none(), "nothing is applied before the hook is through");
    stage.start_plumb()?;
    // The pod is let go: the hook ends, and the sync with it.
    let pods = stage
        .place
        .wait_list("v1", "Pod", "job-name=slow", "has the hook's pod", |pods| !pods.is_empty())
        .await?;
    for pod in pods.values() {
        let label = objects::Trouble::Hold.label();
        stage.place.patch_as("a-person", pod, &json!({"metadata": {"labels": {label: null}}})).await?;
    }
    stage.until_sync(&app, "Synced").await?;
    let hook = stage.place.wait(&hook, "has finished", |job| job["status"]["succeeded"] == 1).await?;
    assert_eq!(hook["metadata"]["uid"], before["metadata"]["uid"], "the hook ran once");
    Ok(())
}

/// A prune of the namespace would delete all that is in it, and the next sync would make it again, empty.
#[tokio::test]
async fn a_namespace_that_the_app_still_asks_for_outlives_its_manifest() -> Result<()> {
    let stage = Stage::set().await?;
    let name = format!("{}-asked", stage.place.name());
    let namespace = objects::namespace(&name);
    let map = objects::config_map("map", &[("a", "1")]);
    stage.repo.commit(&[
        ("app/namespace.yaml", objects::manifests(std::slice::from_ref(&namespace))),
        ("app/map.yaml", objects::manifests(std::slice::from_ref(&map))),
        ("app/values.yaml", "replicas: 3\n".to_owned()),
    ])?;
    let app = stage
        .application("asks", |app| {
            app["metadata"]["finalizers"] = json!(["resources-finalizer.argocd.argoproj.io"]);
            app["spec"]["destination"]["namespace"] = json!(name);
            app["spec"]["syncPolicy"] = json!({
                "automated": {"prune": true}, "syncOptions": ["CreateNamespace=true"],
                "managedNamespaceMetadata": {"labels": {"team": "blue"}},
            });
        })
        .await?;
    stage.until_sync(&app, "Synced").await?;
    let first = stage.place.get(&namespace).await?.unwrap_or_default();
    stage.repo.remove(&["app/namespace.yaml"])?;
    stage.refresh(&app).await?;
    let is_labelled = |live: &Value| live["metadata"]["labels"]["team"] == "blue";
    stage.place.wait(&namespace, "has the label that the app manages", is_labelled).await?;
    stage.until_sync(&app, "Synced").await?;
    let kept = |live: &Value| {
        live["metadata"]["uid"] == first["metadata"]["uid"] && live["metadata"]["deletionTimestamp"].is_null()
    };
    anyhow::ensure!(
        stage.place.get(&namespace).await?.as_ref().is_some_and(kept),
        "it is the same namespace"
    );

    stage.place.delete(&app).await?;
    stage.place.wait_gone(&app).await?;
    anyhow::ensure!(stage.place.get(&objects::in_namespace(map, &name)).await?.is_none());
    anyhow::ensure!(stage.place.get(&namespace).await?.as_ref().is_some_and(kept), "options asked for it");
    stage.place.delete(&namespace).await?;
    Ok(())
}

#[tokio::test]
async fn a_namespace_with_objects_of_another_app_is_pruned_only_with_a_confirmation() -> Result<()> {
    let stage = Stage::set().await?;
    let name = format!("{}-shared", stage.place.name());
    let namespace = objects::namespace(&name);
    let keep = objects::config_map("keep", &[("a", "1")]);
    stage.repo.commit(&[
        ("app/namespace.yaml", objects::manifests(std::slice::from_ref(&namespace))),
        ("app/keep.yaml", objects::manifests(&[keep])),
        ("guest/map.yaml", objects::manifests(&[objects::config_map("map", &[("a", "1")])])),
    ])?;
    let automated = json!({"automated": {"prune": true}});
    let host = stage.application("host", |app| app["spec"]["syncPolicy"] = automated.clone()).await?;
    stage.until_sync(&host, "Synced").await?;
    let guest = stage
        .application("guest", |app| {
            app["spec"]["source"]["path"] = json!("guest");
            app["spec"]["destination"]["namespace"] = json!(name);
            app["spec"]["syncPolicy"] = automated.clone();
        })
        .await?;
    stage.until_sync(&guest, "Synced").await?;
    stage.repo.remove(&["app/namespace.yaml"])?;
    stage.refresh(&host).await?;
    let asks = |app: &Value| {
        let message = app["status"]["operationState"]["message"].as_str().unwrap_or_default();
        message.contains("waiting for pruning confirmation") && message.contains("objects of guest")
    };
    stage.place.wait(&host, "asks first", asks).await?;
    let live = stage.place.get(&namespace).await?.unwrap_or_default();
    anyhow::ensure!(live["metadata"]["deletionTimestamp"].is_null());
    stage.plumb(&["app", "confirm-deletion", "host"])?;
    let is_pruned = |app: &Value| {
        let results = app["status"]["operationState"]["syncResult"]["resources"].as_array();
        let mut all = results.into_iter().flatten();
        all.any(|result| result["kind"] == "Namespace" && result["status"] == "Pruned")
    };
    stage.place.wait(&host, "prunes it", is_pruned).await?;
    Ok(())
}

#[tokio::test]
async fn a_rename_of_everything_waits_for_a_user_also_at_the_next_commit() -> Result<()> {
    let stage = Stage::set().await?;
    let maps = |prefix: &str| -> Vec<Value> {
        (0..7).map(|n| objects::config_map(&format!("{prefix}-{n}"), &[("a", "1")])).collect()
    };
    let commit = |all: &[Value]| stage.repo.commit(&[("app/maps.yaml", objects::manifests(all))]);
    commit(&maps("old"))?;
    let app = stage
        .application("renamed", |app| app["spec"]["syncPolicy"] = json!({"automated": {"prune": true}}))
        .await?;
    let is_recorded = |app: &Value| app["status"]["history"].as_array().is_some_and(|all| !all.is_empty());
    stage.place.wait(&app, "was synced", is_recorded).await?;

    // Times of objects have whole seconds. What comes in the same second as the old objects counts with them.
    let second = || jiff::Timestamp::now().as_second();
    let first = second();
    let is_next = |now: &i64| *now > first;
    wait::until_seen(Duration::from_secs(5), "the next second", async || second(), is_next).await?;
    commit(&maps("new"))?;
    stage.refresh(&app).await?;
    let waits = |revision: &str, app: &Value| {
        let operation = &app["status"]["operationState"];
        let message = operation["message"].as_str().unwrap_or_default();
        operation["syncResult"]["revision"] == revision && message.contains("7 of 7 objects would be deleted")
    };
    let head = stage.repo.git(&["rev-parse", "HEAD"])?;
    stage.place.wait(&app, "asks first", |app| waits(head.trim(), app)).await?;

    // Now there are 15 objects, of which 7 would go.
    let more = objects::config_map("more", &[("a", "1")]);
    commit(&[maps("new"), vec![more.clone()]].concat())?;
    stage.refresh(&app).await?;
    let head = stage.repo.git(&["rev-parse", "HEAD"])?;
    stage.place.wait(&app, "asks again", |app| waits(head.trim(), app)).await?;
    let old = maps("old");
    for map in old.iter().chain([&more]) {
        let live = stage.place.get(map).await?.unwrap_or_default();
        anyhow::ensure!(live["metadata"]["name"] == map["metadata"]["name"], "{map} is gone");
    }
    stage.plumb(&["app", "confirm-deletion", "renamed"])?;
    stage.until_sync(&app, "Synced").await?;
    for map in &old {
        anyhow::ensure!(stage.place.get(map).await?.is_none(), "{map} is left");
    }
    Ok(())
}
