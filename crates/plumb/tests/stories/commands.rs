//! What people do about a sync at the command line: look at its plan, stop it, hold it, go back, bring back.

use anyhow::{Result, ensure};
use plumb_testkit::objects;
use serde_json::{Value, json};

use crate::stage::Stage;

fn phase(app: &Value) -> &str {
    app["status"]["operationState"]["phase"].as_str().unwrap_or_default()
}

const IMAGE: &str = "/spec/template/spec/containers/0/image";

#[tokio::test]
async fn what_was_pruned_is_brought_back() -> Result<()> {
    let stage = Stage::set().await?;
    let gone = objects::labelled(objects::config_map("gone", &[("key", "value")]), "team", "payments");
    let keep = objects::config_map("keep", &[]);
    stage.repo.commit(&[
        ("app/keep.yaml", objects::manifests(std::slice::from_ref(&keep))),
        ("app/gone.yaml", objects::manifests(std::slice::from_ref(&gone))),
    ])?;
    let app = stage
        .application("undo", |app| app["spec"]["syncPolicy"] = json!({"automated": {"prune": true}}))
        .await?;
    stage.until_sync(&app, "Synced").await?;
    stage.repo.remove(&["app/gone.yaml"])?;
    stage.refresh(&app).await?;
    stage.place.wait_gone(&gone).await?;
    // It shall stay when it is back.
    let manual = json!({"spec": {"syncPolicy": {"automated": null}}});
    stage.place.patch_as("a-person", &app, &manual).await?;

    let list = stage.plumb(&["undo", "list", "undo"])?;
    ensure!(list.contains("removed from Git") && list.contains("gone"), "{list}");
    let id =
        list.lines().nth(1).and_then(|line| line.split_whitespace().next()).unwrap_or_default().to_owned();
    let shown = stage.plumb(&["undo", "show", &id])?;
    ensure!(shown.contains("key: value"), "{shown}");
    let said = stage.plumb(&["undo", "restore", &id])?;
    ensure!(said.contains("restored"), "{said}");
    let back = stage.place.wait(&gone, "is back", |_| true).await?;
    assert_eq!(back["data"]["key"], "value");
    assert_eq!(back["metadata"]["labels"]["team"], "payments");
    Ok(())
}

