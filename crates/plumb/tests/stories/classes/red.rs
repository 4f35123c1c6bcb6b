//! What is red, by exactly its fields, and green again when its cause is gone.

use anyhow::Result;
use plumb_testkit::objects;
use serde_json::{Value, json};

use super::report::{expect, serve_knobs};
use crate::stage::Stage;

fn commit(stage: &Stage, objects: &[&Value]) -> Result<()> {
    let all: Vec<Value> = objects.iter().map(|&object| object.clone()).collect();
    stage.repo.commit(&[("app/all.yaml", objects::manifests(&all))])?;
    Ok(())
}

#[tokio::test]
async fn what_was_not_synced_yet_is_red_until_a_sync() -> Result<()> {
    let stage = Stage::set().await?;
    let place = stage.place.name();
    // Somebody installed it, and nobody marked it.
    let installed = objects::config_map("installed", &[("a", "0")]);
    stage.place.apply_as("a-bootstrap", &installed).await?;
    // As `kubectl apply` leaves it, with a key that Git no longer has.
    let old = objects::config_map("old", &[]);
    stage.place.apply_as("a-bootstrap", &old).await?;
    let last_applied = objects::config_map("old", &[("a", "1"), ("b", "2")]).to_string();
    let marks = json!({"kubectl.kubernetes.io/last-applied-configuration": last_applied,
        "argocd.argoproj.io/tracking-id": format!("late:/ConfigMap:{place}/old")});
    let as_applied = json!({"data": {"a": "1", "b": "2"}, "metadata": {"annotations": marks}});
    stage.place.patch_as("kubectl-client-side-apply", &old, &as_applied).await?;
    let missing = objects::config_map("missing", &[("a", "1")]);
    let in_git = [
        &objects::with(installed, "/data/a", json!("1")),
        &objects::with(old, "/data/a", json!("1")),
        &missing,
    ];
    commit(&stage, &in_git)?;
    let app = stage.application("late", |_| {}).await?;
    let red = [
        "ConfigMap/installed Unadopted! /data/a",
        "ConfigMap/old StaleOwnership! /data/b",
        "ConfigMap/missing Behind!",
    ];
    expect(&stage, &app, "OutOfSync", &red).await?;

    stage.plumb(&["app", "sync", "late"])?;
    expect(&stage, &app, "Synced", &[]).await?;

    // Git moves on; a person changes another object.
    let moved = objects::with(missing.clone(), "/data/a", json!("2"));
    commit(&stage, &[in_git[0], in_git[1], &moved])?;
    stage.place.patch_as("kubectl-edit", in_git[0], &json!({"data": {"a": "9"}})).await?;
    stage.refresh(&app).await?;
    let red = ["ConfigMap/missing Behind! /data/a", "ConfigMap/installed LiveEdit! /data/a"];
    expect(&stage, &app, "OutOfSync", &red).await?;
    stage.place.patch_as("kubectl-edit", in_git[0], &json!({"data": {"a": "1"}})).await?;
    expect(&stage, &app, "OutOfSync", &red[..1]).await?;
    stage.plumb(&["app", "sync", "late"])?;
    expect(&stage, &app, "Synced", &[]).await
}

#[tokio::test]
async fn what_left_git_and_what_cannot_be_written_is_red_until_git_is_right() -> Result<()> {
    let stage = Stage::set().await?;
    let group = serve_knobs(&stage).await?;
    let env = |entries: Value| {
        objects::with(objects::deployment("web", 1), "/spec/template/spec/containers/0/env", entries)
    };
    let good = env(json!([{"name": "A", "value": "1"}]));
    let knob = objects::custom(&group, "Knob", "typo", &json!({"mode": "fast", "level": "info"}));
    let dropped = objects::config_map("dropped", &[("a", "1")]);
    let fine = objects::config_map("fine", &[("a", "1")]);
    let before = [&good, &knob, &dropped, &fine];
    commit(&stage, &before)?;
    let lenient = |app: &mut Value| {
        app["spec"]["syncPolicy"] =
            json!({"automated": {}, "retry": {"limit": 0}, "syncOptions": ["Validate=false"]});
    };
    let app = stage.application("wrong", lenient).await?;
    expect(&stage, &app, "Synced", &[]).await?;

    let twice = env(json!([{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]));
    let typo = objects::with(knob.clone(), "/spec/mod", json!("fast"));
    commit(&stage, &[&twice, &typo, &fine])?;
    stage.refresh(&app).await?;
    let red = [
        "Deployment/web Blocked! /spec/template/spec/containers/0/env",
        "Knob/typo RejectedField! /spec/mod",
        "ConfigMap/dropped Orphan!",
    ];
    expect(&stage, &app, "OutOfSync", &red).await?;
    let hint = stage.finding(&app, "Knob", "typo", "RejectedField").await?;
    anyhow::ensure!(hint["fix"].to_string().contains("mode"), "the nearest known name is offered: {hint}");
    let shown = stage.place.get(&app).await?.unwrap_or_default();
    let resources = shown["status"]["resources"].as_array().into_iter().flatten();
    let to_prune: Vec<&Value> = resources.filter(|one| one["requiresPruning"] == true).collect();
    assert_eq!(to_prune.iter().map(|one| &one["name"]).collect::<Vec<_>>(), ["dropped"]);

    commit(&stage, &before)?;
    stage.refresh(&app).await?;
    expect(&stage, &app, "Synced", &[]).await
}

#[tokio::test]
async fn what_nobody_can_explain_is_red_and_a_wiped_record_alone_is_not() -> Result<()> {
    let stage = Stage::set().await?;
    let wiped = objects::config_map("wiped", &[("level", "info"), ("mode", "slow")]);
    let strict = objects::annotated(
        objects::config_map("strict", &[("a", "1")]),
        "argocd.argoproj.io/compare-options",
        "Strict=true",
    );
    commit(&stage, &[&wiped, &strict])?;
    let app = stage.application("ghost", |app| app["spec"]["syncPolicy"] = json!({"automated": {}})).await?;
    expect(&stage, &app, "Synced", &[]).await?;

    let nobody = json!({"metadata": {"managedFields": [{}]}});
    stage.place.patch_as("ghost", &wiped, &nobody).await?;
    stage.place.patch_as("somebody", &strict, &json!({"data": {"extra": "2"}})).await?;
    expect(&stage, &app, "OutOfSync", &["ConfigMap/strict UnclaimedAddition! /data/extra"]).await?;
    let edited = json!({"metadata": {"managedFields": [{}]}, "data": {"level": "debug"}});
    stage.place.patch_as("ghost", &wiped, &edited).await?;
    stage.place.patch_as("somebody", &strict, &json!({"data": {"extra": null}})).await?;
    expect(&stage, &app, "OutOfSync", &["ConfigMap/wiped Unexplained! /data/level"]).await
}
