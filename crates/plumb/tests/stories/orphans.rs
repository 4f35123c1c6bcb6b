//! `plumb orphans`: what Git no longer has goes one at a time, and comes back by either copy.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use plumb_testkit::{PrivateCluster, objects, programs};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::stage::Stage;

const GROUP: &str = "rbac.authorization.k8s.io";

fn role() -> Value {
    json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Role", "metadata": {"name": "bot"},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]})
}

fn binding() -> Value {
    json!({"apiVersion": format!("{GROUP}/v1"), "kind": "RoleBinding", "metadata": {"name": "bot"},
        "roleRef": {"apiGroup": GROUP, "kind": "Role", "name": "bot"},
        "subjects": [{"kind": "ServiceAccount", "name": "bot"}]})
}

/// A pod of nobody that mounts a `ConfigMap`.
fn by_hand() -> Value {
    let volumes = json!([{"name": "config", "configMap": {"name": "used"}}]);
    objects::with(objects::pod("by-hand"), "/spec/volumes", volumes)
}

/// The names of the orphans with what the command says about each.
fn listed(stage: &Stage, app: &str) -> Result<Vec<Value>> {
    let said = stage.plumb(&["orphans", app, "-o", "json"])?;
    let value: Value = serde_json::from_str(&said).with_context(|| said.clone())?;
    Ok(value["orphans"].as_array().cloned().unwrap_or_default())
}

fn position(orphans: &[Value], kind: &str) -> Option<usize> {
    orphans.iter().position(|orphan| orphan["kind"] == kind && orphan["name"] != "used")
}

#[tokio::test]
async fn orphans_go_one_at_a_time_and_come_back_by_either_copy() -> Result<()> {
    // All objects of the cluster are read: other tests would be seen.
    let cluster = tokio::task::spawn_blocking(PrivateCluster::start).await.context("a thread ended")??;
    let mut stage = Stage::bare_in(cluster.shared()).await?;
    stage.begin().await?;
    let left = objects::config_map("left", &[("mode", "fast")]);
    let secret = objects::secret("left", &[("password", "hunter2")]);
    let used = objects::config_map("used", &[]);
    let kept = objects::annotated(
        objects::config_map("kept", &[]),
        "argocd.argoproj.io/sync-options",
        "Prune=false",
    );
    let gone = [
        left.clone(),
        secret.clone(),
        used.clone(),
        kept,
        objects::service_account("bot"),
        role(),
        binding(),
    ];
    stage.repo.commit(&[
        ("app/gone.yaml", objects::manifests(&gone)),
        ("app/stays.yaml", objects::manifests(&[objects::config_map("stays", &[])])),
    ])?;
    let app = stage.application("zombie", |app| app["spec"]["syncPolicy"] = json!({"automated": {}})).await?;
    stage.until_sync(&app, "Synced").await?;
    stage.place.apply_as("a-person", &by_hand()).await?;
    stage.repo.remove(&["app/gone.yaml"])?;
    stage.refresh(&app).await?;
    stage.until_sync(&app, "OutOfSync").await?;

    let orphans = listed(&stage, "zombie")?;
    ensure!(orphans.len() == gone.len(), "{orphans:#?}");
    let order = |kind| position(&orphans, kind).with_context(|| format!("{kind}: {orphans:#?}"));
    ensure!(order("RoleBinding")? < order("Role")?, "the binding goes before the role");
    ensure!(order("RoleBinding")? < order("ServiceAccount")?, "and before the account");
    let of =
        |name: &str| orphans.iter().find(|orphan| orphan["kind"] == "ConfigMap" && orphan["name"] == name);
    let users = of("used").map(|orphan| orphan["users"].clone()).unwrap_or_default();
    ensure!(users[0]["kind"] == "Pod" && users[0]["name"] == "by-hand", "{users}");

    let dump = TempDir::new()?;
    let folder = dump.path().join("orphans");
    let folder_text = folder.display().to_string();
    let words = ["orphans", "zombie", "--delete", "--yes", "--watch-for", "1", "--dump", &folder_text];
    let said = stage.plumb(&words)?;
    ensure!(!said.contains("hunter2"), "no value of a Secret is printed");
    for object in [&left, &secret, &role(), &binding()] {
        ensure!(stage.place.get(object).await?.is_none(), "{object} is still there: {said}");
    }
    ensure!(stage.place.get(&used).await?.is_some(), "what is used stays");
    let remaining = listed(&stage, "zombie")?;
    let names: Vec<&str> = remaining.iter().filter_map(|orphan| orphan["name"].as_str()).collect();
    ensure!(names == ["kept", "used"], "{names:?}");

    // One comes back from its tombstone …
    let deleted: Value = serde_json::from_str(&stage.plumb(&["undo", "list", "zombie", "-o", "json"])?)?;
    let ids: BTreeMap<String, String> = deleted
        .as_array()
        .into_iter()
        .flatten()
        .map(|entry| {
            (format!("{}", entry["object"]["kind"]), entry["id"].as_str().unwrap_or_default().to_owned())
        })
        .collect();
    let id = ids.get("\"ConfigMap\"").with_context(|| deleted.to_string())?;
    stage.plumb(&["undo", "restore", id])?;
    let back = stage.place.wait(&left, "is back", |_| true).await?;
    ensure!(back["data"] == json!({"mode": "fast"}), "{back}");
    // … and all of them from the directory.
    let mut files: Vec<_> =
        std::fs::read_dir(&folder)?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.sort();
    ensure!(files.len() == 5, "{files:?}");
    let applied = std::process::Command::new(&programs()?.kubectl)
        .arg("--kubeconfig")
        .arg(stage.place.kubeconfig())
        .args(["apply", "-f", &folder_text])
        .output()?;
    let said = format!("{applied:?}");
    ensure!(applied.status.success(), "{said}");
    for object in [&left, &role(), &binding(), &objects::service_account("bot")] {
        ensure!(stage.place.get(object).await?.is_some(), "{object} is not back: {said}");
    }
    let back = stage.place.wait(&secret, "is back", |_| true).await?;
    let password = back["data"]["password"].as_str().unwrap_or_default();
    ensure!(password == "aHVudGVyMg==", "{back}");
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&files[0])?.permissions());
    ensure!(mode & 0o777 == 0o600, "only its user can read it: {mode:o}");
    Ok(())
}

