//! Syncs: what Git asks comes, stays, goes.

use std::sync::Mutex;

use anyhow::Result;
use plumb_testkit::objects;
use serde_json::{Value, json};

use crate::stage::Stage;

#[tokio::test]
async fn what_git_asks_is_applied_and_a_live_edit_is_put_back() -> Result<()> {
    let stage = Stage::set().await?;
    let web = objects::deployment("web", 1);
    stage
        .repo
        .commit(&[("app/web.yaml", objects::manifests(&[web.clone(), objects::service("web", 80)]))])?;
    let app = stage
        .application("web", |app| app["spec"]["syncPolicy"] = json!({"automated": {"selfHeal": true}}))
        .await?;
    let synced = stage.until_sync(&app, "Synced").await?;
    assert_eq!(synced["status"]["operationState"]["phase"], "Succeeded");
    assert_eq!(synced["status"]["history"].as_array().map(Vec::len), Some(1), "one full sync, one entry");
    assert_eq!(synced["operation"], json!(null), "the lock is free again");
    let time = |pointer: &str| synced.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    assert!(
        time("/status/reconciledAt") >= time("/status/operationState/finishedAt"),
        "scripts wait until somebody looked after the end"
    );
    assert_eq!(synced["status"]["resources"][0]["health"]["status"], "Healthy");

    stage.place.scale_as("kubectl-scale", &web, 5).await?;
    stage.place.wait(&web, "is back at one replica", |live| live["spec"]["replicas"] == 1).await?;
    let healed = stage.until_sync(&app, "Synced").await?;
    assert_eq!(healed["status"]["history"].as_array().map(Vec::len), Some(1), "a heal is not the whole app");
    Ok(())
}

#[tokio::test]
async fn waves_and_hooks_run_in_order_once() -> Result<()> {
    let stage = Stage::set().await?;
    let wave = |object, wave: &str| objects::annotated(object, "argocd.argoproj.io/sync-wave", wave);
    let hook = objects::annotated(objects::job("migrate"), "argocd.argoproj.io/hook", "PreSync");
    let first = wave(objects::deployment("first", 1), "0");
    let second = wave(objects::config_map("second", &[("a", "b")]), "1");
    stage
        .repo
        .commit(&[("app/all.yaml", objects::manifests(&[second.clone(), hook.clone(), first.clone()]))])?;
    let app = stage.application("waves", |app| app["spec"]["syncPolicy"] = json!({"automated": {}})).await?;
    // The lock and the state of the operation change together, whoever looks when.
    let torn = Mutex::new(Vec::new());
    let is_synced = |live: &Value| {
        let phase = live["status"]["operationState"]["phase"].as_str().unwrap_or_default().to_owned();
        if live["operation"].is_null() == (phase == "Running")
            && let Ok(mut torn) = torn.lock()
        {
            torn.push(phase);
        }
        live["status"]["sync"]["status"] == "Synced"
    };
    let synced = stage.place.wait(&app, "is Synced", is_synced).await?;
    assert_eq!(synced["status"]["operationState"]["phase"], "Succeeded");
    assert_eq!(torn.into_inner()?, Vec::<String>::new());
    let resources = synced["status"]["resources"].as_array().cloned().unwrap_or_default();
    let shown = resources.iter().find(|resource| resource["name"] == "migrate").cloned().unwrap_or_default();
    assert_eq!((&shown["hook"], &shown["requiresPruning"]), (&json!(true), &json!(true)), "{shown}");
    assert_eq!(shown["status"], json!(null), "a hook is compared with nothing");

    let hook = stage.place.wait(&hook, "has finished", |job| job["status"]["succeeded"] == 1).await?;
    let first = stage.place.wait(&first, "exists", |_| true).await?;
    let second = stage.place.wait(&second, "exists", |_| true).await?;
    let created =
        |object: &serde_json::Value| object["metadata"]["creationTimestamp"].as_str().map(str::to_owned);
    assert!(created(&hook) <= created(&first) && created(&first) <= created(&second));
    Ok(())
}

#[tokio::test]
async fn what_leaves_git_is_pruned_into_a_tombstone() -> Result<()> {
    let stage = Stage::set().await?;
    let (keep, drop) =
        (objects::config_map("keep", &[("a", "1")]), objects::config_map("drop", &[("b", "2")]));
    stage.repo.commit(&[
        ("app/keep.yaml", objects::manifests(std::slice::from_ref(&keep))),
        ("app/drop.yaml", objects::manifests(std::slice::from_ref(&drop))),
    ])?;
    let app = stage
        .application("prune", |app| app["spec"]["syncPolicy"] = json!({"automated": {"prune": true}}))
        .await?;
    stage.until_sync(&app, "Synced").await?;
    stage.place.wait(&drop, "exists", |_| true).await?;

    stage.repo.remove(&["app/drop.yaml"])?;
    stage.refresh(&app).await?;
    stage.place.wait_gone(&drop).await?;
    assert!(stage.place.get(&keep).await?.is_some());
    let tombstones = stage.place.list("v1", "Secret", "plumb.dev/app=prune").await?;
    assert_eq!(tombstones.len(), 1, "the deleted object can be brought back");
    Ok(())
}

