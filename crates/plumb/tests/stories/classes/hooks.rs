//! What hooks and Jobs leave behind when they have run.

use anyhow::Result;
use plumb_testkit::objects::{self, Trouble};
use serde_json::{Value, json};

use super::report::{expect, expect_at_once, lines};
use crate::stage::Stage;

fn short_lived(job: Value) -> Value {
    objects::with(job, "/spec/ttlSecondsAfterFinished", json!(0))
}

fn healing(app: &mut Value) {
    app["spec"]["syncPolicy"] = json!({"automated": {"selfHeal": true}, "retry": {"limit": 0}});
}

#[tokio::test]
async fn a_finished_hook_is_residue_and_one_at_work_is_not() -> Result<()> {
    let stage = Stage::set().await?;
    let after = objects::troubled(objects::job("after"), Trouble::Hold);
    let after = objects::annotated(after, "argocd.argoproj.io/hook", "PostSync");
    let map = objects::config_map("map", &[("a", "1")]);
    stage.repo.commit(&[("app/all.yaml", objects::manifests(&[after.clone(), map.clone()]))])?;
    let app = stage
        .application("hooks", |app| {
            app["spec"]["syncPolicy"] = json!({"automated": {}, "retry": {"limit": 0}});
        })
        .await?;
    stage.place.wait(&after, "runs", |job| job["status"]["active"] == 1).await?;
    stage.refresh(&app).await?;
    let report =
        json!({"apiVersion": "plumb.dev/v1alpha1", "kind": "DriftReport", "metadata": {"name": "hooks"}});
    let report = stage.place.get(&report).await?.unwrap_or_default();
    assert_eq!(lines(&report), [""; 0], "it is at work: {report}");
    let_go(&stage, "after").await?;
    let residue = "Job/after HookResidue";
    expect(&stage, &app, "Synced", &[residue]).await?;

    // It stays residue when it leaves Git, beside an edit that counts.
    stage.repo.commit(&[("app/all.yaml", objects::manifests(std::slice::from_ref(&map)))])?;
    stage.place.patch_as("kubectl-edit", &map, &json!({"data": {"a": "2"}})).await?;
    stage.refresh(&app).await?;
    expect(&stage, &app, "OutOfSync", &[residue, "ConfigMap/map LiveEdit! /data/a"]).await?;
    stage.place.delete(&after).await?;
    expect(&stage, &app, "OutOfSync", &["ConfigMap/map LiveEdit! /data/a"]).await
}

#[tokio::test]
async fn a_job_that_ran_and_was_collected_does_not_run_again_after_a_restart() -> Result<()> {
    let mut stage = Stage::set().await?;
    let collected = short_lived(objects::job("collected"));
    let map = objects::config_map("map", &[("a", "1")]);
    stage.repo.commit(&[("app/all.yaml", objects::manifests(&[collected.clone(), map.clone()]))])?;
    let app = stage.application("runs", healing).await?;
    let residue = "Job/collected HookResidue";
    expect(&stage, &app, "Synced", &[residue]).await?;
    stage.place.wait_gone(&collected).await?;
    let synced = stage.until_sync(&app, "Synced").await?;

    stage.kill_plumb()?;
    // An edit, so that there is something to heal: the Job is not healed with it.
    stage.place.patch_as("kubectl-edit", &map, &json!({"data": {"a": "2"}})).await?;
    stage.start_plumb()?;
    stage.place.wait(&map, "is healed", |live| live["data"]["a"] == "1").await?;
    expect(&stage, &app, "Synced", &[residue]).await?;
    assert!(stage.place.get(&collected).await?.is_none(), "it does not run again");
    let live = stage.until_sync(&app, "Synced").await?;
    assert_eq!(live["status"]["history"], synced["status"]["history"], "nothing was synced as a whole");

    // Another Job in Git while plumb is away is another run.
    stage.kill_plumb()?;
    let other =
        objects::with(collected, "/spec/template/spec/containers/0/image", json!("registry.example/app:2"));
    let held = objects::troubled(other, Trouble::Hold);
    stage.repo.commit(&[("app/all.yaml", objects::manifests(&[held.clone(), map]))])?;
    stage.start_plumb()?;
    stage.place.wait(&held, "runs", |job| job["status"]["active"] == 1).await?;
    expect_at_once(&stage, &app, "Synced", &[]).await?;
    // Deleted before it ended, it is missing, and runs again.
    let before = stage.place.get(&held).await?.unwrap_or_default();
    stage.place.delete(&held).await?;
    let is_new = |job: &Value| job["metadata"]["uid"] != before["metadata"]["uid"];
    stage.place.wait(&held, "runs again", is_new).await?;
    Ok(())
}

