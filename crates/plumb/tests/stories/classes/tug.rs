//! Healed, and written again, and healed.

use anyhow::Result;
use plumb_testkit::objects;
use serde_json::{Value, json};

use super::report::expect;
use crate::safety::has_condition;
use crate::stage::Stage;

#[tokio::test]
async fn a_field_that_comes_back_each_time_is_a_tug_of_war_and_one_that_was_healed_once_is_not() -> Result<()>
{
    let stage = Stage::set().await?;
    let rounds = 2;
    stage.setting("argocd-cm", "plumb.tug-of-war.rounds", &rounds.to_string()).await?;
    let (fought, healed) =
        (objects::config_map("fought", &[("a", "1")]), objects::config_map("healed", &[("a", "1")]));
    stage.repo.commit(&[("app/all.yaml", objects::manifests(&[fought.clone(), healed.clone()]))])?;
    let app = stage
        .application("tug", |app| app["spec"]["syncPolicy"] = json!({"automated": {"selfHeal": true}}))
        .await?;
    expect(&stage, &app, "Synced", &[]).await?;

    let edit = json!({"data": {"a": "2"}});
    let is_back = |live: &Value| live["data"]["a"] == "1";
    stage.place.patch_as("kubectl-edit", &healed, &edit).await?;
    for _ in 0..rounds {
        stage.place.patch_as("night-writer", &fought, &edit).await?;
        stage.place.wait(&fought, "is healed", is_back).await?;
    }
    stage.place.wait(&healed, "is healed", is_back).await?;
    stage.place.patch_as("night-writer", &fought, &edit).await?;
    expect(&stage, &app, "OutOfSync", &["ConfigMap/fought TugOfWar! /data/a"]).await?;
    let finding = stage.finding(&app, "ConfigMap", "fought", "TugOfWar").await?;
    assert_eq!(finding["actor"], "night-writer");
    let shown = stage.place.get(&app).await?.unwrap_or_default();
    anyhow::ensure!(shown["status"]["conditions"].to_string().contains("night-writer"), "{shown}");
    let live = stage.place.get(&fought).await?.unwrap_or_default();
    assert_eq!(live["data"]["a"], "2", "healing has stopped");

    // A user who syncs gets Git's value.
    stage.plumb(&["app", "sync", "tug", "--timeout", "60"])?;
    stage.place.wait(&fought, "is as Git has it", is_back).await?;
    // The sync ends the fight, so it takes as many rounds again.
    for _ in 0..rounds {
        stage.place.patch_as("night-writer", &fought, &edit).await?;
        stage.place.wait(&fought, "is healed", is_back).await?;
    }
    stage.place.patch_as("night-writer", &fought, &edit).await?;
    expect(&stage, &app, "OutOfSync", &["ConfigMap/fought TugOfWar! /data/a"]).await?;

    // Git says what the other one writes: the fight is over.
    let agreed = objects::with(fought, "/data/a", json!("2"));
    stage.repo.commit(&[("app/all.yaml", objects::manifests(&[agreed, healed]))])?;
    stage.refresh(&app).await?;
    expect(&stage, &app, "Synced", &[]).await?;
    assert!(!has_condition(&stage.place.get(&app).await?.unwrap_or_default(), "SyncError"));
    Ok(())
}
