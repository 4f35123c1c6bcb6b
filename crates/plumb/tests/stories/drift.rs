//! Differences: noise stays green, an edit beside it turns red, and each is explained.

use std::time::Duration;

use anyhow::Result;
use plumb_testkit::{objects, wait};
use serde_json::{Value, json};

use crate::stage::Stage;

#[tokio::test]
async fn defaults_are_green_and_an_edit_beside_them_is_red() -> Result<()> {
    let stage = Stage::set().await?;
    let web = objects::deployment("web", 1);
    stage.repo.commit(&[("app/web.yaml", objects::manifests(std::slice::from_ref(&web)))])?;
    let app = stage.application("edit", |app| app["spec"]["syncPolicy"] = json!({"automated": {}})).await?;
    stage.until_sync(&app, "Synced").await?;
    let defaults = stage.finding(&app, "Deployment", "web", "SchemaDefault").await?;
    assert_eq!(defaults["counts"], false);

    let patch = json!({"spec": {"replicas": 3}});
    stage.place.patch_as("kubectl-edit", &web, &patch).await?;
    stage.until_sync(&app, "OutOfSync").await?;
    let edit = stage.finding(&app, "Deployment", "web", "LiveEdit").await?;
    assert_eq!((&edit["counts"], &edit["actor"]), (&json!(true), &json!("kubectl-edit")));
    assert_eq!(edit["fields"], json!(["/spec/replicas"]), "exactly the edited field");
    let live = stage.place.get(&web).await?.unwrap_or_default();
    assert_eq!(live["spec"]["replicas"], 3, "without self-heal the edit stays");
    Ok(())
}

#[tokio::test]
async fn an_addition_counts_only_under_strict() -> Result<()> {
    let stage = Stage::set().await?;
    let config = objects::config_map("conf", &[("a", "1")]);
    stage.repo.commit(&[("app/conf.yaml", objects::manifests(std::slice::from_ref(&config)))])?;
    let app =
        stage.application("addition", |app| app["spec"]["syncPolicy"] = json!({"automated": {}})).await?;
    stage.until_sync(&app, "Synced").await?;
    stage.place.patch_as("somebody", &config, &json!({"data": {"extra": "2"}})).await?;
    let addition = stage.finding(&app, "ConfigMap", "conf", "UnclaimedAddition").await?;
    assert_eq!(addition["counts"], false);
    assert_eq!(stage.place.get(&app).await?.unwrap_or_default()["status"]["sync"]["status"], "Synced");

    let strict = json!({"metadata": {"annotations": {"argocd.argoproj.io/compare-options": "Strict=true"}}});
    stage.place.patch_as("a-person", &app, &strict).await?;
    stage.until_sync(&app, "OutOfSync").await?;
    Ok(())
}

#[tokio::test]
async fn a_secret_never_shows_its_value() -> Result<()> {
    let stage = Stage::set().await?;
    let secret = objects::secret("db", &[("password", "canary-in-git")]);
    stage.repo.commit(&[("app/secret.yaml", objects::manifests(std::slice::from_ref(&secret)))])?;
    let app = stage.application("secret", |app| app["spec"]["syncPolicy"] = json!({"automated": {}})).await?;
    stage.until_sync(&app, "Synced").await?;
    stage
        .place
        .patch_as("kubectl-edit", &secret, &json!({"stringData": {"password": "canary-edited"}}))
        .await?;
    let app = stage.until_sync(&app, "OutOfSync").await?;
    let finding = stage.finding(&app, "Secret", "db", "LiveEdit").await?;
    for said in [&app, &finding] {
        let said = said.to_string();
        // The words themselves and their base64.
        for canary in ["canary", "Y2FuYXJ5"] {
            assert!(!said.contains(canary), "{said}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn two_apps_with_one_object_are_told_of_each_other() -> Result<()> {
    let stage = Stage::set().await?;
    stage.repo.commit(&[(
        "app/shared.yaml",
        objects::manifests(&[objects::config_map("shared", &[("a", "1")])]),
    )])?;
    let automated = |app: &mut Value| app["spec"]["syncPolicy"] = json!({"automated": {}});
    let owner = stage.application("owner", automated).await?;
    stage.until_sync(&owner, "Synced").await?;
    let other = stage.application("other", automated).await?;
    stage.until_sync(&other, "OutOfSync").await?;
    let finding = stage.finding(&other, "ConfigMap", "shared", "SharedResource").await?;
    assert!(finding.to_string().contains("owner"), "{finding}");
    stage.until_sync(&owner, "Synced").await?;
    Ok(())
}

#[tokio::test]
async fn whoever_removes_a_field_is_named() -> Result<()> {
    let stage = Stage::set().await?;
    let config = objects::config_map("conf", &[("kept", "1"), ("removed", "2")]);
    stage.repo.commit(&[("app/conf.yaml", objects::manifests(std::slice::from_ref(&config)))])?;
    let app =
        stage.application("removal", |app| app["spec"]["syncPolicy"] = json!({"automated": {}})).await?;
    stage.until_sync(&app, "Synced").await?;
    // The API server takes up a registration some time after it was written, which no watch tells.
    let mut tries = 0;
    let witnessed = async || {
        tries += 1;
        let label = json!({"metadata": {"labels": {"tries": tries.to_string()}}});
        let patched = stage.place.patch_as("a-person", &config, &label).await;
        patched.is_ok_and(|live| live["metadata"]["annotations"]["plumb.dev/last-writer"].is_string())
    };
    wait::until_seen(Duration::from_mins(1), "writes are witnessed", witnessed, |seen| *seen).await?;

    stage.place.patch_as("key-remover", &config, &json!({"data": {"removed": null}})).await?;
    stage.until_sync(&app, "OutOfSync").await?;
    let edit = stage.finding(&app, "ConfigMap", "conf", "LiveEdit").await?;
    assert_eq!((&edit["actor"], &edit["fields"]), (&json!("key-remover"), &json!(["/data/removed"])));
    Ok(())
}
