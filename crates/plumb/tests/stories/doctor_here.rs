//! The doctor where no engine of plumb runs, and the way from a red column to a quiet one.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use plumb_testkit::audit::{self, AuditEvent};
use plumb_testkit::objects::{self, Trouble, troubled};
use plumb_testkit::wait;
use serde_json::{Value, json};

use crate::stage::Stage;

fn automated(app: &mut Value) {
    app["spec"]["syncPolicy"] = json!({"automated": {}});
}

/// A crash loop, a Service with defaults, a `ConfigMap` that somebody edits, and a Secret.
fn kiosk() -> String {
    objects::manifests(&[
        troubled(objects::deployment("looping", 1), Trouble::CrashLoop),
        objects::service("web", 80),
        objects::config_map("settings", &[("level", "info")]),
        objects::secret("login", &[("password", "hunter2")]),
    ])
}

/// What Argo CD would say: every object is `OutOfSync` but the one that really differs.
async fn argo_cd_is_wrong(stage: &Stage, app: &Value) -> Result<()> {
    let live = stage.place.get(app).await?.context("the app")?;
    let mut resources = live["status"]["resources"].clone();
    for resource in resources.as_array_mut().into_iter().flatten() {
        let is_edited = resource["name"] == "settings";
        resource["status"] = json!(if is_edited { "Synced" } else { "OutOfSync" });
    }
    let status = json!({"status": {"resources": resources, "sync": {"status": "OutOfSync"}}});
    stage.place.patch_as("argocd-application-controller", app, &status).await?;
    Ok(())
}

/// Does it list a kind? A watch lists where it asks for the events of what exists.
fn lists(event: &AuditEvent) -> bool {
    let begins = event.stage == "ResponseStarted" && event.request_uri.contains("sendInitialEvents=true");
    (event.verb == "list" && !event.request_uri.contains("continue=")) || (event.verb == "watch" && begins)
}

/// What a user asked for, once the log has the last of it.
async fn requests_of(stage: &Stage, user: &str, after: u64) -> Result<Vec<AuditEvent>> {
    let log = stage.place.cluster().audit_log();
    let read = || -> Vec<AuditEvent> {
        let all = audit::read_after(&log, after).unwrap_or_default();
        all.into_iter().filter(|event| event.user.username == user).collect()
    };
    // The watches end with the process, and are the last to be written.
    let is_there = |events: &Vec<AuditEvent>| {
        events.iter().any(|event| lists(event) && event.request_uri.contains("/pods?"))
    };
    wait::until_seen(Duration::from_secs(30), "the log has the requests", async || read(), is_there).await
}

#[tokio::test]
async fn without_an_engine_the_doctor_judges_by_itself_and_only_reads() -> Result<()> {
    let mut stage = Stage::set().await?;
    stage.repo.commit(&[("app/all.yaml", kiosk())])?;
    let app = stage.application("kiosk", automated).await?;
    stage.until_sync(&app, "Synced").await?;
    let pod_loops =
        |live: &Value| live["status"]["health"]["message"].to_string().contains("CrashLoopBackOff");
    stage.place.wait(&app, "tells of the crash loop", pod_loops).await?;
    stage.stop_plumb()?;
    stage
        .place
        .patch_as("kubectl-edit", &objects::config_map("settings", &[]), &json!({"data": {"level": "debug"}}))
        .await?;
    argo_cd_is_wrong(&stage, &app).await?;

    let cache = tempfile::tempdir()?;
    let (user, kubeconfig) = stage.reader("reader", cache.path()).await?;
    let before = std::fs::metadata(stage.place.cluster().audit_log())?.len();
    let cache_dir = cache.path().display().to_string();
    let shown = stage.plumb_with(&kubeconfig, &["doctor", "--cache-dir", &cache_dir])?;
    let first = shown.lines().next().unwrap_or_default();
    ensure!(
        first.starts_with("UNHEALTHY") && first.contains("Deployment") && first.contains("looping"),
        "{shown}"
    );
    ensure!(shown.contains("keeps crashing (CrashLoopBackOff)"), "{shown}");
    ensure!(shown.contains("LiveEdit ConfigMap: 1 finding in kiosk, by kubectl-edit"), "{shown}");
    ensure!(shown.contains("(Argo CD: Synced)"), "what Argo CD does not see: {shown}");
    ensure!(shown.contains("Argo CD: OutOfSync. plumb: nothing is wrong (SchemaDefault)"), "{shown}");
    ensure!(shown.contains("SECRETS WITH THEIR VALUES IN GIT (1)") && !shown.contains("hunter2"), "{shown}");

    let events = requests_of(&stage, &user, before).await?;
    let others: Vec<&AuditEvent> =
        events.iter().filter(|event| !matches!(event.verb.as_str(), "get" | "list" | "watch")).collect();
    ensure!(others.is_empty(), "the doctor only reads: {others:?}");
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for event in events.iter().filter(|event| lists(event)) {
        let object = event.object_ref.clone().unwrap_or_default();
        // Repositories are Secrets with a label of their own, in the namespace of the control plane.
        let labelled = if event.request_uri.contains("labelSelector=") { " by label" } else { "" };
        *counts.entry(format!("{}/{}{labelled}", object.api_group, object.resource)).or_default() += 1;
    }
    let twice: Vec<_> = counts.iter().filter(|(_, n_lists)| **n_lists > 1).collect();
    ensure!(twice.is_empty(), "one list per kind: {twice:?}");
    ensure!(counts.contains_key("/pods"), "pods are listed: {counts:?}");

    // A developer may read apps and workloads, and no projects.
    let few = json!([{"apiGroups": ["argoproj.io"], "resources": ["applications"], "verbs": ["get", "list"]},
        {"apiGroups": ["", "apps"], "resources": ["*"], "verbs": ["get", "list", "watch"]},
        {"nonResourceURLs": ["*"], "verbs": ["get"]}]);
    let (_, of_developer) = stage.user_with("developer", cache.path(), &few).await?;
    let shown = stage.plumb_with(&of_developer, &["doctor", "--cache-dir", &cache_dir])?;
    ensure!(shown.contains("LiveEdit ConfigMap: 1 finding in kiosk, by kubectl-edit"), "{shown}");

    // The same from a local clone, with what changed before it began.
    let root = stage.repo.path().display().to_string();
    let flags = ["unmask", "--repo", &root, "--cache-dir", &cache_dir];
    let shown = stage.plumb_with(&kubeconfig, &flags)?;
    ensure!(shown.contains("after sync 0 of kiosk, commit ") && shown.contains(" by test"), "{shown}");
    Ok(())
}

