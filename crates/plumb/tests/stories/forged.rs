//! Writers that claim to be somebody else: field managers, tracking marks and annotations that any client can write.

use anyhow::Result;
use plumb_testkit::objects;
use serde_json::{Value, json};

use crate::stage::Stage;

fn automated(app: &mut Value) {
    app["spec"]["syncPolicy"] = json!({"automated": {"prune": true}});
}

fn self_healing(app: &mut Value) {
    app["spec"]["syncPolicy"] = json!({"automated": {"prune": true, "selfHeal": true}});
}

fn image(live: &Value) -> &str {
    live["spec"]["template"]["spec"]["containers"][0]["image"].as_str().unwrap_or_default()
}

fn with_image(image: &str) -> Value {
    objects::with(objects::deployment("web", 1), "/spec/template/spec/containers/0/image", json!(image))
}

#[tokio::test]
async fn an_image_under_the_name_of_the_control_plane_counts_and_goes_with_the_next_sync() -> Result<()> {
    let stage = Stage::set().await?;
    let rules = |verb: &str| {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "reader"},
            "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": [verb]}],
        })
    };
    let web = with_image("good:1");
    stage.repo.commit(&[("app/web.yaml", objects::manifests(&[web.clone(), rules("get")]))])?;
    let app = stage.application("forged", automated).await?;
    stage.until_sync(&app, "Synced").await?;

    let container = |image: &str| {
        json!({"spec": {"template": {"spec": {"containers": [
            {"name": web["spec"]["template"]["spec"]["containers"][0]["name"], "image": image}]}}}})
    };
    stage.place.patch_as("kube-controller-manager", &web, &container("evil:1")).await?;
    let forged = json!({"rules": rules("*")["rules"]});
    stage.place.patch_as("clusterrole-aggregation-controller", &rules("get"), &forged).await?;
    stage.until_sync(&app, "OutOfSync").await?;
    let finding = stage.finding(&app, "Deployment", "web", "LiveEdit").await?;
    assert_eq!(finding["counts"], json!(true), "{finding:#}");
    stage.finding(&app, "Role", "reader", "LiveEdit").await?;

    // The next commit is rolled out, over the forged value.
    stage.repo.commit(&[("app/web.yaml", objects::manifests(&[with_image("good:2"), rules("get")]))])?;
    stage.refresh(&app).await?;
    stage.place.wait(&web, "has Git's image", |live| image(live) == "good:2").await?;
    stage.place.wait(&rules("get"), "has Git's rules", |live| live["rules"] == rules("get")["rules"]).await?;
    stage.until_sync(&app, "Synced").await?;
    Ok(())
}

