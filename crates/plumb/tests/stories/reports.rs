//! When reports are written, and what happens without their kind.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use plumb_testkit::{PrivateCluster, objects, wait};
use serde_json::{Value, json};

use crate::stage::Stage;

fn report(name: &str) -> Value {
    json!({"apiVersion": "plumb.dev/v1alpha1", "kind": "DriftReport", "metadata": {"name": name}})
}

/// Each write changes the generation by one.
async fn n_writes(stage: &Stage, name: &str) -> Result<u64> {
    let report = stage.place.get(&report(name)).await?.unwrap_or_default();
    Ok(report["metadata"]["generation"].as_u64().unwrap_or_default())
}

#[tokio::test]
async fn a_busy_writer_of_what_counts_for_nothing_costs_few_reports() -> Result<()> {
    const EDITS: u64 = 60;
    let stage = Stage::set().await?;
    let map = objects::config_map("map", &[("a", "1")]);
    stage.repo.commit(&[("app/map.yaml", objects::manifests(std::slice::from_ref(&map)))])?;
    let app = stage.application("busy", |app| app["spec"]["syncPolicy"] = json!({"automated": {}})).await?;
    stage.until_sync(&app, "Synced").await?;
    let counter = |n: u64| json!({"metadata": {"annotations": {"example.com/counter": n.to_string()}}});
    stage.place.patch_as("a-counter", &map, &counter(0)).await?;
    stage
        .place
        .wait(&report("busy"), "tells of the annotation", |report| report.to_string().contains("counter"))
        .await?;
    let (before, began) = (n_writes(&stage, "busy").await?, Instant::now());
    for n in 1..=EDITS {
        stage.place.patch_as("a-counter", &map, &counter(n)).await?;
    }
    let last = format!("\"{EDITS}\"");
    let live = stage.place.wait(&map, "has the last value", |map| map.to_string().contains(&last)).await?;
    let written = n_writes(&stage, "busy").await? - before;
    let may_be = 2 + began.elapsed().as_secs() / 10;
    assert!(written <= may_be, "{EDITS} edits in {:?} became {written} reports", began.elapsed());
    // What counts is written at once, and takes the rest along.
    stage.place.patch_as("a-person", &map, &json!({"data": {"a": "edited"}})).await?;
    let edited = stage.finding(&app, "ConfigMap", "map", "LiveEdit").await?;
    assert_eq!(edited["counts"], true, "{live}");
    Ok(())
}

#[tokio::test]
async fn without_the_kind_of_reports_there_is_one_warning_and_reports_come_with_the_kind() -> Result<()> {
    let cluster = tokio::task::spawn_blocking(PrivateCluster::start).await.context("a thread ended")??;
    let mut stage = Stage::bare_in(cluster.shared()).await?;
    stage.begin().await?;
    let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "driftreports.plumb.dev"}});
    let mut definition = stage.place.get(&crd).await?.context("the definition is installed")?;
    stage.place.delete(&crd).await?;
    stage.place.wait_gone(&crd).await?;
    let map = objects::config_map("map", &[("a", "1")]);
    stage.repo.commit(&[("app/map.yaml", objects::manifests(std::slice::from_ref(&map)))])?;
    let app = stage.application("blind", |_| {}).await?;
    stage.until_sync(&app, "OutOfSync").await?;
    for _ in 0..5 {
        stage.refresh(&app).await?;
    }
    let log = async || stage.log().unwrap_or_default();
    let warned = |log: &String| log.contains("does not serve the kind DriftReport");
    let log = wait::until_seen(Duration::from_secs(30), "the log says so", log, warned).await?;
    let about = log.lines().filter(|line| line.contains("DriftReport") && line.contains("WARN")).count();
    assert_eq!(about, 1, "{log}");
    let metadata = definition["metadata"].as_object_mut().context("it has metadata")?;
    metadata.retain(|key, _| key == "name");
    stage
        .place
        .apply(&json!({"apiVersion": definition["apiVersion"], "kind": definition["kind"],
        "metadata": definition["metadata"], "spec": definition["spec"]}))
        .await?;
    stage.place.wait(&report("blind"), "is written", |report| report["findings"].is_array()).await?;
    Ok(())
}