const TYPO: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 0
  minReadySecond: 5
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: main, image: example.com/web}
";

/// The commands of a person with a red column, one after the other.
#[tokio::test]
async fn four_commands_lead_from_red_to_quiet() -> Result<()> {
    let stage = Stage::set().await?;
    stage.repo.name_author()?;
    // Somebody made it before there was an app.
    let early = objects::config_map("early", &[("a", "b")]);
    stage.place.apply_as("kubectl", &early).await?;
    let looping = troubled(objects::deployment("looping", 1), Trouble::CrashLoop);
    stage.repo.commit(&[
        ("app/web.yaml", TYPO.to_owned()),
        ("app/looping.yaml", objects::manifests(&[looping])),
        ("app/early.yaml", objects::manifests(std::slice::from_ref(&early))),
    ])?;
    let app = stage.application("bakery", |_| {}).await?;
    stage.finding(&app, "ConfigMap", "early", "Unadopted").await?;
    // The API server refuses the misspelled field, and takes the rest.
    stage.plumb_says(&[
        "app",
        "sync",
        "bakery",
        "--resource",
        "apps:Deployment:web",
        "--resource",
        "apps:Deployment:looping",
    ])?;
    stage.finding(&app, "Deployment", "web", "RejectedField").await?;
    let loops = |live: &Value| live["status"]["health"]["message"].to_string().contains("CrashLoopBackOff");
    stage.place.wait(&app, "tells of the crash loop", loops).await?;

    let shown = stage.plumb(&["doctor"])?;
    let first = shown.lines().next().unwrap_or_default();
    ensure!(first.starts_with("UNHEALTHY") && first.contains("looping"), "the crash loop is first: {shown}");
    for part in
        ["RejectedField Deployment", "Unadopted ConfigMap", "→ plumb adopt --all", "→ plumb fix --patch"]
    {
        ensure!(shown.contains(part), "{part}: {shown}");
    }

    let root = stage.repo.path().display().to_string();
    stage.plumb(&["fix", "--repo", &root, "--yes", "--branch", "less-noise"])?;
    stage.repo.git(&["merge", "--quiet", "--ff-only", "less-noise"])?;
    stage.refresh(&app).await?;
    stage.plumb(&["app", "sync", "bakery", "--resource", "apps:Deployment:web"])?;

    let planned = stage.plumb(&["adopt", "--all", "--dry-run"])?;
    ensure!(
        planned.contains("bakery: ConfigMap ") && planned.contains("its content matches Git"),
        "{planned}"
    );
    let live = stage.place.get(&early).await?.context("the object")?;
    ensure!(live["metadata"]["annotations"]["argocd.argoproj.io/tracking-id"].is_null(), "a dry run");
    stage.plumb(&["adopt", "--all", "--yes"])?;
    stage.until_sync(&app, "Synced").await?;
    let live = stage.place.get(&early).await?.context("the object")?;
    ensure!(
        live["data"] == json!({"a": "b"})
            && live["metadata"]["annotations"]["argocd.argoproj.io/tracking-id"].is_string(),
        "{live}"
    );

    // The report follows the status.
    let report =
        json!({"apiVersion": "plumb.dev/v1alpha1", "kind": "DriftReport", "metadata": {"name": "bakery"}});
    let seen = async || stage.place.get(&report).await.ok().map(Option::unwrap_or_default);
    wait::until_seen(Duration::from_mins(1), "the report counts nothing", seen, |report| {
        report.as_ref().is_some_and(|report| report["summary"]["counted"].as_u64().unwrap_or_default() == 0)
    })
    .await?;
    let shown = stage.plumb(&["doctor"])?;
    ensure!(shown.lines().next().is_some_and(|line| line.contains("looping")), "{shown}");
    ensure!(shown.contains("0 wrong, 0 not in Git, 0 red without a reason"), "{shown}");
    let again = stage.plumb(&["adopt", "--all", "--yes"])?;
    ensure!(again.is_empty(), "{again}");
    Ok(())
}