#[tokio::test]
async fn a_job_that_ran_while_plumb_was_away_does_not_run_again_and_one_that_was_deleted_does() -> Result<()>
{
    let mut stage = Stage::set().await?;
    let held = |name: &str| short_lived(objects::troubled(objects::job(name), Trouble::Hold));
    let (runs, deleted) = (held("runs"), held("deleted"));
    stage.repo.commit(&[("app/all.yaml", objects::manifests(&[runs.clone(), deleted.clone()]))])?;
    let app = stage.application("away", healing).await?;
    stage.until_sync(&app, "Synced").await?;
    for job in [&runs, &deleted] {
        stage.place.wait(job, "is at work", |job| job["status"]["active"] == 1).await?;
    }
    stage
        .place
        .wait(&app, "has synced", |app| app["status"]["operationState"]["phase"] == "Succeeded")
        .await?;

    stage.kill_plumb()?;
    let before = stage.place.get(&deleted).await?.unwrap_or_default();
    stage.place.delete(&deleted).await?;
    let_go(&stage, "runs").await?;
    stage.place.wait_gone(&runs).await?;
    stage.place.wait_gone(&deleted).await?;
    stage.start_plumb()?;
    let is_new = |job: &Value| job["metadata"]["uid"] != before["metadata"]["uid"];
    stage.place.wait(&deleted, "runs again", is_new).await?;
    expect_at_once(&stage, &app, "Synced", &["Job/runs HookResidue"]).await?;
    assert!(stage.place.get(&runs).await?.is_none(), "it does not run again");
    Ok(())
}

#[tokio::test]
async fn a_job_that_ran_during_a_long_absence_does_not_run_again_if_it_had_the_time() -> Result<()> {
    let mut stage = Stage::set().await?;
    let held = |name: &str, ttl: u64| {
        let job = objects::troubled(objects::job(name), Trouble::Hold);
        objects::with(job, "/spec/ttlSecondsAfterFinished", json!(ttl))
    };
    let (ran, deleted) = (held("ran", 0), held("deleted", 86_400));
    stage.repo.commit(&[("app/all.yaml", objects::manifests(&[ran.clone(), deleted.clone()]))])?;
    let app = stage.application("long-away", healing).await?;
    stage.until_sync(&app, "Synced").await?;
    for job in [&ran, &deleted] {
        stage.place.wait(job, "is at work", |job| job["status"]["active"] == 1).await?;
    }
    let is_done = |app: &Value| app["status"]["operationState"]["phase"] == "Succeeded";
    stage.place.wait(&app, "has synced", is_done).await?;

    stage.kill_plumb()?;
    let before = stage.place.get(&deleted).await?.unwrap_or_default();
    stage.place.delete(&deleted).await?;
    let_go(&stage, "ran").await?;
    stage.place.wait_gone(&ran).await?;
    stage.place.wait_gone(&deleted).await?;
    // Two hours later: the cluster has forgotten its events, and the lease is as old.
    let events = stage.place.list("v1", "Event", "").await?;
    for event in events.values().filter(|event| event["involvedObject"]["kind"] == "Job") {
        stage.place.delete(event).await?;
    }
    stage.age_lease(jiff::SignedDuration::from_hours(2)).await?;
    stage.start_plumb()?;
    // It cannot have been collected yet, so somebody deleted it.
    let is_new = |job: &Value| job["metadata"]["uid"] != before["metadata"]["uid"];
    stage.place.wait(&deleted, "runs again", is_new).await?;
    expect_at_once(&stage, &app, "Synced", &["Job/ran HookResidue"]).await?;
    assert!(stage.place.get(&ran).await?.is_none(), "it does not run again");

    // What was once taken to have run has run after the next start too.
    stage.kill_plumb()?;
    stage.start_plumb()?;
    expect(&stage, &app, "Synced", &["Job/ran HookResidue"]).await?;
    assert!(stage.place.get(&ran).await?.is_none(), "it does not run again");
    Ok(())
}

/// Lets the pods of a Job end that is held.
async fn let_go(stage: &Stage, job: &str) -> Result<()> {
    let of_job = format!("job-name={job}");
    let pods = stage.place.wait_list("v1", "Pod", &of_job, "has a pod", |pods| !pods.is_empty()).await?;
    for pod in pods.values() {
        let label = Trouble::Hold.label();
        stage.place.patch_as("a-person", pod, &json!({"metadata": {"labels": {label: null}}})).await?;
    }
    Ok(())
}
