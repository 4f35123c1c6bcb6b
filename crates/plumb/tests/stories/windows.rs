//! Times in which nothing is synced.

use anyhow::{Result, ensure};
use plumb_testkit::objects;
use serde_json::{Value, json};

use crate::stage::Stage;

fn with_windows(windows: &Value) -> Value {
    objects::with(objects::app_project("guarded"), "/spec/syncWindows", windows.clone())
}

fn deny(manual: bool) -> Value {
    json!([{"kind": "deny", "schedule": "* * * * *", "duration": "2h", "applications": ["*"], "manualSync": manual}])
}

fn phase(app: &Value) -> &str {
    app["status"]["operationState"]["phase"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn a_closed_window_holds_the_automation_and_a_persons_sync_until_it_opens() -> Result<()> {
    let stage = Stage::set().await?;
    let map = |value: &str| objects::config_map("map", &[("a", value)]);
    stage.repo.commit(&[("app/map.yaml", objects::manifests(&[map("1")]))])?;
    stage.place.apply(&with_windows(&deny(false))).await?;
    let app = stage
        .application("guarded", |app| {
            app["spec"]["project"] = json!("guarded");
            app["spec"]["syncPolicy"] = json!({"automated": {"selfHeal": true}});
        })
        .await?;
    let seen = stage.until_sync(&app, "OutOfSync").await?;
    ensure!(phase(&seen).is_empty(), "the automation starts nothing: {seen:#}");

    // A person's sync waits, and says for what.
    let sync = json!({"operation": {"initiatedBy": {"username": "a-person"}, "sync": {}}});
    stage.place.patch_as("a-person", &app, &sync).await?;
    let waits = |app: &Value| {
        let message = app["status"]["operationState"]["message"].as_str().unwrap_or_default();
        phase(app) == "Running" && message.contains("blocked by sync window")
    };
    stage.place.wait(&app, "waits for the window", waits).await?;
    ensure!(stage.place.get(&map("1")).await?.is_none());
    stage
        .place
        .patch_as("a-person", &with_windows(&json!([])), &json!({"spec": {"syncWindows": null}}))
        .await?;
    stage.place.wait(&app, "goes on", |app| phase(app) == "Succeeded").await?;
    stage.until_sync(&app, "Synced").await?;

    // With a window that lets people pass, a person passes; what was edited stays red until it opens.
    stage
        .place
        .patch_as("a-person", &with_windows(&json!([])), &json!({"spec": {"syncWindows": deny(true)}}))
        .await?;
    stage.place.patch_as("kubectl-edit", &map("1"), &json!({"data": {"a": "2"}})).await?;
    stage.until_sync(&app, "OutOfSync").await?;
    stage.refresh(&app).await?;
    let live = stage.place.get(&map("1")).await?.unwrap_or_default();
    ensure!(live["data"]["a"] == "2", "self-heal is automation, too");
    stage.place.patch_as("a-person", &app, &sync).await?;
    stage.place.wait(&map("1"), "is put back by a person's sync", |map| map["data"]["a"] == "1").await?;
    Ok(())
}
