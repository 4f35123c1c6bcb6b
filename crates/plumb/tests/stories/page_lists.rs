//! The page against a real plumb: what is cleaned up by lists over all apps. `page.rs` runs these stories.

use anyhow::{Context as _, Result, ensure};
use plumb_testkit::{objects, wait};
use serde_json::json;

use crate::page::{Opened, in_folder};

/// A Deployment with a field that the API server does not know.
const MISSPELLED: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: shelf}
spec:
  replicas: 0
  minReadySecond: 5 # misspelled
  selector: {matchLabels: {app: shelf}}
  template:
    metadata: {labels: {app: shelf}}
    spec:
      containers:
      - name: main
        image: example.com/shelf
";

/// What left Git is listed with who uses it, in the order in which it can go; it is deleted after a plan, and comes back.
pub(crate) async fn zombies(page: &mut Opened<'_, '_>) -> Result<()> {
    let left = objects::config_map("left-over", &[("mode", "fast")]);
    let held = objects::config_map("held", &[("mode", "slow")]);
    let stays = ["here-1", "here-2", "here-3"].map(|name| objects::config_map(name, &[]));
    page.stage.repo.commit(&[
        ("zombie/gone.yaml", objects::manifests(&[held.clone(), left.clone()])),
        ("zombie/stays.yaml", objects::manifests(&stays)),
    ])?;
    let app = page.stage.application("zombie", in_folder("zombie", json!({}))).await?;
    page.stage.until_sync(&app, "Synced").await?;
    let volumes = json!([{"name": "config", "configMap": {"name": "held"}}]);
    let user = objects::with(objects::pod("holder"), "/spec/volumes", volumes);
    page.stage.place.apply_as("a-person", &user).await?;
    page.stage.repo.remove(&["zombie/gone.yaml"])?;
    page.stage.refresh(&app).await?;
    page.stage.until_sync(&app, "OutOfSync").await?;
    page.go("o").await?;
    page.card(&["zombie", "left-over", "held", "Used by Pod", "holder", "--delete --dump ./orphans"]).await?;
    // What nothing uses comes first.
    let first = "[...document.querySelectorAll('.card')].find((card) => card.textContent.includes('zombie'))\
                 .querySelector('.places li').textContent";
    page.tab
        .until(&format!("{first}.includes('left-over') && {first}.includes('Nothing that plumb can see')"))
        .await?;
    page.phone().await?;
    page.card(&["zombie", "Used by Pod", "holder"]).await?;
    page.desktop().await?;
    page.find("zombie").await?;
    page.card(&["Orphan", "left-over"]).await?;
    page.tab.press("s").await?;
    page.tab.tab_to("Prune").await?;
    page.tab.press(" ").await?;
    page.tab.until("document.querySelector('dialog .steps')?.textContent.includes('holder')").await?;
    page.confirm("Delete 2").await?;
    page.stage.place.wait_gone(&left).await?;
    page.stage.place.wait_gone(&held).await?;
    page.go("u").await?;
    page.tab.until_shown("left-over").await?;
    page.phone().await?;
    page.tab.until_shown("left-over").await?;
    page.desktop().await?;
    page.tab.use_control("Restore").await?;
    page.confirm("Restore ConfigMap").await?;
    let back = async || {
        let mut found = Vec::new();
        for object in [&left, &held] {
            found.extend(page.stage.place.get(object).await.ok().flatten());
        }
        found.len()
    };
    wait::until_seen(wait::LIMIT, "one object is back", back, |n| *n == 1).await.map(drop)
}

/// What nobody can explain is named, not hidden.
pub(crate) async fn residuals(page: &mut Opened<'_, '_>) -> Result<()> {
    let wiped = objects::config_map("wiped", &[("level", "info")]);
    page.stage.repo.commit(&[("ghost/all.yaml", objects::manifests(std::slice::from_ref(&wiped)))])?;
    let app = page.stage.application("ghost", in_folder("ghost", json!({}))).await?;
    page.stage.until_sync(&app, "Synced").await?;
    let edited = json!({"metadata": {"managedFields": [{}]}, "data": {"level": "debug"}});
    page.stage.place.patch_as("ghost", &wiped, &edited).await?;
    page.go("h").await?;
    page.card(&["ghost", "Unexplained"]).await?;
    // The list, and the app, with the keys of the list.
    page.go("a").await?;
    page.tab.until("document.querySelector('.row') !== null").await?;
    page.tab.press("/").await?;
    page.tab.write("class:Unexplained").await?;
    page.tab.until("document.querySelectorAll('.row').length === 1").await?;
    page.tab.press("Enter").await?;
    page.tab.until("document.querySelector('.row.here') !== null").await?;
    page.tab.press("Enter").await?;
    page.card(&["Unexplained"]).await?;
    page.phone().await?;
    page.card(&["Unexplained"]).await?;
    page.desktop().await
}

/// Doctor has the findings of all apps by class and kind, with the command that changes Git. What the command prints,
/// committed, makes the column green.
pub(crate) async fn doctor(page: &mut Opened<'_, '_>) -> Result<()> {
    let repo = &page.stage.repo;
    repo.name_author()?;
    repo.commit(&[("shelf/all.yaml", MISSPELLED)])?;
    let app = page.stage.application("shelf", in_folder("shelf", json!({}))).await?;
    page.stage.finding(&app, "Deployment", "shelf", "RejectedField").await?;
    page.phone().await?;
    page.go("d").await?;
    for class in ["LiveEdit", "TugOfWar", "Unexplained", "RejectedField"] {
        page.card(&[class]).await?;
    }
    page.go("h").await?;
    page.card(&["shelf", "RejectedField"]).await?;
    page.desktop().await?;
    page.card(&["shelf", "RejectedField"]).await?;
    page.go("d").await?;
    page.card(&["RejectedField"]).await?;
    page.tab.use_control("RejectedField").await?;
    page.tab.until("document.querySelector('.card[open] .command code') !== null").await?;
    page.tab.until("location.search.includes('RejectedField')").await?;
    let command = page.tab.text(".card[open] .command code").await?;
    let words: Vec<&str> = command.split_whitespace().skip(1).collect();
    ensure!(words.contains(&"--patch"), "the command is {command}");
    let root = page.stage.repo.path().display().to_string();
    let patch = page.stage.plumb(&[&words[..], &["--repo", &root]].concat())?;
    ensure!(
        patch.contains("-  minReadySecond: 5") && patch.contains("+  minReadySeconds: 5"),
        "{command}: {patch}"
    );
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("changes.patch");
    std::fs::write(&file, patch)?;
    let repo = &page.stage.repo;
    repo.git(&["apply", file.to_str().context("a strange folder")?])?;
    repo.commit_all("as plumb fix proposes")?;
    page.stage.refresh(&app).await?;
    page.stage.until_sync(&app, "Synced").await?;
    let gone =
        "![...document.querySelectorAll('.card')].some((card) => card.textContent.includes('RejectedField'))";
    page.tab.until(gone).await?;
    page.go("h").await?;
    page.tab.until(&format!("document.querySelector('.headline, .calm') !== null && {gone}")).await?;
    page.find("shelf").await?;
    page.tab.until_shown("In sync with Git").await
}
