//! From Argo CD to plumb and back: objects as Argo CD leaves them are taken over without a write that is not needed.

use anyhow::{Result, ensure};
use plumb_testkit::objects;
use serde_json::{Value, json};

use crate::install::kubectl;
use crate::stage::Stage;

/// When Argo CD last reconciled.
const BEFORE: &str = "2026-01-01T00:00:00Z";

/// Applies as Argo CD does: client-side, under its name, with its mark.
fn argo_cd_applies(stage: &Stage, app: &str, manifests: &[Value]) -> Result<String> {
    let namespace = stage.place.name();
    let mut text = String::new();
    for object in manifests {
        let mut object = object.clone();
        let (kind, name) = (&object["kind"], &object["metadata"]["name"]);
        let group = if *kind == "Deployment" { "apps" } else { "" };
        let mark = format!(
            "{app}:{group}/{}:{namespace}/{}",
            kind.as_str().unwrap_or(""),
            name.as_str().unwrap_or("")
        );
        object["metadata"]["namespace"] = json!(namespace);
        object["metadata"]["annotations"]["argocd.argoproj.io/tracking-id"] = json!(mark);
        text = format!("{text}---\n{object}\n");
    }
    kubectl(stage, &["apply", "--field-manager=argocd-controller"], &text)
}

/// The Application with the status that Argo CD wrote.
async fn argo_cd_application(stage: &Stage, name: &str, commit: &str, manifests: &[Value]) -> Result<Value> {
    let resource = |object: &Value| {
        let group = if object["kind"] == "Deployment" { "apps" } else { "" };
        json!({"group": group, "kind": object["kind"], "name": object["metadata"]["name"],
            "namespace": stage.place.name(), "status": "Synced", "version": "v1", "health": {"status": "Healthy"}})
    };
    let resources: Vec<Value> = manifests.iter().map(resource).collect();
    stage
        .application(name, |app| {
            app["spec"]["syncPolicy"] = json!({"automated": {"prune": true, "selfHeal": true}});
            let source = app["spec"]["source"].clone();
            let compared = json!({"source": source, "destination": app["spec"]["destination"]});
            let result = json!({"revision": commit, "source": source, "resources": []});
            app["status"] = json!({
                "health": {"status": "Healthy"},
                "sync": {"status": "Synced", "revision": commit, "comparedTo": compared},
                "reconciledAt": BEFORE,
                "sourceType": "Directory",
                "resources": resources,
                "history": [{"id": 0, "revision": commit, "deployedAt": BEFORE, "deployStartedAt": BEFORE, "source": source}],
                "operationState": {
                    "phase": "Succeeded", "message": "successfully synced (all tasks run)", "startedAt": BEFORE,
                    "finishedAt": BEFORE, "operation": {"sync": {"revision": commit}}, "syncResult": result,
                },
            });
        })
        .await
}

#[tokio::test]
async fn what_argo_cd_left_is_taken_over_without_a_write_and_handed_back() -> Result<()> {
    // The kinds are installed by another plumb of this cluster.
    let _installed = Stage::set().await?;
    let mut stage = Stage::bare().await?;
    let map = |word: &str| objects::config_map("settings", &[("word", word)]);
    let manifests = [map("one"), objects::deployment("web", 1)];
    let commit = stage.repo.commit(&[("app/all.yaml", objects::manifests(&manifests))])?;
    argo_cd_applies(&stage, "shop", &manifests)?;
    stage.place.wait(&manifests[1], "is ready", |live| live["status"]["readyReplicas"] == 1).await?;
    let app = argo_cd_application(&stage, "shop", &commit, &manifests).await?;
    stage.place.apply(&objects::app_project("default")).await?;
    let mut before = Vec::new();
    for object in &manifests {
        before.push(stage.place.get(object).await?.unwrap_or_default());
    }

    // Before anything changes, the check says what will become of the app.
    let said = stage.plumb(&["migrate", "check"])?;
    ensure!(said.contains("Apps: 1 keep their sync status, 0 change it"), "{said}");

    stage.installs = false;
    stage.start_plumb()?;
    let is_taken_over = |live: &Value| {
        live["status"]["controllerNamespace"].is_string() && live["status"]["sync"]["status"] == "Synced"
    };
    let taken = stage.place.wait(&app, "is plumb's", is_taken_over).await?;
    stage.refresh_hard(&app).await?;
    ensure!(taken["status"]["history"][0]["revision"] == commit.as_str(), "the history stays: {taken:#}");
    ensure!(taken["status"]["operationState"]["finishedAt"] == BEFORE, "no sync was needed: {taken:#}");
    for (object, before) in manifests.iter().zip(&before) {
        let live = stage.place.get(object).await?.unwrap_or_default();
        for part in ["metadata", "spec", "data"] {
            ensure!(live[part] == before[part], "plumb wrote to it:\n{live:#}\n{before:#}");
        }
    }

    // plumb works on, then Argo CD takes the app back.
    let mut second = map("two");
    second["data"]["late"] = json!("x");
    stage.repo.commit(&[("app/all.yaml", objects::manifests(&[second, manifests[1].clone()]))])?;
    stage.refresh(&app).await?;
    stage.place.wait(&manifests[0], "is synced", |live| live["data"]["word"] == "two").await?;
    stage.until_sync(&app, "Synced").await?;
    stage.stop_plumb()?;
    let web = stage.place.get(&manifests[1]).await?.unwrap_or_default();
    argo_cd_applies(&stage, "shop", &[map("three"), manifests[1].clone()])?;
    let live = stage.place.get(&manifests[0]).await?.unwrap_or_default();
    // A client-side apply does not know the field that entered Git under plumb; one on the server's side owns it.
    ensure!(live["data"] == json!({"word": "three", "late": "x"}), "{live:#}");
    let mut third = map("three");
    third["metadata"]["namespace"] = json!(stage.place.name());
    let on_server = ["apply", "--server-side", "--field-manager=argocd-controller", "--force-conflicts"];
    kubectl(&stage, &on_server, &third.to_string())?;
    let live = stage.place.get(&manifests[0]).await?.unwrap_or_default();
    ensure!(live["data"] == json!({"word": "three"}), "{live:#}");
    let web_after = stage.place.get(&manifests[1]).await?.unwrap_or_default();
    ensure!(web_after["metadata"]["generation"] == web["metadata"]["generation"], "{web_after:#}");
    let left = stage.place.get(&app).await?.unwrap_or_default();
    ensure!(
        left["metadata"]["finalizers"].is_null() && left["operation"].is_null(),
        "nothing stays behind: {left:#}"
    );
    Ok(())
}