/// The commands of the runbook, as it shows them.
fn runbook() -> Result<Vec<String>> {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/runbook-red-column.md");
    let text = std::fs::read_to_string(page)?;
    let commands = text.lines().filter_map(|line| line.strip_prefix("$ plumb "));
    Ok(commands.map(|line| line.split(" #").next().unwrap_or_default().trim().to_owned()).collect())
}

/// Runs a command in a working copy; fails unless it succeeds.
fn run_in(stage: &Stage, line: &str) -> Result<String> {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_plumb"))
        .args(line.split_whitespace())
        .args(["--namespace", stage.place.name(), "--kubeconfig"])
        .arg(stage.place.kubeconfig())
        .current_dir(stage.repo.path())
        .env("XDG_CACHE_HOME", stage.cache())
        .envs(["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"].map(|name| (name, "a person")))
        .envs(["GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"].map(|name| (name, "person@example.com")))
        .stdin(std::process::Stdio::null())
        .output()?;
    let (said, talk) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "plumb {line}: {said}{talk}");
    Ok(said.into_owned())
}

/// A typo, a live edit and an orphan: the steps of the runbook end all three.
#[tokio::test]
async fn the_runbook_leads_from_red_to_green() -> Result<()> {
    let cluster = tokio::task::spawn_blocking(PrivateCluster::start).await.context("a thread ended")??;
    let mut stage = Stage::bare_in(cluster.shared()).await?;
    stage.begin().await?;
    let left = objects::config_map("left", &[]);
    let edited = objects::config_map("edited", &[("mode", "fast")]);
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: typo\n";
    stage.repo.commit(&[
        ("app/left.yaml", objects::manifests(std::slice::from_ref(&left))),
        ("app/edited.yaml", objects::manifests(std::slice::from_ref(&edited))),
        ("app/typo.yaml", map.to_owned()),
    ])?;
    let app = stage.application("red", |_| {}).await?;
    stage.until_sync(&app, "OutOfSync").await?;
    stage.plumb(&["app", "sync", "red", "--timeout", "60"])?;
    stage.until_sync(&app, "Synced").await?;
    stage.place.patch_as("a-person", &edited, &json!({"data": {"mode": "slow"}})).await?;
    stage.repo.commit(&[("app/typo.yaml", format!("{map}# Not a field.\nbinarydata: {{}}\n"))])?;
    stage.repo.remove(&["app/left.yaml"])?;
    stage.refresh(&app).await?;
    stage.finding(&app, "ConfigMap", "left", "Orphan").await?;
    stage.finding(&app, "ConfigMap", "edited", "LiveEdit").await?;
    stage.finding(&app, "ConfigMap", "typo", "RejectedField").await?;
    ensure!(stage.plumb(&["doctor", "--exit-code"]).is_err(), "something is wrong");

    let commands = runbook()?;
    ensure!(commands.len() >= 6, "{commands:?}");
    let branch = stage.repo.git(&["symbolic-ref", "--short", "HEAD"])?;
    for command in &commands {
        let command = command.replace(" main", &format!(" {}", branch.trim()));
        let is_deletion = command.contains("--delete");
        let said = run_in(
            &stage,
            &if is_deletion { format!("{command} --yes --watch-for 1") } else { command.clone() },
        )?;
        if command.starts_with("lint") {
            ensure!(said.contains("this merge "), "{said}");
        }
        if command.contains("--to quiet") {
            ensure!(said.contains("ConfigMap"), "{said}");
        }
    }
    ensure!(stage.place.get(&left).await?.is_none(), "the orphan is gone");
    stage.repo.git(&["merge", "--ff-only", "quiet"])?;
    stage.refresh(&app).await?;
    run_in(&stage, "app sync red --timeout 60")?;
    stage.until_sync(&app, "Synced").await?;
    stage.plumb(&["doctor", "--exit-code"])?;
    Ok(())
}