#[tokio::test]
async fn self_heal_restores_what_a_forged_name_changed() -> Result<()> {
    let stage = Stage::set().await?;
    let config = objects::config_map("conf", &[("level", "info")]);
    stage.repo.commit(&[("app/conf.yaml", objects::manifests(std::slice::from_ref(&config)))])?;
    let app = stage.application("healing", self_healing).await?;
    stage.until_sync(&app, "Synced").await?;
    for manager in ["kube-controller-manager", "team-operator", "argocd-controller"] {
        stage.place.patch_as(manager, &config, &json!({"data": {"level": manager}})).await?;
        stage.place.wait(&config, "is healed", |live| live["data"]["level"] == "info").await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_tracking_mark_that_another_client_wrote_deletes_nothing() -> Result<()> {
    let stage = Stage::set().await?;
    let keep = objects::config_map("keep", &[("a", "1")]);
    let leaves = objects::config_map("leaves", &[("a", "1")]);
    stage.repo.commit(&[
        ("app/keep.yaml", objects::manifests(std::slice::from_ref(&keep))),
        ("app/leaves.yaml", objects::manifests(std::slice::from_ref(&leaves))),
    ])?;
    let app = stage.application("marked", automated).await?;
    stage.until_sync(&app, "Synced").await?;

    let mark = |name: &str| format!("marked:/ConfigMap:{}/{name}", stage.place.name());
    let foreign = objects::config_map("foreign", &[("owner", "another team")]);
    let disguised = objects::config_map("disguised", &[("owner", "another team")]);
    stage.place.apply(&foreign).await?;
    stage.place.apply(&disguised).await?;
    let marked =
        |name: &str| json!({"metadata": {"annotations": {"argocd.argoproj.io/tracking-id": mark(name)}}});
    stage.place.patch_as("kubectl-annotate", &foreign, &marked("foreign")).await?;
    stage.place.patch_as("argocd-controller", &disguised, &marked("disguised")).await?;
    let names = |app: &Value| -> Vec<(String, bool)> {
        let listed = app["status"]["resources"].as_array().into_iter().flatten();
        let of = |entry: &Value| {
            let asks = entry["requiresDeletionConfirmation"] == json!(true);
            (entry["name"].as_str().unwrap_or_default().to_owned(), asks)
        };
        listed.map(of).collect()
    };
    let both = |app: &Value| {
        let found = names(app);
        ["foreign", "disguised"].iter().all(|name| found.contains(&((*name).to_owned(), true)))
    };
    stage.place.wait(&app, "lists both, to be confirmed", both).await?;

    // What left Git is pruned in the same sync in which the others wait.
    stage.repo.remove(&["app/leaves.yaml"])?;
    stage.refresh(&app).await?;
    stage.place.wait_gone(&leaves).await?;
    for object in [&foreign, &disguised] {
        let live = stage.place.get(object).await?.unwrap_or_default();
        assert_eq!(live["data"]["owner"], "another team", "{live:#}");
        assert_eq!(live["metadata"]["deletionTimestamp"], json!(null), "{live:#}");
    }

    // The deletion of the app takes its own objects along, and no others.
    let finalizer = json!({"metadata": {"finalizers": ["resources-finalizer.argocd.argoproj.io"]}});
    stage.place.patch_as("a-person", &app, &finalizer).await?;
    stage.place.delete(&app).await?;
    stage.place.wait_gone(&keep).await?;
    stage.place.wait_gone(&app).await?;
    for object in [&foreign, &disguised] {
        let live = stage.place.get(object).await?.unwrap_or_default();
        assert_eq!(live["metadata"]["deletionTimestamp"], json!(null), "{live:#}");
        assert_eq!(live["data"]["owner"], "another team", "{live:#}");
    }
    Ok(())
}

#[tokio::test]
async fn annotations_of_another_client_hide_and_hold_nothing() -> Result<()> {
    let stage = Stage::set().await?;
    let keep = objects::config_map("keep", &[("a", "1")]);
    let names = ["hook", "extraneous", "owned"];
    let leaving: Vec<Value> = names.iter().map(|name| objects::config_map(name, &[("a", "1")])).collect();
    stage.repo.commit(&[
        ("app/keep.yaml", objects::manifests(std::slice::from_ref(&keep))),
        ("app/leaving.yaml", objects::manifests(&leaving)),
    ])?;
    let app = stage.application("annotated", |_| {}).await?;
    stage.plumb(&["app", "sync", "annotated"])?;
    stage.until_sync(&app, "Synced").await?;

    let owner = stage.place.get(&keep).await?.unwrap_or_default();
    let reference =
        json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "keep", "uid": owner["metadata"]["uid"]}]);
    let patches = [
        json!({"metadata": {"annotations": {"argocd.argoproj.io/hook": "PostSync"}}}),
        json!({"metadata": {"annotations": {"argocd.argoproj.io/compare-options": "IgnoreExtraneous"}}}),
        json!({"metadata": {"ownerReferences": reference}}),
    ];
    for (object, patch) in leaving.iter().zip(&patches) {
        stage.place.patch_as("kubectl-annotate", object, patch).await?;
    }
    stage.repo.remove(&["app/leaving.yaml"])?;
    stage.refresh(&app).await?;
    for name in names {
        let orphan = stage.finding(&app, "ConfigMap", name, "Orphan").await?;
        assert_eq!(orphan["counts"], json!(true), "{orphan:#}");
    }
    stage.until_sync(&app, "OutOfSync").await?;
    Ok(())
}