#[tokio::test]
async fn a_dry_run_is_no_sync_and_an_empty_commit_is_another_try() -> Result<()> {
    let stage = Stage::set().await?;
    let inside = format!("{}-later", stage.place.name());
    let map = objects::config_map("here", &[("a", "1")]);
    let mut other = objects::config_map("there", &[("a", "1")]);
    other["metadata"]["namespace"] = json!(inside);
    stage.repo.commit(&[("app/all.yaml", objects::manifests(&[map.clone(), other]))])?;
    let app = stage.application("tried", |_| {}).await?;
    stage.until_sync(&app, "OutOfSync").await?;
    let dry_run = json!({"operation": {"initiatedBy": {"username": "somebody"}, "sync": {"dryRun": true}}});
    stage.place.patch_as("somebody", &app, &dry_run).await?;
    let is_tried = |app: &Value| app["operation"].is_null() && !app["status"]["operationState"].is_null();
    stage.place.wait(&app, "was tried out", is_tried).await?;
    assert!(stage.place.get(&map).await?.is_none());

    let automated = json!({"spec": {"syncPolicy": {"automated": {}, "retry": {"limit": 0}}}});
    stage.place.patch_as("somebody", &app, &automated).await?;
    // The other namespace is not there.
    let failed = |app: &Value| {
        let last = &app["status"]["operationState"];
        last["phase"] == "Failed" && last["operation"]["initiatedBy"]["automated"] == true
    };
    stage.place.wait(&app, "is synced, and fails", failed).await?;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": inside}});
    stage.place.apply(&namespace).await?;
    stage.repo.commit(&[("elsewhere.md", "nothing of this app")])?;
    stage.refresh(&app).await?;
    stage.until_sync(&app, "Synced").await?;
    stage.place.delete(&namespace).await?;
    Ok(())
}

/// What the server stores of `false` is nothing, and the record keeps the field's name. A commit of `true` is no field that
/// the server drops.
#[tokio::test]
async fn a_switch_that_git_turns_on_is_turned_on() -> Result<()> {
    let stage = Stage::set().await?;
    let web = |on: bool| {
        let web = objects::deployment("web", 1);
        objects::manifests(&[objects::with(web, "/spec/template/spec/hostNetwork", json!(on))])
    };
    stage.repo.commit(&[("app/web.yaml", web(false))])?;
    let app = stage.application("switch", |app| app["spec"]["syncPolicy"] = json!({"automated": {}})).await?;
    stage.until_sync(&app, "Synced").await?;
    stage.repo.commit(&[("app/web.yaml", web(true))])?;
    stage.refresh(&app).await?;
    let is_on = |live: &Value| live["spec"]["template"]["spec"]["hostNetwork"] == true;
    stage.place.wait(&objects::deployment("web", 1), "is turned on", is_on).await?;
    stage.until_sync(&app, "Synced").await?;
    Ok(())
}

#[tokio::test]
async fn a_hook_without_a_name_of_its_own_runs_anew_in_each_sync_and_the_history_has_its_limit() -> Result<()>
{
    let stage = Stage::set().await?;
    let mut hook = objects::annotated(objects::job("migrate"), "argocd.argoproj.io/hook", "PreSync");
    hook["metadata"]["name"] = Value::Null;
    hook["metadata"]["generateName"] = json!("migrate-");
    let map = |value: &str| objects::config_map("map", &[("a", value)]);
    let all = |value: &str| objects::manifests(&[hook.clone(), map(value)]);
    stage.repo.commit(&[("app/all.yaml", all("0"))])?;
    let app = stage
        .application("named", |app| {
            app["spec"]["syncPolicy"] = json!({"automated": {}});
            app["spec"]["revisionHistoryLimit"] = json!(2);
        })
        .await?;
    stage.until_sync(&app, "Synced").await?;
    for value in ["1", "2"] {
        stage.repo.commit(&[("app/all.yaml", all(value))])?;
        stage.refresh(&app).await?;
        stage.place.wait(&map(value), "is synced", |map| map["data"]["a"] == value).await?;
        stage.until_sync(&app, "Synced").await?;
    }
    let jobs = stage.place.list("batch/v1", "Job", "").await?;
    let names: Vec<&String> = jobs.keys().collect();
    assert_eq!(names.len(), 3, "one for each sync: {names:?}");
    assert!(names.iter().all(|name| name.contains("-presync-")), "{names:?}");
    let live = stage.place.get(&app).await?.unwrap_or_default();
    let ids: Vec<u64> = live["status"]["history"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|entry| entry["id"].as_u64())
        .collect();
    assert_eq!(ids, [1, 2], "the last two, with their own numbers");
    assert_eq!(live["status"]["sync"]["status"], "Synced", "earlier runs of a hook are no drift");
    Ok(())
}

