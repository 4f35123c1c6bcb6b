//! Copies of deleted objects: large ones are split, and their number is bounded.

use anyhow::{Result, ensure};
use plumb_testkit::objects;
use serde_json::{Value, json};

use crate::stage::Stage;

const LABEL: &str = "plumb.dev/app";

/// Text that does not compress.
fn noise(bytes: usize) -> String {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut text = String::with_capacity(bytes);
    while text.len() < bytes {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        text.extend(
            (0..10).map(|n| char::from(letters[usize::try_from((state >> (6 * n)) & 63).unwrap_or(0)])),
        );
    }
    text
}

/// An automated app that prunes, with these objects. Each story has a name of its own: a tracking mark names the app alone.
async fn synced(stage: &Stage, name: &str, objects: &[Value]) -> Result<Value> {
    for (n, object) in objects.iter().enumerate() {
        let path = format!("app/{n}.yaml");
        stage.repo.commit(&[(path.as_str(), objects::manifests(std::slice::from_ref(object)))])?;
    }
    let keep = objects::config_map("keep", &[]);
    stage.repo.commit(&[("app/keep.yaml", objects::manifests(&[keep]))])?;
    let app = stage
        .application(name, |app| app["spec"]["syncPolicy"] = json!({"automated": {"prune": true}}))
        .await?;
    stage.until_sync(&app, "Synced").await?;
    Ok(app)
}

#[tokio::test]
async fn a_large_object_is_pruned_and_comes_back_whole() -> Result<()> {
    let stage = Stage::set().await?;
    let content = noise(900_000);
    let large = objects::config_map("large", &[("noise", &content)]);
    let app = synced(&stage, "undo-large", std::slice::from_ref(&large)).await?;
    stage.repo.remove(&["app/0.yaml"])?;
    stage.refresh(&app).await?;
    stage.place.wait_gone(&large).await?;
    let secrets = stage.place.list("v1", "Secret", LABEL).await?;
    ensure!(secrets.len() > 1, "it is split: {:?}", secrets.keys());
    for secret in secrets.values() {
        ensure!(secret.to_string().len() < 1 << 20, "each part is small");
    }
    stage.until_sync(&app, "Synced").await?;
    let manual = json!({"spec": {"syncPolicy": {"automated": null}}});
    stage.place.patch_as("a-person", &app, &manual).await?;
    let id = stage.plumb(&["undo", "list", "undo-large", "-o", "name"])?;
    let said = stage.plumb(&["undo", "restore", id.trim()])?;
    ensure!(said.contains("restored"), "{said}");
    let back = stage.place.wait(&large, "is back", |_| true).await?;
    ensure!(back["data"]["noise"] == content.as_str(), "it is the same");
    Ok(())
}

#[tokio::test]
async fn an_app_keeps_only_its_latest_copies() -> Result<()> {
    let mut stage = Stage::bare().await?;
    stage.setting("argocd-cm", "plumb.tombstones.app-count", "2").await?;
    stage.begin().await?;
    let gone: Vec<Value> = (0..4).map(|n| objects::config_map(&format!("gone-{n}"), &[])).collect();
    let app = synced(&stage, "undo-many", &gone).await?;
    for (n, object) in gone.iter().enumerate() {
        stage.repo.remove(&[format!("app/{n}.yaml").as_str()])?;
        stage.refresh(&app).await?;
        stage.place.wait_gone(object).await?;
    }
    let two = |seen: &plumb_testkit::wait::Seen| seen.len() == 2;
    let kept = stage.place.wait_list("v1", "Secret", LABEL, "has two copies", two).await?;
    let of = |secret: &Value| secret["metadata"]["annotations"]["plumb.dev/object"].to_string();
    let kept: Vec<String> = kept.values().map(of).collect();
    ensure!(kept.iter().any(|object| object.contains("gone-3")), "{kept:?}");
    ensure!(!kept.iter().any(|object| object.contains("gone-0") || object.contains("gone-1")), "{kept:?}");
    Ok(())
}
