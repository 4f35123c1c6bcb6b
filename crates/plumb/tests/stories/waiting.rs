//! What a sync says while it waits, and what ends the waiting: hooks, waves, retries.

use anyhow::{Result, ensure};
use plumb_testkit::objects::{self, Trouble};
use serde_json::{Value, json};

use crate::stage::Stage;

fn phase(app: &Value) -> &str {
    app["status"]["operationState"]["phase"].as_str().unwrap_or_default()
}

fn message(app: &Value) -> &str {
    app["status"]["operationState"]["message"].as_str().unwrap_or_default()
}

fn wave(object: Value, wave: &str) -> Value {
    objects::annotated(object, "argocd.argoproj.io/sync-wave", wave)
}

fn hook(object: Value, phase: &str) -> Value {
    objects::annotated(object, "argocd.argoproj.io/hook", phase)
}

fn automated(app: &mut Value) {
    app["spec"]["syncPolicy"] = json!({"automated": {}, "retry": {"limit": 0}});
}

/// Waits until the operation's message has all these words.
async fn says(stage: &Stage, app: &Value, words: &[&str]) -> Result<Value> {
    let what = format!("says {}", words.join(" … "));
    stage.place.wait(app, &what, |live| words.iter().all(|word| message(live).contains(word))).await
}

#[tokio::test]
async fn a_hook_that_cannot_start_and_one_that_somebody_deletes_are_named() -> Result<()> {
    let stage = Stage::set().await?;
    let first = hook(objects::troubled(objects::job("migrate"), Trouble::ImagePullBackOff), "PreSync");
    let conf = objects::config_map("conf", &[]);
    stage.repo.commit(&[("app/all.yaml", objects::manifests(&[first.clone(), conf.clone()]))])?;
    let app = stage.application("hooked", automated).await?;
    let lead = "waiting for completion of hook batch/Job/migrate: pod migrate-";
    says(&stage, &app, &[lead, "ImagePullBackOff", "(since 20"]).await?;
    ensure!(stage.place.get(&conf).await?.is_none(), "nothing is applied before the hook is through");

    // Without plumb's help the finalizer would hold it for ever, and the sync would wait for ever.
    stage.place.delete(&first).await?;
    let ended = stage.place.wait(&app, "has ended", |app| phase(app) == "Failed").await?;
    ensure!(message(&ended).contains("batch/Job"), "{}", message(&ended));
    assert_eq!(ended["status"]["history"], json!(null), "what failed is no entry of the history");
    ensure!(message(&ended).contains("deleted before it finished"), "{}", message(&ended));
    stage.place.wait_gone(&first).await?;
    ensure!(stage.place.get(&conf).await?.is_none(), "nothing is applied after a failed hook");
    Ok(())
}

#[tokio::test]
async fn a_wave_that_waits_says_for_what_and_since_when() -> Result<()> {
    let stage = Stage::set().await?;
    let script = "return {status = 'Unknown', message = 'nobody knows ' .. obj.metadata.name}";
    stage.setting("argocd-cm", "resource.customizations.health.ConfigMap", script).await?;
    let paused = objects::with(objects::deployment("web", 1), "/spec/paused", json!(true));
    let unknown = wave(objects::config_map("riddle", &[]), "1");
    let last = wave(objects::service("last", 80), "2");
    stage.repo.commit(&[("app/all.yaml", objects::manifests(&[paused.clone(), unknown, last.clone()]))])?;
    let app = stage.application("waits", automated).await?;
    says(&stage, &app, &["waiting for healthy state of apps/Deployment/web: Suspended", "(since 20"]).await?;
    ensure!(stage.place.get(&last).await?.is_none(), "the next wave waits");
    stage.place.patch_as("a-person", &paused, &json!({"spec": {"paused": false}})).await?;
    let riddle = "waiting for healthy state of /ConfigMap/riddle: Unknown: nobody knows riddle";
    says(&stage, &app, &[riddle, "(since 20"]).await?;
    ensure!(stage.place.get(&last).await?.is_none(), "the next wave waits");
    stage
        .setting("argocd-cm", "resource.customizations.health.ConfigMap", "return {status = 'Healthy'}")
        .await?;
    stage.place.wait(&app, "has synced", |app| phase(app) == "Succeeded").await?;
    Ok(())
}

#[tokio::test]
async fn a_deletion_that_somebody_holds_up_is_named() -> Result<()> {
    let stage = Stage::set().await?;
    let held = objects::with(
        objects::config_map("held", &[]),
        "/metadata/finalizers",
        json!(["example.com/backup"]),
    );
    let keep = objects::config_map("keep", &[]);
    stage.repo.commit(&[("app/all.yaml", objects::manifests(&[held.clone(), keep.clone()]))])?;
    let prunes = |app: &mut Value| {
        app["spec"]["syncPolicy"] = json!({"automated": {"prune": true}, "retry": {"limit": 0}});
    };
    let app = stage.application("held", prunes).await?;
    stage.until_sync(&app, "Synced").await?;
    let after = wave(objects::config_map("after", &[]), "1");
    stage.repo.commit(&[("app/all.yaml", objects::manifests(&[keep, after.clone()]))])?;
    stage.refresh(&app).await?;
    says(&stage, &app, &["waiting for deletion of /ConfigMap/held: held by example.com/backup", "(since 20"])
        .await?;
    ensure!(stage.place.get(&after).await?.is_none(), "the next wave waits");
    stage.place.patch_as("a-person", &held, &json!({"metadata": {"finalizers": null}})).await?;
    stage.until_sync(&app, "Synced").await?;
    stage.place.wait(&after, "exists", |_| true).await?;
    Ok(())
}

#[tokio::test]
async fn a_retry_takes_what_git_asks_by_then_only_if_it_may() -> Result<()> {
    let stage = Stage::set().await?;
    let bad = objects::with(objects::service("web", 80), "/spec/ports/0/port", json!(99_999));
    let broken = stage.repo.commit(&[("app/web.yaml", objects::manifests(&[bad]))])?;
    let pinned = stage.application("pinned", |_| {}).await?;
    let fresh =
        stage.application("fresh", |app| app["spec"]["destination"]["namespace"] = json!("default")).await?;
    let operation = |refresh: bool, limit: u32| {
        json!({"operation": {
            "initiatedBy": {"username": "a-person"},
            "retry": {"limit": limit, "refresh": refresh, "backoff": {"duration": "1s", "factor": 1}},
            "sync": {"revision": broken},
        }})
    };
    stage.place.patch_as("a-person", &pinned, &operation(false, 2)).await?;
    stage.place.patch_as("a-person", &fresh, &operation(true, 20)).await?;
    for app in [&pinned, &fresh] {
        says(&stage, app, &["Retrying attempt #"]).await?;
    }
    let name = format!("web-{}", stage.place.name());
    let fixed =
        stage.repo.commit(&[("app/web.yaml", objects::manifests(&[objects::config_map(&name, &[])]))])?;
    let revision = |app: &Value| app["status"]["operationState"]["syncResult"]["revision"].clone();
    let synced = stage.place.wait(&fresh, "has synced", |app| phase(app) == "Succeeded").await?;
    assert_eq!(revision(&synced), json!(fixed));
    let failed = stage.place.wait(&pinned, "has given up", |app| phase(app) == "Failed").await?;
    assert_eq!(revision(&failed), json!(broken));
    ensure!(message(&failed).contains("(retried 2 times)"), "{}", message(&failed));
    stage.place.delete(&objects::in_namespace(objects::config_map(&name, &[]), "default")).await?;
    Ok(())
}
