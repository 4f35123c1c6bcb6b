//! `app rollback`, `app terminate-op` and `undo`.

use anyhow::{Context, Result};
use plumb_testkit::objects;
use serde_json::{Value, json};

use crate::bench::Bench;

fn phase(app: &Value) -> &str {
    app["status"]["operationState"]["phase"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn an_earlier_sync_and_a_deleted_object_are_restored() -> Result<()> {
    let mut bench = Bench::with_engine().await?;
    let keep = |text: &str| objects::config_map("keep", &[("text", text)]);
    let gone = objects::labelled(objects::config_map("gone", &[("key", "value")]), "team", "payments");
    bench.repo.commit(&[("app/all.yaml", objects::manifests(&[keep("old"), gone.clone()]))])?;
    let app = bench.application("shop", |_| {}).await?;
    bench.until(&app, "OutOfSync", "Missing").await?;
    bench.quietly("plumb app sync shop", &[], "")?;
    bench.until(&app, "Synced", "Healthy").await?;
    bench.repo.commit(&[("app/all.yaml", objects::manifests(&[keep("new")]))])?;
    bench.quietly("plumb app get shop --refresh", &[], "")?;
    bench.plumb("plumb undo list shop")?;
    let synced = bench.quietly("plumb app sync shop --prune -o json", &[], "")?;
    let synced: Value = serde_json::from_str(&synced.stdout).context("nothing but JSON")?;
    assert_eq!(phase(&synced), "Succeeded", "{synced:#}");
    bench.place.wait_gone(&gone).await?;
    bench.until(&app, "Synced", "Healthy").await?;

    let listed = bench.quietly("plumb undo list shop -o json", &[], "")?;
    let listed: Value = serde_json::from_str(&listed.stdout).context("a JSON list")?;
    let id = listed[0]["id"].as_str().context("no id")?.to_owned();
    bench.shell.transcript.call(&id, "ID");
    bench.plumb("plumb undo list shop")?;
    bench.plumb(&format!("plumb undo show {id}"))?;
    bench.plumb(&format!("plumb undo restore {id} --dry-run"))?;
    bench.plumb(&format!("plumb undo restore {id}"))?;
    bench.plumb(&format!("plumb undo restore {id}"))?;
    bench.plumb("plumb undo show nothing")?;
    bench.place.delete(&gone).await?;
    bench.place.wait_gone(&gone).await?;

    bench.plumb("plumb app rollback shop 7")?;
    bench.run_from("plumb app rollback shop 0 --timeout 60", "\nName:")?;
    bench.place.wait(&keep(""), "is the old one", |live| live["data"]["text"] == "old").await?;
    let again = bench.quietly("plumb app rollback shop 0 --timeout 60 -o json", &[], "")?;
    let again: Value = serde_json::from_str(&again.stdout).context("nothing but JSON")?;
    assert_eq!(phase(&again), "Succeeded", "{again:#}");
    let automated = json!({"spec": {"syncPolicy": {"automated": {}}}});
    bench.place.patch_as("a-person", &app, &automated).await?;
    bench.plumb("plumb app rollback shop 0")?;
    bench.shell.transcript.check("rollback")
}

#[tokio::test]
async fn an_operation_is_stopped() -> Result<()> {
    let mut bench = Bench::with_engine().await?;
    let hook = objects::annotated(
        objects::troubled(objects::job("endless"), objects::Trouble::Hold),
        "argocd.argoproj.io/hook",
        "PreSync",
    );
    bench
        .repo
        .commit(&[("app/all.yaml", objects::manifests(&[hook.clone(), objects::config_map("a", &[])]))])?;
    let app = bench.application("shop", |_| {}).await?;
    bench.until(&app, "OutOfSync", "Missing").await?;
    bench.plumb("plumb app terminate-op shop")?;
    bench.plumb("plumb app sync shop --async")?;
    bench.place.wait(&app, "runs", |app| phase(app) == "Running").await?;
    bench.plumb("plumb app terminate-op shop")?;
    bench.place.wait(&app, "has ended", |app| phase(app) == "Failed").await?;
    bench.plumb("plumb app terminate-op shop")?;
    bench.shell.transcript.check("stopped")
}
