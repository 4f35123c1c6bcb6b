//! What happens when an app is deleted: its hooks, its objects, and what keeps them.

use anyhow::{Result, ensure};
use plumb_testkit::objects::{self, Trouble};
use serde_json::{Value, json};

use crate::safety::has_condition;
use crate::stage::Stage;

const CASCADE: &str = "resources-finalizer.argocd.argoproj.io";

fn leaving(app: &mut Value) {
    app["metadata"]["finalizers"] = json!([CASCADE]);
    app["spec"]["syncPolicy"] = json!({"automated": {}});
}

fn hook(object: Value, phase: &str) -> Value {
    objects::annotated(object, "argocd.argoproj.io/hook", phase)
}

fn is_going(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

/// Waits until the app carries the finalizers of its deletion hooks: only then does its deletion wait for them.
async fn until_guarded(stage: &Stage, app: &Value, finalizer: &str) -> Result<()> {
    let has_it = |app: &Value| app["metadata"]["finalizers"].to_string().contains(finalizer);
    stage.place.wait(app, "waits for its hooks when it goes", has_it).await?;
    stage.until_sync(app, "Synced").await?;
    Ok(())
}

#[tokio::test]
async fn hooks_run_before_and_after_what_they_say_farewell_to() -> Result<()> {
    let stage = Stage::set().await?;
    let before = hook(objects::job("before"), "PreDelete");
    let policy = "argocd.argoproj.io/hook-delete-policy";
    let brief = objects::annotated(hook(objects::job("brief"), "PreDelete"), policy, "HookSucceeded");
    let after = objects::annotated(objects::job("after"), "helm.sh/hook", "post-delete");
    let held = objects::with(
        objects::config_map("data", &[("a", "1")]),
        "/metadata/finalizers",
        json!(["example.com/hold"]),
    );
    // The highest wave goes first: the hooks' objects are still there when this one is on its way.
    let held = objects::annotated(held, "argocd.argoproj.io/sync-wave", "1");
    let all = objects::manifests(&[before.clone(), brief.clone(), after.clone(), held.clone()]);
    stage.repo.commit(&[("app/all.yaml", all)])?;
    let app = stage.application("farewell", leaving).await?;
    until_guarded(&stage, &app, "post-delete-finalizer").await?;
    ensure!(stage.place.get(&before).await?.is_none(), "a sync does not run what belongs to the deletion");

    stage.place.delete(&app).await?;
    stage.place.wait(&held, "is on its way", is_going).await?;
    for first in [&before, &brief] {
        let job = stage.place.get(first).await?.unwrap_or_default();
        ensure!(job["status"]["succeeded"] == 1, "objects go after the hooks that come before: {job:#}");
    }
    ensure!(stage.place.get(&after).await?.is_none(), "what comes after waits for the last object");
    let live = stage.place.get(&app).await?.unwrap_or_default();
    ensure!(is_going(&live), "the app waits, too");

    stage.place.patch_as("a-person", &held, &json!({"metadata": {"finalizers": null}})).await?;
    stage.place.wait_gone(&app).await?;
    ensure!(stage.place.get(&held).await?.is_none());
    let job = stage.place.get(&after).await?.unwrap_or_default();
    ensure!(job["status"]["succeeded"] == 1, "a hook stays unless its policy says otherwise: {job:#}");
    for gone in [&before, &brief] {
        stage.place.wait_gone(gone).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_hook_that_fails_keeps_the_app_and_its_objects_and_is_run_again() -> Result<()> {
    let stage = Stage::set().await?;
    let job = objects::troubled(objects::job("before"), Trouble::ImagePullBackOff);
    let job = objects::with(job, "/spec/backoffLimit", json!(0));
    let job = hook(objects::with(job, "/spec/activeDeadlineSeconds", json!(1)), "PreDelete");
    let data = objects::config_map("data", &[("a", "1")]);
    stage.repo.commit(&[("app/all.yaml", objects::manifests(&[job.clone(), data.clone()]))])?;
    let app = stage.application("stuck", leaving).await?;
    until_guarded(&stage, &app, "pre-delete-finalizer").await?;
    stage.place.delete(&app).await?;
    stage.place.wait(&app, "says what is wrong", |app| has_condition(app, "DeletionError")).await?;
    let first = stage.place.wait(&job, "is there", |_| true).await?["metadata"]["uid"].clone();
    stage.place.wait(&job, "is run again", |job| job["metadata"]["uid"] != first).await?;
    let data = stage.place.get(&data).await?.unwrap_or_default();
    ensure!(data["data"]["a"] == "1" && !is_going(&data), "{data:#}");

    // Git lets it go: a deletion is not held for ever by a hook that nobody has any more.
    stage
        .repo
        .commit(&[("app/all.yaml", objects::manifests(&[objects::config_map("data", &[("a", "1")])]))])?;
    stage
        .place
        .patch_as(
            "a-person",
            &app,
            &json!({"metadata": {"annotations": {"argocd.argoproj.io/refresh": "normal"}}}),
        )
        .await?;
    stage.place.wait_gone(&app).await?;
    Ok(())
}

#[tokio::test]
async fn what_is_deleted_only_with_a_word_waits_for_it_and_what_is_kept_stays() -> Result<()> {
    let stage = Stage::set().await?;
    let options = "argocd.argoproj.io/sync-options";
    let asks = objects::annotated(objects::config_map("asks", &[]), options, "Delete=confirm");
    let keeps = objects::annotated(objects::config_map("keeps", &[]), options, "Delete=false");
    let helm = objects::annotated(objects::config_map("helm", &[]), "helm.sh/resource-policy", "keep");
    let all = objects::manifests(&[asks.clone(), keeps.clone(), helm.clone()]);
    stage.repo.commit(&[
        ("app/all.yaml", all),
        ("other/map.yaml", objects::manifests(&[objects::config_map("other", &[])])),
    ])?;
    let app = stage.application("careful", leaving).await?;
    stage.until_sync(&app, "Synced").await?;
    stage.place.delete(&app).await?;
    // Anything that the deletion would do by itself it does in the time of a whole other app.
    let other = stage
        .application("other", |app| {
            leaving(app);
            app["spec"]["source"]["path"] = json!("other");
        })
        .await?;
    stage.until_sync(&other, "Synced").await?;
    let live = stage.place.get(&asks).await?.unwrap_or_default();
    ensure!(live.is_object() && !is_going(&live), "nobody approved it: {live:#}");

    let now = format!("{:.0}", jiff::Timestamp::now());
    let approved = json!({"metadata": {"annotations": {"argocd.argoproj.io/deletion-approved": now}}});
    stage.place.patch_as("a-person", &app, &approved).await?;
    stage.place.wait_gone(&app).await?;
    ensure!(stage.place.get(&asks).await?.is_none());
    ensure!(stage.place.get(&keeps).await?.is_some() && stage.place.get(&helm).await?.is_some());
    Ok(())
}

#[tokio::test]
async fn an_app_waits_for_its_project_to_go_and_not_for_a_cluster_that_nobody_knows() -> Result<()> {
    let stage = Stage::set().await?;
    let map = objects::config_map("map", &[("a", "1")]);
    stage.repo.commit(&[("app/map.yaml", objects::manifests(std::slice::from_ref(&map)))])?;
    stage.place.apply(&objects::app_project("brief")).await?;
    let app = stage
        .application("orphaned", |app| {
            leaving(app);
            app["spec"]["project"] = json!("brief");
        })
        .await?;
    stage.until_sync(&app, "Synced").await?;
    stage.place.delete(&objects::app_project("brief")).await?;
    stage.place.wait(&app, "misses its project", |app| has_condition(app, "InvalidSpecError")).await?;
    stage.place.delete(&app).await?;
    stage.place.wait(&app, "says why it stays", |app| has_condition(app, "DeletionError")).await?;
    ensure!(stage.place.get(&map).await?.is_some(), "nothing is deleted that no project permits");
    stage.place.apply(&objects::app_project("brief")).await?;
    stage.place.wait_gone(&app).await?;
    ensure!(stage.place.get(&map).await?.is_none());

    let lost = stage
        .application("lost", |app| {
            leaving(app);
            app["spec"]["destination"] = json!({"server": "https://nowhere.example.com", "namespace": "x"});
        })
        .await?;
    stage.place.wait(&lost, "misses its cluster", |app| has_condition(app, "InvalidSpecError")).await?;
    stage.place.delete(&lost).await?;
    stage.place.wait_gone(&lost).await?;
    Ok(())
}
