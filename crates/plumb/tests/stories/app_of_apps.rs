//! An app whose objects are apps: made, followed and taken down from the top.

use anyhow::{Context, Result, ensure};
use plumb_testkit::objects;
use serde_json::{Value, json};

use crate::stage::Stage;

const CASCADE: &str = "resources-finalizer.argocd.argoproj.io";

/// A child as people write it: with words that say what is the default anyway.
fn child(stage: &Stage, name: &str, finalizers: &[&str]) -> Value {
    let mut child = objects::application(name, &stage.repo.url(), name, stage.place.name());
    child["metadata"]["namespace"] = json!(stage.place.name());
    if !finalizers.is_empty() {
        child["metadata"]["finalizers"] = json!(finalizers);
    }
    child["spec"]["syncPolicy"] = json!({"automated": {"prune": false, "selfHeal": true}});
    child["spec"]["ignoreDifferences"] =
        json!([{"group": "", "kind": "ConfigMap", "jsonPointers": ["/data/ignored"]}]);
    child
}

fn is_synced(app: &Value) -> bool {
    app["status"]["sync"]["status"] == "Synced" && app["status"]["health"]["status"] == "Healthy"
}

#[tokio::test]
async fn the_root_stays_green_and_takes_down_what_its_children_hold_if_they_say_so() -> Result<()> {
    let stage = Stage::set().await?;
    let (tidy, leaving) = (child(&stage, "tidy", &[CASCADE]), child(&stage, "leaving", &[]));
    let map = |name: &str| objects::config_map(name, &[("a", "1")]);
    stage.repo.commit(&[
        ("app/children.yaml", objects::manifests(&[tidy.clone(), leaving.clone()])),
        ("tidy/map.yaml", objects::manifests(&[map("tidy-map")])),
        ("leaving/map.yaml", objects::manifests(&[map("leaving-map")])),
    ])?;
    let root = stage
        .application("root", |app| {
            app["metadata"]["finalizers"] = json!([CASCADE]);
            app["spec"]["syncPolicy"] = json!({"automated": {"prune": true, "selfHeal": true}});
        })
        .await?;
    for app in [&tidy, &leaving, &root] {
        stage.place.wait(app, "is well", is_synced).await?;
    }
    let live = stage.place.get(&root).await?.context("the root is gone")?;
    assert_eq!(live["status"]["summary"]["isAppOfApps"], true);
    let mut entries: Vec<String> = live["status"]["resources"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|entry| format!("{} {} {}", entry["kind"], entry["name"], entry["status"]).replace('"', ""))
        .collect();
    entries.sort();
    assert_eq!(entries, ["Application leaving Synced", "Application tidy Synced"]);
    // What Git says of the default is neither taken away nor called a difference.
    let live = stage.place.get(&tidy).await?.context("the child is gone")?;
    assert_eq!(live["spec"]["syncPolicy"]["automated"], json!({"prune": false, "selfHeal": true}));

    // Somebody edits a child: it is an object like any other.
    let edit = json!({"spec": {"source": {"path": "elsewhere"}}});
    stage.place.patch_as("kubectl-edit", &tidy, &edit).await?;
    stage.place.wait(&tidy, "is put back", |app| app["spec"]["source"]["path"] == "tidy").await?;
    stage.place.wait(&tidy, "is well again", is_synced).await?;
    stage.place.wait(&root, "is well again", is_synced).await?;

    stage.place.delete(&root).await?;
    for gone in [&root, &tidy, &leaving, &map("tidy-map")] {
        stage.place.wait_gone(gone).await?;
    }
    let left = stage.place.get(&map("leaving-map")).await?;
    ensure!(left.is_some(), "a child without finalizer leaves its objects behind");
    Ok(())
}

/// A parent hears of its children's health at once: nobody writes the children but plumb itself.
#[tokio::test]
async fn a_wave_of_children_waits_for_the_health_of_the_one_before() -> Result<()> {
    let stage = Stage::set().await?;
    let script = "local told = obj.status and obj.status.health\n\
                  return {status = told and told.status or 'Progressing', message = told and told.message or ''}";
    stage.setting("argocd-cm", "resource.customizations.health.argoproj.io_Application", script).await?;
    let wave = |child: Value, wave: &str| objects::annotated(child, "argocd.argoproj.io/sync-wave", wave);
    let first = wave(child(&stage, "first", &[]), "0");
    let second = wave(child(&stage, "second", &[]), "1");
    let held = objects::with(objects::deployment("held", 1), "/spec/paused", json!(true));
    stage.repo.commit(&[
        ("app/children.yaml", objects::manifests(&[first.clone(), second.clone()])),
        ("first/held.yaml", objects::manifests(std::slice::from_ref(&held))),
        ("second/map.yaml", objects::manifests(&[objects::config_map("later", &[])])),
    ])?;
    // Another name than the root of the other story: both plumbs see the whole cluster, and a tracking mark has no
    // namespace of the control plane.
    let root = stage
        .application("root-of-waves", |app| app["spec"]["syncPolicy"] = json!({"automated": {}}))
        .await?;
    let waits = |app: &Value| {
        let message = app["status"]["operationState"]["message"].as_str().unwrap_or_default();
        message.contains("waiting for healthy state of argoproj.io/Application/first: Suspended")
    };
    stage.place.wait(&root, "waits for the first child", waits).await?;
    ensure!(stage.place.get(&second).await?.is_none(), "the second wave waits");
    stage.repo.commit(&[("first/held.yaml", objects::manifests(&[objects::deployment("held", 1)]))])?;
    stage.refresh(&first).await?;
    stage.place.wait(&second, "comes then", is_synced).await?;
    stage.place.wait(&root, "is well", is_synced).await?;
    Ok(())
}
