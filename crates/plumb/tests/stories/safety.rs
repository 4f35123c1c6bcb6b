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