#[tokio::test]
async fn a_namespace_that_a_sync_made_keeps_its_marks_and_comes_back() -> Result<()> {
    let stage = Stage::set().await?;
    let name = format!("{}-made", stage.place.name());
    let namespace = objects::namespace(&name);
    let map = objects::in_namespace(objects::config_map("map", &[("a", "1")]), &name);
    stage
        .repo
        .commit(&[("app/map.yaml", objects::manifests(&[objects::config_map("map", &[("a", "1")])]))])?;
    let app = stage
        .application("made", |app| {
            app["spec"]["destination"]["namespace"] = json!(name);
            app["spec"]["syncPolicy"] = json!({
                "automated": {"selfHeal": true}, "syncOptions": ["CreateNamespace=true"],
                "managedNamespaceMetadata": {"labels": {"team": "blue"}},
            });
        })
        .await?;
    let is_of = |team: &'static str| move |live: &Value| live["metadata"]["labels"]["team"] == team;
    let first = stage.place.wait(&namespace, "has its label", is_of("blue")).await?;
    stage.until_sync(&app, "Synced").await?;
    let red = json!({"spec": {"syncPolicy": {"managedNamespaceMetadata": {"labels": {"team": "red"}}}}});
    stage.place.patch_as("a-person", &app, &red).await?;
    stage.place.wait(&namespace, "has its new label", is_of("red")).await?;

    // Nobody tracks it, and it is missed all the same. Its deletion takes as long as its controller likes.
    stage.place.delete(&namespace).await?;
    let is_new = |live: &Value| live["metadata"]["uid"] != first["metadata"]["uid"] && is_of("red")(live);
    let limit = std::time::Duration::from_mins(3);
    stage.place.wait_within(limit, &namespace, "is back", is_new).await?;
    stage.place.wait(&map, "is back in it", |_| true).await?;
    stage.until_sync(&app, "Synced").await?;
    stage.place.delete(&app).await?;
    stage.place.delete(&namespace).await?;
    Ok(())
}

#[tokio::test]
async fn the_automation_stops_when_it_is_switched_off_and_goes_on_when_it_is_switched_on() -> Result<()> {
    let stage = Stage::set().await?;
    let map = |value: &str| objects::config_map("map", &[("a", value)]);
    stage.repo.commit(&[("app/map.yaml", objects::manifests(&[map("1")]))])?;
    let automated = |enabled: bool| json!({"automated": {"enabled": enabled, "selfHeal": true}});
    let app = stage.application("switched", |app| app["spec"]["syncPolicy"] = automated(true)).await?;
    stage.until_sync(&app, "Synced").await?;
    let switch = |enabled: bool| json!({"spec": {"syncPolicy": automated(enabled)}});
    stage.place.patch_as("a-person", &app, &switch(false)).await?;
    stage.repo.commit(&[("app/map.yaml", objects::manifests(&[map("2")]))])?;
    stage.refresh(&app).await?;
    stage.until_sync(&app, "OutOfSync").await?;
    stage.place.patch_as("kubectl-edit", &map("1"), &json!({"data": {"a": "3"}})).await?;
    stage.refresh(&app).await?;
    let live = stage.place.get(&map("1")).await?.unwrap_or_default();
    assert_eq!(live["data"]["a"], "3", "neither a commit nor an edit is synced");
    stage.place.patch_as("a-person", &app, &switch(true)).await?;
    stage.place.wait(&map("2"), "is as Git says", |map| map["data"]["a"] == "2").await?;
    stage.until_sync(&app, "Synced").await?;
    Ok(())
}

/// A commit may bring a new version of a kind and objects of it.
#[tokio::test]
async fn a_new_version_of_a_kind_and_its_objects_come_in_one_sync() -> Result<()> {
    let stage = Stage::set().await?;
    let group = format!("{}.plumb.dev", stage.place.name());
    let schema = json!({"type": "object", "properties": {"size": {"type": "integer"}}});
    let old = objects::crd(&group, "Gear", &schema);
    let object = |version: &str, size: u8| {
        let mut gear = objects::custom(&group, "Gear", "big", &json!({"size": size}));
        gear["apiVersion"] = json!(format!("{group}/{version}"));
        gear
    };
    stage.repo.commit(&[("app/all.yaml", objects::manifests(&[object("v1", 1), old.clone()]))])?;
    let app =
        stage.application("versions", |app| app["spec"]["syncPolicy"] = json!({"automated": {}})).await?;
    stage.until_sync(&app, "Synced").await?;
    let mut new = old.clone();
    let mut second = old["spec"]["versions"][0].clone();
    second["name"] = json!("v2");
    new["spec"]["versions"][0]["storage"] = json!(false);
    if let Some(versions) = new["spec"]["versions"].as_array_mut() {
        versions.push(second);
    }
    stage.repo.commit(&[("app/all.yaml", objects::manifests(&[object("v2", 2), new]))])?;
    stage.refresh(&app).await?;
    stage.place.wait(&object("v1", 2), "has the new size", |gear| gear["spec"]["size"] == 2).await?;
    stage.until_sync(&app, "Synced").await?;
    stage.place.delete(&old).await?;
    Ok(())
}