#[tokio::test]
async fn what_cannot_come_back_as_it_was_is_said() -> Result<()> {
    let stage = Stage::set().await?;
    let name = |base: &str| format!("{base}-{}", stage.place.name());
    let volume = json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name("volume")},
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "",
            "persistentVolumeReclaimPolicy": "Retain", "hostPath": {"path": "/nowhere"}},
    });
    stage.place.apply(&volume).await?;
    let claim = objects::with(objects::volume_claim("data", "1Gi"), "/spec/storageClassName", json!(""));
    let claim = objects::with(claim, "/spec/volumeName", volume["metadata"]["name"].clone());
    let (front, once) = (objects::service("front", 80), objects::job("once"));
    let all = [claim.clone(), front.clone(), once.clone()];
    let keep = objects::manifests(&[objects::config_map("keep", &[])]);
    stage.repo.commit(&[("app/keep.yaml", keep), ("app/all.yaml", objects::manifests(&all))])?;
    let app = stage.application("lossy", |_| {}).await?;
    stage.until_sync(&app, "OutOfSync").await?;
    stage.plumb(&["app", "sync", "lossy", "--timeout", "60"])?;
    let bound = |claim: &Value| claim["status"]["phase"] == "Bound";
    stage.place.wait(&claim, "is bound", bound).await?;
    let first = stage.place.wait(&once, "has ended", |job| job["status"]["succeeded"] == 1).await?;
    let address = stage.place.get(&front).await?.unwrap_or_default()["spec"]["clusterIP"].clone();

    stage.repo.remove(&["app/all.yaml"])?;
    stage.refresh(&app).await?;
    stage.plumb(&["app", "sync", "lossy", "--prune", "--timeout", "60"])?;
    for object in &all {
        stage.place.wait_gone(object).await?;
    }
    // Meanwhile the volume goes, and somebody takes the address.
    stage.place.delete(&volume).await?;
    stage.place.wait_gone(&volume).await?;
    let taker = objects::with(objects::service("taker", 80), "/spec/clusterIP", address.clone());
    stage.place.apply(&taker).await?;

    let mut said = String::new();
    for id in stage.plumb(&["undo", "list", "lossy", "-o", "name"])?.lines() {
        said += &stage.plumb_says(&["undo", "restore", id])?;
    }
    for words in [
        "PersistentVolumeClaim",
        "restored without its volume, which no longer exists",
        "its data only if the volume was kept",
        "front restored without its IP addresses, which are in use",
        "the Job comes back as a new one and runs again",
        "will prune it again",
    ] {
        ensure!(said.contains(words), "{words} is missing in\n{said}");
    }
    let again = stage.place.wait(&once, "has run again", |job| job["status"]["succeeded"] == 1).await?;
    assert_ne!(again["metadata"]["uid"], first["metadata"]["uid"]);
    // It does: the app still tracks them, and Git does not ask for them.
    stage.plumb(&["app", "sync", "lossy", "--prune", "--timeout", "60"])?;
    for object in &all {
        stage.place.wait_gone(object).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_pause_holds_self_heal_is_told_and_ends_by_itself() -> Result<()> {
    let stage = Stage::set().await?;
    let web = objects::deployment("web", 1);
    stage.repo.commit(&[("app/web.yaml", objects::manifests(std::slice::from_ref(&web)))])?;
    let app = stage
        .application("held", |app| app["spec"]["syncPolicy"] = json!({"automated": {"selfHeal": true}}))
        .await?;
    stage.until_sync(&app, "Synced").await?;
    stage.plumb(&["pause", "held", "--for", "1h", "--reason", "trying a fix"])?;
    stage.place.scale_as("kubectl-scale", &web, 3).await?;
    stage.until_sync(&app, "OutOfSync").await?;
    let report =
        json!({"apiVersion": "plumb.dev/v1alpha1", "kind": "DriftReport", "metadata": {"name": "held"}});
    let is_told = |report: &Value| report["pauses"][0]["reason"] == "trying a fix";
    stage.place.wait(&report, "tells the pause", is_told).await?;
    let events = stage.place.list("v1", "Event", "").await?;
    ensure!(events.values().any(|event| event["reason"] == "Paused"), "no event tells the pause");
    let live = stage.place.get(&web).await?.unwrap_or_default();
    assert_eq!(live["spec"]["replicas"], 3, "a person holds it");

    // Shortened: the pause ends by itself, and the edit is taken back with nobody's help.
    stage.plumb(&["pause", "held", "--for", "3s", "--reason", "almost done"])?;
    stage.place.wait(&web, "is back at one replica", |live| live["spec"]["replicas"] == 1).await?;

    // One object in place of the app.
    stage.plumb(&["pause", "held", "apps/Deployment/web", "--for", "1h", "--reason", "this one"])?;
    stage.place.scale_as("kubectl-scale", &web, 2).await?;
    stage.until_sync(&app, "OutOfSync").await?;
    let live = stage.place.get(&web).await?.unwrap_or_default();
    assert_eq!(live["spec"]["replicas"], 2, "a person holds it");
    stage.plumb(&["resume", "held", "apps/Deployment/web"])?;
    stage.place.wait(&web, "is back at one replica", |live| live["spec"]["replicas"] == 1).await?;
    Ok(())
}

#[tokio::test]
async fn what_came_to_git_during_a_pause_arrives_after_it() -> Result<()> {
    let stage = Stage::set().await?;
    let web = |image: &str| objects::with(objects::deployment("web", 1), IMAGE, json!(image));
    let beside = |text: &str| objects::config_map("beside", &[("text", text)]);
    let commit = |image: &str, text: &str| {
        stage.repo.commit(&[("app/all.yaml", objects::manifests(&[web(image), beside(text)]))])
    };
    commit("registry.example/web:1", "old")?;
    // Without self-heal: this is about Git's newest state, not about edits.
    let app = stage.application("late", |app| app["spec"]["syncPolicy"] = json!({"automated": {}})).await?;
    stage.until_sync(&app, "Synced").await?;

    stage.plumb(&["pause", "late", "apps/Deployment/web", "--for", "1h", "--reason", "release freeze"])?;
    let revision = commit("registry.example/web:2", "new")?;
    stage.refresh(&app).await?;
    stage.place.wait(&beside(""), "is the new one", |live| live["data"]["text"] == "new").await?;
    let has_ended = |app: &Value| {
        let last = &app["status"]["operationState"];
        last["phase"] == "Succeeded" && last["syncResult"]["revision"] == revision.as_str()
    };
    stage.place.wait(&app, "was synced but for what is held", has_ended).await?;
    let live = stage.place.get(&web("")).await?.unwrap_or_default();
    assert_eq!(live.pointer(IMAGE), Some(&json!("registry.example/web:1")), "a person holds it");

    stage.plumb(&["resume", "late", "apps/Deployment/web"])?;
    let is_new = |live: &Value| live.pointer(IMAGE) == Some(&json!("registry.example/web:2"));
    stage.place.wait(&web(""), "is the new one", is_new).await?;
    stage.until_sync(&app, "Synced").await?;
    Ok(())
}

#[tokio::test]
async fn what_left_git_during_a_pause_goes_after_it() -> Result<()> {
    let stage = Stage::set().await?;
    let (held, stays) = (objects::config_map("held", &[("a", "1")]), objects::config_map("stays", &[]));
    stage.repo.commit(&[
        ("app/held.yaml", objects::manifests(std::slice::from_ref(&held))),
        ("app/stays.yaml", objects::manifests(std::slice::from_ref(&stays))),
    ])?;
    let app = stage
        .application("late", |app| app["spec"]["syncPolicy"] = json!({"automated": {"prune": true}}))
        .await?;
    stage.until_sync(&app, "Synced").await?;
    stage.plumb(&["pause", "late", "ConfigMap/held", "--for", "1h", "--reason", "still needed"])?;
    let revision = stage.repo.remove(&["app/held.yaml"])?;
    stage.refresh(&app).await?;
    let was_left = |app: &Value| {
        let last = &app["status"]["operationState"];
        let results = last["syncResult"]["resources"].as_array().into_iter().flatten();
        let mut results = results.filter(|result| result["name"] == "held");
        phase(app) == "Succeeded"
            && last["syncResult"]["revision"] == revision.as_str()
            && results.any(|result| result["status"] == "PruneSkipped")
    };
    stage.place.wait(&app, "was synced but for what is held", was_left).await?;
    // What somebody makes under the app's mark is an edit, and there is no self-heal.
    let mark = format!("late:/ConfigMap:{}/made", stage.place.name());
    let made = objects::config_map("made", &[]);
    stage.place.apply(&objects::annotated(made.clone(), "argocd.argoproj.io/tracking-id", &mark)).await?;
    let is_seen = |app: &Value| {
        let mut all = app["status"]["resources"].as_array().into_iter().flatten();
        all.any(|object| object["name"] == "made" && object["requiresPruning"] == true)
    };
    stage.place.wait(&app, "sees what was made", is_seen).await?;
    ensure!(stage.place.get(&held).await?.is_some(), "a person holds it");

    stage.plumb(&["resume", "late", "ConfigMap/held"])?;
    stage.place.wait_gone(&held).await?;
    let list = stage.plumb(&["undo", "list", "late"])?;
    ensure!(list.contains("held"), "it can be brought back: {list}");
    stage.refresh(&app).await?;
    ensure!(stage.place.get(&made).await?.is_some(), "nobody asked for self-heal");
    Ok(())
}

#[tokio::test]
async fn what_is_held_while_a_sync_is_under_way_is_left_out() -> Result<()> {
    let stage = Stage::set().await?;
    let wave = |object, wave: &str| objects::annotated(object, "argocd.argoproj.io/sync-wave", wave);
    let conf = |text: &str| wave(objects::config_map("conf", &[("text", text)]), "1");
    let beside = |text: &str| wave(objects::config_map("beside", &[("text", text)]), "1");
    let hook = |object: Value| objects::annotated(object, "argocd.argoproj.io/hook", "PreSync");
    let commit = |job: Value, text: &str| {
        stage.repo.commit(&[("app/all.yaml", objects::manifests(&[hook(job), conf(text), beside(text)]))])
    };
    commit(objects::job("migrate"), "old")?;
    let app = stage.application("taken", |app| app["spec"]["syncPolicy"] = json!({"automated": {}})).await?;
    stage.until_sync(&app, "Synced").await?;

    let endless = objects::troubled(objects::job("migrate"), objects::Trouble::Hold);
    let revision = commit(endless, "new")?;
    stage.refresh(&app).await?;
    let pods = stage
        .place
        .wait_list("v1", "Pod", "job-name=migrate", "has the hook's pod", |pods| {
            pods.values().any(|pod| pod["metadata"]["labels"][objects::Trouble::Hold.label()] == "true")
        })
        .await?;
    // The plan was made long ago.
    stage.plumb(&["pause", "taken", "ConfigMap/conf", "--for", "1h", "--reason", "not this one"])?;
    for pod in pods.values() {
        let label = objects::Trouble::Hold.label();
        stage.place.patch_as("a-person", pod, &json!({"metadata": {"labels": {label: null}}})).await?;
    }
    let has_ended = |app: &Value| {
        phase(app) == "Succeeded"
            && app["status"]["operationState"]["syncResult"]["revision"] == revision.as_str()
    };
    stage.place.wait(&app, "was synced but for what is held", has_ended).await?;
    stage.place.wait(&beside(""), "is the new one", |live| live["data"]["text"] == "new").await?;
    let live = stage.place.get(&conf("")).await?.unwrap_or_default();
    assert_eq!(live["data"]["text"], "old", "a person holds it");
    stage.plumb(&["resume", "taken", "ConfigMap/conf"])?;
    stage.place.wait(&conf(""), "is the new one", |live| live["data"]["text"] == "new").await?;
    Ok(())
}

#[tokio::test]
async fn a_pause_of_a_child_survives_the_self_heal_of_its_parent() -> Result<()> {
    let stage = Stage::set().await?;
    let heals = json!({"automated": {"selfHeal": true, "prune": true}});
    let mut child = objects::application("child", &stage.repo.url(), "child", stage.place.name());
    child["metadata"]["namespace"] = json!(stage.place.name());
    child["spec"]["syncPolicy"] = heals.clone();
    let conf = objects::config_map("conf", &[("a", "1")]);
    stage.repo.commit(&[
        ("app/child.yaml", objects::manifests(std::slice::from_ref(&child))),
        ("child/conf.yaml", objects::manifests(std::slice::from_ref(&conf))),
    ])?;
    let parent = stage.application("parent", |app| app["spec"]["syncPolicy"] = heals).await?;
    stage.place.wait(&conf, "was made by the child", |_| true).await?;
    stage.until_sync(&parent, "Synced").await?;

    stage.plumb(&["pause", "child", "--for", "1h", "--reason", "trying a fix"])?;
    stage.place.patch_as("a-person", &conf, &json!({"data": {"a": "2"}})).await?;
    stage.until_sync(&child, "OutOfSync").await?;
    // What a person changes in the child meanwhile, the parent sees and leaves alone, and it says why.
    let changed = json!({"spec": {"syncPolicy": {"automated": {"prune": false}}}});
    stage.place.patch_as("a-person", &child, &changed).await?;
    stage.until_sync(&parent, "OutOfSync").await?;
    let report =
        json!({"apiVersion": "plumb.dev/v1alpha1", "kind": "DriftReport", "metadata": {"name": "parent"}});
    let is_told = |report: &Value| report["pauses"][0]["reason"] == "trying a fix";
    stage.place.wait(&report, "tells the pause", is_told).await?;
    stage.refresh(&parent).await?;
    stage.refresh(&child).await?;
    let held = stage.place.get(&child).await?.unwrap_or_default();
    ensure!(held["metadata"]["annotations"].to_string().contains("trying a fix"), "{held}");
    assert_eq!(held["spec"]["syncPolicy"]["automated"]["prune"], false, "a person holds it");
    let live = stage.place.get(&conf).await?.unwrap_or_default();
    assert_eq!(live["data"]["a"], "2", "a person holds it");

    stage.plumb(&["resume", "child"])?;
    stage.place.wait(&conf, "is put back", |live| live["data"]["a"] == "1").await?;
    let is_back = |app: &Value| app["spec"]["syncPolicy"]["automated"]["prune"] == true;
    stage.place.wait(&child, "is healed by its parent", is_back).await?;
    Ok(())
}

#[tokio::test]
async fn a_dry_run_tells_the_plan_and_a_rollback_goes_back() -> Result<()> {
    let mut stage = Stage::set().await?;
    let config = |value: &str| objects::config_map("config", &[("version", value)]);
    let last = objects::annotated(objects::config_map("last", &[]), "argocd.argoproj.io/sync-wave", "3");
    let hook = objects::annotated(objects::job("migrate"), "argocd.argoproj.io/hook", "PreSync");
    stage.repo.commit(&[("app/all.yaml", objects::manifests(&[config("1"), last.clone(), hook.clone()]))])?;
    let app = stage.application("back", |_| {}).await?;
    stage.until_sync(&app, "OutOfSync").await?;
    let plan = stage.plumb(&["app", "sync", "back", "--dry-run", "--timeout", "60"])?;
    for word in ["PreSync", "run hook", "WAITS FOR", "ConfigMap", "last"] {
        ensure!(plan.contains(word), "{word} is missing in\n{plan}");
    }
    let wave =
        plan.lines().find(|line| line.starts_with("Sync ") && line.contains("last")).unwrap_or_default();
    ensure!(wave.split_whitespace().nth(1) == Some("3"), "{wave}");
    ensure!(stage.place.get(&config("1")).await?.is_none(), "a dry run changes nothing");
    let tried = stage.place.get(&app).await?.unwrap_or_default();
    assert_eq!(tried["status"]["history"], json!(null), "and is no entry of the history");

    stage.plumb(&["app", "sync", "back", "--timeout", "60"])?;
    stage.repo.commit(&[("app/all.yaml", objects::manifests(&[config("2"), last, hook]))])?;
    stage.refresh(&app).await?;
    stage.plumb(&["app", "sync", "back", "--timeout", "60"])?;
    stage.place.wait(&config("2"), "is the second", |live| live["data"]["version"] == "2").await?;
    stage.plumb(&["app", "rollback", "back", "--timeout", "60"])?;
    stage.place.wait(&config("1"), "is the first", |live| live["data"]["version"] == "1").await?;

    // Asked for while nobody is there to begin: the state of the last operation goes with the same write.
    stage.kill_plumb()?;
    stage.plumb(&["app", "sync", "back", "--async"])?;
    let asked = stage.place.get(&app).await?.unwrap_or_default();
    ensure!(asked["operation"].is_object() && asked["status"]["operationState"].is_null(), "{asked}");
    Ok(())
}

#[tokio::test]
async fn an_operation_is_ended_by_a_person() -> Result<()> {
    let stage = Stage::set().await?;
    let hook = objects::annotated(
        objects::troubled(objects::job("endless"), objects::Trouble::Hold),
        "argocd.argoproj.io/hook",
        "PreSync",
    );
    let after = objects::config_map("after", &[]);
    stage.repo.commit(&[("app/all.yaml", objects::manifests(&[hook.clone(), after.clone()]))])?;
    let app = stage.application("ended", |_| {}).await?;
    stage.until_sync(&app, "OutOfSync").await?;
    stage.plumb(&["app", "sync", "ended", "--async"])?;
    stage.place.wait(&hook, "runs", |_| true).await?;
    stage.place.wait(&app, "runs", |app| phase(app) == "Running").await?;
    stage.plumb(&["app", "terminate-op", "ended"])?;
    let ended = stage.place.wait(&app, "has ended", |app| phase(app) == "Failed").await?;
    assert_eq!(ended["operation"], json!(null));
    ensure!(
        ended["status"]["operationState"]["message"].as_str().is_some_and(|text| text.contains("terminated")),
        "{ended}"
    );
    stage.place.wait_gone(&hook).await?;
    ensure!(stage.place.get(&after).await?.is_none(), "nothing is applied after the end");
    Ok(())
}

#[tokio::test]
async fn a_new_commit_supersedes_a_sync_that_is_stuck() -> Result<()> {
    let stage = Stage::set().await?;
    let wave = |object, wave: &str| objects::annotated(object, "argocd.argoproj.io/sync-wave", wave);
    let broken = objects::deployment("web", 1);
    let broken = objects::with(
        broken,
        &format!(
            "/spec/template/metadata/labels/{}",
            objects::Trouble::ImagePullBackOff.label().replace('/', "~1")
        ),
        json!("true"),
    );
    let after = wave(objects::config_map("after", &[]), "1");
    stage.repo.commit(&[("app/all.yaml", objects::manifests(&[broken, after.clone()]))])?;
    let app = stage.application("stuck", |app| app["spec"]["syncPolicy"] = json!({"automated": {}})).await?;
    let names_the_pod = |app: &Value| {
        let message = app["status"]["operationState"]["message"].as_str().unwrap_or_default();
        message.contains("web") && message.contains("ImagePullBackOff")
    };
    stage.place.wait(&app, "says what it waits for", names_the_pod).await?;
    ensure!(stage.place.get(&after).await?.is_none(), "the next wave waits");
    let fixed = stage
        .repo
        .commit(&[("app/all.yaml", objects::manifests(&[objects::deployment("web", 1), after]))])?;
    stage.refresh(&app).await?;
    let is_new = |app: &Value| {
        phase(app) == "Succeeded" && app["status"]["operationState"]["syncResult"]["revision"] == json!(fixed)
    };
    stage.place.wait(&app, "has synced the newer commit", is_new).await?;
    Ok(())
}

#[tokio::test]
async fn a_kind_and_its_objects_come_in_one_sync() -> Result<()> {
    let stage = Stage::set().await?;
    let group = format!("{}.example.com", stage.place.name());
    let kind = objects::crd(
        &group,
        "Widget",
        &json!({"type": "object", "properties": {"size": {"type": "integer"}}}),
    );
    let widget = objects::custom(&group, "Widget", "one", &json!({"size": 1}));
    stage.repo.commit(&[("app/all.yaml", objects::manifests(&[widget.clone(), kind.clone()]))])?;
    let app =
        stage.application("widgets", |app| app["spec"]["syncPolicy"] = json!({"automated": {}})).await?;
    let synced = stage.until_sync(&app, "Synced").await;
    let live = stage.place.get(&widget).await;
    // Kinds are the whole cluster's: gone before anything is judged.
    stage.place.delete(&kind).await?;
    let synced = synced?;
    assert_eq!(phase(&synced), "Succeeded");
    assert_eq!(
        synced["status"]["operationState"]["retryCount"].as_i64().unwrap_or(0),
        0,
        "in one go: {synced}"
    );
    assert_eq!(live?.unwrap_or_default()["spec"]["size"], 1);
    Ok(())
}
