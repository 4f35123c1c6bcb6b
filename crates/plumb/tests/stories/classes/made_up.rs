//! A chart that makes up keys: of a map, and of an item in a list with keys.

use anyhow::Result;
use plumb_testkit::objects;
use serde_json::{Value, json};

use crate::stage::Stage;

const TEMPLATES: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: runs}\n\
    data: {level: {{ .Values.level | quote }}, run-{{ randAlphaNum 8 | lower }}: go}\n\
    ---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  replicas: 1\n  \
    selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n    spec:\n      \
    containers:\n      - name: web\n        image: registry.example/web:{{ .Values.level }}\n        \
    env: [{name: RUN_{{ randAlphaNum 8 | upper }}, value: go}]\n";

/// What the chart made up, as the cluster has it.
async fn made_up(stage: &Stage) -> Result<(Vec<String>, Vec<Value>)> {
    let map = stage.place.get(&objects::config_map("runs", &[])).await?.unwrap_or_default();
    let keys = map["data"].as_object().into_iter().flatten().map(|(key, _)| key.clone());
    let web = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}});
    let web = stage.place.get(&web).await?.unwrap_or_default();
    let env = web["spec"]["template"]["spec"]["containers"][0]["env"].as_array().cloned();
    Ok((keys.filter(|key| key.starts_with("run-")).collect(), env.unwrap_or_default()))
}

#[tokio::test]
async fn keys_that_a_chart_makes_up_stay_until_they_are_gone() -> Result<()> {
    let mut stage = Stage::set().await?;
    stage.repo.commit(&[
        ("chart/Chart.yaml", "apiVersion: v2\nname: runs\nversion: 1.0.0\n"),
        ("chart/templates/all.yaml", TEMPLATES),
        ("chart/values.yaml", "level: 1\n"),
    ])?;
    let of_chart = |app: &mut Value| {
        app["spec"]["source"]["path"] = json!("chart");
        app["spec"]["syncPolicy"] = json!({"automated": {"selfHeal": true}});
    };
    let app = stage.application("runs", of_chart).await?;
    stage.until_sync(&app, "Synced").await?;
    let first = made_up(&stage).await?;
    assert_eq!((first.0.len(), first.1.len()), (1, 1));

    for _ in 0..2 {
        stage.refresh_hard(&app).await?;
        for (kind, name) in [("ConfigMap", "runs"), ("Deployment", "web")] {
            let finding = stage.finding(&app, kind, name, "UnstableRender").await?;
            assert_eq!(finding["counts"], false, "{finding:#}");
        }
        let status = stage.until_sync(&app, "Synced").await?["status"].clone();
        assert_eq!(status["history"].as_array().map(Vec::len), Some(1), "{:#}", status["history"]);
        assert_eq!(made_up(&stage).await?, first);
    }

    // What the next commit changes comes, and what was made up stays.
    stage.repo.commit(&[("chart/values.yaml", "level: 2\n")])?;
    stage.refresh(&app).await?;
    let map = objects::config_map("runs", &[]);
    stage.place.wait(&map, "has the new level", |map| map["data"]["level"] == "2").await?;
    stage.until_sync(&app, "Synced").await?;
    assert_eq!(made_up(&stage).await?, first);
    stage.kill_plumb()?;
    stage.start_plumb()?;
    stage.refresh_hard(&app).await?;
    stage.until_sync(&app, "Synced").await?;
    assert_eq!(made_up(&stage).await?, first);

    // One that somebody takes away comes back, whatever it is called this time.
    let key = first.0[0].as_str();
    stage.place.patch_as("kubectl-edit", &map, &json!({"data": {key: null}})).await?;
    let has_one = |map: &Value| {
        let keys = map["data"].as_object().into_iter().flatten();
        keys.filter(|(key, _)| key.starts_with("run-")).count() == 1
    };
    stage.place.wait(&map, "has a made-up key again", has_one).await?;
    stage.until_sync(&app, "Synced").await?;
    Ok(())
}