#[tokio::test]
async fn an_apply_under_plumbs_own_name_hides_nothing() -> Result<()> {
    let stage = Stage::set().await?;
    let keep = objects::config_map("keep", &[("a", "1"), ("b", "2")]);
    let leaving = objects::config_map("leaving", &[("a", "1")]);
    stage.repo.commit(&[
        ("app/keep.yaml", objects::manifests(std::slice::from_ref(&keep))),
        ("app/leaving.yaml", objects::manifests(std::slice::from_ref(&leaving))),
    ])?;
    let app = stage.application("renamed", |_| {}).await?;
    stage.plumb(&["app", "sync", "renamed"])?;
    stage.until_sync(&app, "Synced").await?;

    // All that plumb applied, and an option that hides the object once it is gone from Git.
    let live = stage.place.get(&leaving).await?.unwrap_or_default();
    let mut forged = leaving.clone();
    forged["metadata"]["annotations"] = live["metadata"]["annotations"].clone();
    forged["metadata"]["annotations"]["argocd.argoproj.io/compare-options"] = json!("IgnoreExtraneous");
    stage.place.apply_as("argocd-controller", &forged).await?;
    stage.repo.remove(&["app/leaving.yaml"])?;
    stage.refresh(&app).await?;
    let orphan = stage.finding(&app, "ConfigMap", "leaving", "Orphan").await?;
    assert_eq!(orphan["counts"], json!(true), "{orphan:#}");
    stage.until_sync(&app, "OutOfSync").await?;

    // A removed field whose name is put back into `managedFields`.
    let live = stage.place.get(&keep).await?.unwrap_or_default();
    let managed = live["metadata"]["managedFields"].clone();
    stage.place.patch_as("kubectl-edit", &keep, &json!({"data": {"b": null}})).await?;
    stage.place.patch_as("kubectl-edit", &keep, &json!({"metadata": {"managedFields": managed}})).await?;
    let removed = stage.finding(&app, "ConfigMap", "keep", "LiveEdit").await?;
    assert_eq!((&removed["counts"], &removed["fields"]), (&json!(true), &json!(["/data/b"])), "{removed:#}");
    Ok(())
}

#[tokio::test]
async fn a_pause_on_an_object_is_believed_only_from_the_application() -> Result<()> {
    let stage = Stage::set().await?;
    let config = objects::config_map("conf", &[("level", "info")]);
    stage.repo.commit(&[("app/conf.yaml", objects::manifests(std::slice::from_ref(&config)))])?;
    let app = stage.application("paused", self_healing).await?;
    stage.until_sync(&app, "Synced").await?;
    let edit =
        json!({"metadata": {"annotations": {"plumb.dev/pause": "leave me alone"}}, "data": {"level": "off"}});
    stage.place.patch_as("kubectl-edit", &config, &edit).await?;
    stage.place.wait(&config, "is healed", |live| live["data"]["level"] == "info").await?;

    stage.plumb(&["pause", "paused", "ConfigMap/conf", "--for", "1h", "--reason", "trying a fix"])?;
    let report =
        json!({"apiVersion": "plumb.dev/v1alpha1", "kind": "DriftReport", "metadata": {"name": "paused"}});
    let tells = |report: &Value| report["pauses"][0]["reason"] == "trying a fix";
    stage.place.wait(&report, "tells of the pause", tells).await?;
    stage.place.patch_as("kubectl-edit", &config, &json!({"data": {"level": "debug"}})).await?;
    stage.until_sync(&app, "OutOfSync").await?;
    let live = stage.place.get(&config).await?.unwrap_or_default();
    assert_eq!(live["data"]["level"], "debug", "it is paused");
    stage.plumb(&["resume", "paused", "ConfigMap/conf"])?;
    stage.place.wait(&config, "is healed", |live| live["data"]["level"] == "info").await?;
    Ok(())
}

#[tokio::test]
async fn an_approval_in_the_future_approves_nothing() -> Result<()> {
    let stage = Stage::set().await?;
    let guarded = objects::annotated(
        objects::config_map("guarded", &[("a", "1")]),
        "argocd.argoproj.io/sync-options",
        "Prune=confirm",
    );
    let plain = objects::config_map("plain", &[("a", "1")]);
    stage.repo.commit(&[
        ("app/guarded.yaml", objects::manifests(std::slice::from_ref(&guarded))),
        ("app/plain.yaml", objects::manifests(std::slice::from_ref(&plain))),
        ("app/keep.yaml", objects::manifests(&[objects::config_map("keep", &[("a", "1")])])),
    ])?;
    let app = stage.application("approved", automated).await?;
    stage.until_sync(&app, "Synced").await?;
    let approval =
        |at: &str| json!({"metadata": {"annotations": {"argocd.argoproj.io/deletion-approved": at}}});
    stage.place.patch_as("a-person", &app, &approval("2099-01-01T00:00:00Z")).await?;
    stage.repo.remove(&["app/guarded.yaml", "app/plain.yaml"])?;
    stage.refresh(&app).await?;
    stage.place.wait_gone(&plain).await?;
    let live = stage.place.get(&guarded).await?.unwrap_or_default();
    assert_eq!(live["metadata"]["deletionTimestamp"], json!(null), "{live:#}");
    let waits = |app: &Value| {
        app["status"]["operationState"]["message"].as_str().is_some_and(|text| text.contains("confirmation"))
    };
    stage.place.wait(&app, "waits for a confirmation", waits).await?;
    stage.plumb(&["app", "confirm-deletion", "approved"])?;
    stage.place.wait_gone(&guarded).await?;
    Ok(())
}
