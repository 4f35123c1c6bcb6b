//! What is on disk is a cache, and what is in Git has a history.

use anyhow::Result;
use plumb_testkit::objects;
use serde_json::{Value, json};

use crate::stage::Stage;

/// One `ConfigMap` as a manifest, and as a template of a chart.
fn files(value: &str) -> Vec<(&'static str, String)> {
    let plain = objects::manifests(&[objects::config_map("plain", &[("value", value)])]);
    let template = objects::manifests(&[objects::config_map("rendered", &[("value", value)])]);
    vec![
        ("app/plain.yaml", plain),
        ("chart/Chart.yaml", "apiVersion: v2\nname: chart\nversion: 1.0.0\n".to_owned()),
        ("chart/templates/rendered.yaml", template),
    ]
}

#[tokio::test]
async fn the_cache_directory_may_be_removed_while_plumb_runs() -> Result<()> {
    let stage = Stage::set().await?;
    stage.repo.commit(&files("1"))?;
    let automated = json!({"automated": {}});
    let plain = stage.application("plain", |app| app["spec"]["syncPolicy"] = automated.clone()).await?;
    let chart = stage
        .application("chart", |app| {
            app["spec"]["source"]["path"] = json!("chart");
            app["spec"]["syncPolicy"] = automated.clone();
        })
        .await?;
    for app in [&plain, &chart] {
        stage.until_sync(app, "Synced").await?;
    }
    for value in ["2", "3"] {
        std::fs::remove_dir_all(stage.cache())?;
        stage.repo.commit(&files(value))?;
        for (app, name) in [(&plain, "plain"), (&chart, "rendered")] {
            stage.refresh(app).await?;
            let object = objects::config_map(name, &[]);
            stage.place.wait(&object, "has the new value", |live| live["data"]["value"] == value).await?;
            stage.until_sync(app, "Synced").await?;
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_replaced_history_asks_before_it_prunes() -> Result<()> {
    let stage = Stage::set().await?;
    let object = |name: &str| objects::config_map(name, &[("a", "1")]);
    let names = ["kept", "pushed", "rebased", "replaced"];
    let files: Vec<(String, String)> =
        names.iter().map(|name| (format!("app/{name}.yaml"), objects::manifests(&[object(name)]))).collect();
    stage.repo.commit(&files)?;
    let app = stage
        .application("history", |app| app["spec"]["syncPolicy"] = json!({"automated": {"prune": true}}))
        .await?;
    stage.until_sync(&app, "Synced").await?;
    let first = stage.repo.head()?;

    // A push and a force push are the work of authors.
    stage.repo.remove(&["app/pushed.yaml"])?;
    stage.refresh(&app).await?;
    stage.place.wait_gone(&object("pushed")).await?;
    stage.until_sync(&app, "Synced").await?;
    stage.repo.git(&["reset", "--quiet", "--hard", &first])?;
    stage.repo.remove(&["app/pushed.yaml", "app/rebased.yaml"])?;
    stage.refresh(&app).await?;
    stage.place.wait_gone(&object("rebased")).await?;
    stage.until_sync(&app, "Synced").await?;

    // Another history under the same name.
    stage.repo.git(&["checkout", "--quiet", "--orphan", "other"])?;
    stage.repo.remove(&["app/replaced.yaml"])?;
    stage.repo.git(&["branch", "--move", "--force", "main"])?;
    stage.refresh(&app).await?;
    let asks = |app: &Value| {
        let message = app["status"]["operationState"]["message"].as_str();
        message.is_some_and(|text| {
            text.contains("waiting for pruning confirmation") && text.contains("no ancestor in common")
        })
    };
    stage.place.wait(&app, "asks before it prunes", asks).await?;
    let live = stage.place.get(&object("replaced")).await?.unwrap_or_default();
    assert_eq!(live["metadata"]["name"], "replaced");
    assert_eq!(live["metadata"]["deletionTimestamp"], json!(null));
    stage.plumb(&["app", "confirm-deletion", "history"])?;
    stage.place.wait_gone(&object("replaced")).await?;
    stage.until_sync(&app, "Synced").await?;
    Ok(())
}
