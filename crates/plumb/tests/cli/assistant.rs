//! `plumb mcp` on a cluster: every tool answers, and a permitted write changes the cluster.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use plumb_testkit::objects;
use serde_json::{Value, json};

use crate::bench::Bench;
use crate::offline::mcp::Talk;

/// What an answer says. Fails if it is an error.
fn told(talk: &mut Talk, tool: &str, arguments: &Value) -> Result<String> {
    let answer = talk.call(tool, arguments)?;
    ensure!(answer["result"]["isError"] == false, "{tool}: {answer:#}");
    let text = answer["result"]["content"][0]["text"].as_str();
    text.map(str::to_owned).with_context(|| format!("{tool}: {answer:#}"))
}

#[tokio::test]
async fn an_assistant_finds_an_edit_and_ends_it() -> Result<()> {
    let bench = Bench::with_engine().await?;
    let settings = objects::config_map("settings", &[("level", "info")]);
    bench.repo.commit(&[("app/all.yaml", objects::manifests(std::slice::from_ref(&settings)))])?;
    let app = bench.application("shop", |_| {}).await?;
    bench.until(&app, "OutOfSync", "Missing").await?;
    let synced = bench.quietly("plumb app sync shop --timeout 60", &[], "")?;
    ensure!(synced.code == 0, "{}", synced.stderr);
    bench.until(&app, "Synced", "Healthy").await?;
    bench.place.patch_as("kubectl-edit", &settings, &json!({"data": {"level": "debug"}})).await?;
    let report =
        json!({"apiVersion": "plumb.dev/v1alpha1", "kind": "DriftReport", "metadata": {"name": "shop"}});
    bench.place.wait(&report, "tells of the edit", |report| report["summary"]["worst"] == "LiveEdit").await?;
    bench.until(&app, "OutOfSync", "Healthy").await?;

    let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
    command.args(["mcp", "--allow-writes", "--namespace", bench.place.name(), "--kubeconfig"]);
    let mut talk = Talk::begin(command.arg(bench.place.kubeconfig()))?;
    let (all, shop) = (json!({}), json!({"app": "shop"}));
    for (tool, arguments, expected) in [
        ("list_apps", &all, "shop"),
        ("get_app", &shop, "\"OutOfSync\""),
        ("drift", &shop, "LiveEdit"),
        ("drift", &all, "LiveEdit"),
        ("doctor", &all, "LiveEdit"),
        ("unmask", &all, "[]"),
        ("diff", &shop, "kubectl-edit"),
        ("plan", &shop, "settings"),
        ("undo_list", &all, "[]"),
        ("dry_run", &shop, "settings"),
    ] {
        let said = told(&mut talk, tool, arguments)?;
        ensure!(said.contains(expected), "{tool}: {expected} is not in {said}");
    }
    told(&mut talk, "sync", &shop)?;
    bench.place.wait(&settings, "is as Git says", |live| live["data"]["level"] == "info").await?;
    talk.end()
}
