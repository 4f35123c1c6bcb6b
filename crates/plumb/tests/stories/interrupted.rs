//! What comes in the way of a sync and must not end it, or must.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use plumb_testkit::objects::{self, Trouble};
use serde_json::{Value, json};

use crate::safety::has_condition;
use crate::stage::Stage;

fn phase(app: &Value) -> &str {
    app["status"]["operationState"]["phase"].as_str().unwrap_or_default()
}

fn message(app: &Value) -> &str {
    app["status"]["operationState"]["message"].as_str().unwrap_or_default()
}

fn hook(object: Value) -> Value {
    objects::annotated(object, "argocd.argoproj.io/hook", "PreSync")
}

/// Automated, and tried again every second.
fn persistent(app: &mut Value) {
    app["spec"]["syncPolicy"] = json!({
        "automated": {"prune": true, "selfHeal": true},
        "retry": {"limit": 1000, "backoff": {"duration": "1s", "factor": 1}},
    });
}

/// The repository is not there while this is.
struct GitAway {
    here: PathBuf,
    away: PathBuf,
}

impl GitAway {
    fn begin(stage: &Stage) -> Result<Self> {
        Self::take(stage.repo.path().to_owned())
    }

    /// The directory is there, but git cannot read it: it fails as it does when a server fails.
    fn failing(stage: &Stage) -> Result<Self> {
        Self::take(stage.repo.path().join(".git"))
    }

    fn take(here: PathBuf) -> Result<Self> {
        let away = here.with_extension("away");
        std::fs::rename(&here, &away).context("take the repository away")?;
        Ok(Self { here, away })
    }
}

impl Drop for GitAway {
    fn drop(&mut self) {
        let _ = std::fs::rename(&self.away, &self.here);
    }
}

/// Lets a held hook end.
pub(crate) async fn let_go(stage: &Stage, job: &str) -> Result<()> {
    let selector = format!("job-name={job}");
    let pods =
        stage.place.wait_list("v1", "Pod", &selector, "has the hook's pod", |pods| !pods.is_empty()).await?;
    for pod in pods.values() {
        let label = Trouble::Hold.label();
        stage.place.patch_as("a-person", pod, &json!({"metadata": {"labels": {label: null}}})).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_sync_under_way_needs_no_git() -> Result<()> {
    let stage = Stage::set().await?;
    let migrate = hook(objects::troubled(objects::job("migrate"), Trouble::Hold));
    let conf = objects::config_map("conf", &[("a", "1")]);
    stage.repo.commit(&[("app/all.yaml", objects::manifests(&[migrate.clone(), conf.clone()]))])?;
    let app = stage.application("migrates", persistent).await?;
    let job = stage.place.wait(&migrate, "runs", |_| true).await?;

    let away = GitAway::begin(&stage)?;
    stage.refresh(&app).await?;
    let told =
        stage.place.wait(&app, "says that Git is away", |app| has_condition(app, "ComparisonError")).await?;
    assert_eq!((phase(&told), &told["status"]["sync"]["status"]), ("Running", &json!("Unknown")));
    let_go(&stage, "migrate").await?;
    let ended = stage.place.wait(&app, "has ended", |app| phase(app) == "Succeeded").await?;
    assert_eq!(ended["status"]["operationState"]["retryCount"], json!(null), "the hook ran once");
    assert_eq!(ended["status"]["history"].as_array().map(Vec::len), Some(1));
    let again = stage.place.get(&migrate).await?.unwrap_or_default();
    assert_eq!(again["metadata"]["uid"], job["metadata"]["uid"]);
    ensure!(stage.place.get(&conf).await?.is_some());

    drop(away);
    stage.refresh(&app).await?;
    stage.until_sync(&app, "Synced").await?;
    Ok(())
}

#[tokio::test]
async fn what_failed_without_git_is_told_and_stays_told() -> Result<()> {
    let stage = Stage::set().await?;
    stage.repo.commit(&[("app/all.yaml", objects::manifests(&[objects::config_map("conf", &[])]))])?;
    let app = stage.application("by-hand", |_| {}).await?;
    stage.until_sync(&app, "OutOfSync").await?;
    let _away = GitAway::begin(&stage)?;
    let operation = json!({"operation": {"initiatedBy": {"username": "a-person"}, "sync": {}}});
    stage.place.patch_as("a-person", &app, &operation).await?;
    stage
        .place
        .wait(&app, "says how it ended", |app| {
            phase(app) == "Error" && app["operation"].is_null() && has_condition(app, "ComparisonError")
        })
        .await?;
    stage.refresh(&app).await?;
    let still = stage.place.get(&app).await?.unwrap_or_default();
    assert_eq!(phase(&still), "Error");
    let log = stage.log()?;
    let unknown: Vec<&str> = log.lines().filter(|line| line.contains("OutOfSync -> Unknown")).collect();
    assert!(unknown.len() == 1 && unknown[0].contains("WARN"), "the change has one line: {log}");
    Ok(())
}

/// The app is `Unknown`, with the condition that says why.
fn is_blind(app: &Value) -> bool {
    app["status"]["sync"]["status"] == "Unknown" && has_condition(app, "ComparisonError")
}

fn data(config_map: &Value) -> &str {
    config_map["data"]["a"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn edits_are_put_back_while_git_is_away_and_the_app_stays_unknown() -> Result<()> {
    let stage = Stage::set().await?;
    let conf = objects::config_map("conf", &[("a", "1")]);
    stage.repo.commit(&[("app/all.yaml", objects::manifests(std::slice::from_ref(&conf)))])?;
    let app = stage.application("heals", persistent).await?;
    stage.until_sync(&app, "Synced").await?;
    let away = GitAway::failing(&stage)?;
    stage.refresh(&app).await?;
    stage.place.wait(&app, "says that Git is away", is_blind).await?;
    let edited = stage.place.patch_as("a-person", &conf, &json!({"data": {"a": "2"}})).await?;
    let healed = stage.place.wait(&conf, "is as it was", |conf| data(conf) == "1").await?;
    ensure!(healed["metadata"]["resourceVersion"] != edited["metadata"]["resourceVersion"]);
    stage.place.wait(&app, "has healed", |app| phase(app) == "Succeeded" && is_blind(app)).await?;
    let log = stage.log()?;
    assert!(!log.contains("Unknown -> "), "nothing is known while Git is away: {log}");
    drop(away);
    stage.refresh(&app).await?;
    stage.until_sync(&app, "Synced").await?;
    Ok(())
}

#[tokio::test]
async fn a_commit_that_cannot_be_rendered_stays_told_whatever_happens_in_the_cluster() -> Result<()> {
    let stage = Stage::set().await?;
    let conf = objects::config_map("conf", &[("a", "1")]);
    stage.repo.commit(&[("app/all.yaml", objects::manifests(std::slice::from_ref(&conf)))])?;
    let app = stage.application("broken", persistent).await?;
    stage.until_sync(&app, "Synced").await?;
    stage.repo.commit(&[("app/more.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: [")])?;
    stage.refresh(&app).await?;
    stage.place.wait(&app, "cannot be rendered", is_blind).await?;
    stage.place.delete(&conf).await?;
    let gone = |app: &Value| app["status"]["health"]["status"] == "Missing";
    let told = stage.place.wait(&app, "shows that an object is gone", gone).await?;
    assert!(is_blind(&told), "{}", told["status"]);
    assert!(!stage.log()?.contains("Unknown -> "), "the commit is still broken");
    stage.repo.commit(&[("app/more.yaml", objects::manifests(&[objects::config_map("more", &[])]))])?;
    stage.refresh(&app).await?;
    stage.until_sync(&app, "Synced").await?;
    ensure!(stage.place.get(&conf).await?.is_some());
    Ok(())
}

#[tokio::test]
async fn a_commit_to_another_folder_ends_no_retries() -> Result<()> {
    let stage = Stage::set().await?;
    let refused = objects::with(objects::service("web", 80), "/spec/ports/0/port", json!(99_999));
    stage.repo.commit(&[("app/web.yaml", objects::manifests(&[refused]))])?;
    let app = stage.application("tries", persistent).await?;
    let retries = |app: &Value| app["status"]["operationState"]["retryCount"].as_u64().unwrap_or(0);
    stage.place.wait(&app, "tries again", |app| retries(app) > 0).await?;

    let beside = stage.repo.commit(&[("another/README.md", "not this app's")])?;
    stage.refresh(&app).await?;
    let seen = |app: &Value| app["status"]["sync"]["revision"] == beside.as_str();
    let before = retries(&stage.place.wait(&app, "knows the commit", seen).await?);
    let later = stage.place.wait(&app, "goes on trying", |app| retries(app) > before + 1).await?;
    assert_eq!(phase(&later), "Running", "{}", message(&later));

    // One that is about this app takes its place.
    stage.repo.commit(&[("app/web.yaml", objects::manifests(&[objects::service("web", 80)]))])?;
    stage.refresh(&app).await?;
    stage.until_sync(&app, "Synced").await?;
    Ok(())
}

#[tokio::test]
async fn a_person_can_end_what_is_tried_again_and_again() -> Result<()> {
    let stage = Stage::set().await?;
    let nobody_serves =
        json!({"apiVersion": "nowhere.plumb.dev/v1", "kind": "Nothing", "metadata": {"name": "x"}});
    stage.repo.commit(&[("app/x.yaml", objects::manifests(&[nobody_serves]))])?;
    let app = stage.application("endless", persistent).await?;
    let retries = |app: &Value| app["status"]["operationState"]["retryCount"].as_u64().unwrap_or(0);
    stage.place.wait(&app, "tries again", |app| retries(app) > 0).await?;
    stage.plumb(&["app", "terminate-op", "endless"])?;
    let ended = stage.place.wait(&app, "has ended", |app| phase(app) == "Failed").await?;
    ensure!(message(&ended).contains("Operation terminated"), "{}", message(&ended));
    Ok(())
}

#[tokio::test]
async fn a_pause_holds_a_sync_that_is_under_way_and_it_goes_on_after_it() -> Result<()> {
    let stage = Stage::set().await?;
    let migrate = hook(objects::troubled(objects::job("migrate"), Trouble::Hold));
    let conf = objects::config_map("conf", &[("a", "1")]);
    stage.repo.commit(&[("app/all.yaml", objects::manifests(&[migrate.clone(), conf.clone()]))])?;
    let app = stage.application("held", persistent).await?;
    stage.place.wait(&migrate, "runs", |_| true).await?;
    stage.plumb(&["pause", "held", "--for", "1h", "--reason", "wait for me"])?;
    let_go(&stage, "migrate").await?;
    stage.place.wait(&app, "says who holds it", |app| message(app).contains("wait for me")).await?;
    ensure!(stage.place.get(&conf).await?.is_none(), "a person holds it");
    stage.plumb(&["resume", "held"])?;
    let ended = stage.place.wait(&app, "has ended", |app| phase(app) == "Succeeded").await?;
    assert_eq!(ended["status"]["operationState"]["retryCount"], json!(null), "it was one try");
    ensure!(stage.place.get(&conf).await?.is_some());
    Ok(())
}

#[tokio::test]
async fn what_moves_to_another_app_in_one_commit_is_not_pruned() -> Result<()> {
    let stage = Stage::set().await?;
    let (moves, stays) = (objects::config_map("moves", &[("a", "1")]), objects::config_map("stays", &[]));
    let other = objects::config_map("other", &[]);
    stage.repo.commit(&[
        ("from/moves.yaml", objects::manifests(std::slice::from_ref(&moves))),
        ("from/stays.yaml", objects::manifests(&[stays])),
        ("to/other.yaml", objects::manifests(&[other])),
    ])?;
    let in_folder = |folder: &'static str| {
        move |app: &mut Value| {
            app["spec"]["source"]["path"] = json!(folder);
            persistent(app);
        }
    };
    let from = stage.application("from", in_folder("from")).await?;
    let to = stage.application("to", in_folder("to")).await?;
    stage.until_sync(&from, "Synced").await?;
    stage.until_sync(&to, "Synced").await?;
    let before = stage.place.get(&moves).await?.unwrap_or_default();

    stage.repo.write("to/moves.yaml", objects::manifests(std::slice::from_ref(&moves)).as_bytes())?;
    let commit = stage.repo.remove(&["from/moves.yaml"])?;
    // Only the app that loses it is told of the commit.
    stage.refresh(&from).await?;
    let is_there = |app: &Value| {
        app["status"]["sync"]["status"] == "Synced" && app["status"]["sync"]["revision"] == commit.as_str()
    };
    stage.place.wait(&from, "is at the commit", is_there).await?;
    stage.place.wait(&to, "is at the commit", is_there).await?;
    let after = stage.place.get(&moves).await?.unwrap_or_default();
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"], "it was never deleted");
    let mark = after["metadata"]["annotations"]["argocd.argoproj.io/tracking-id"].as_str();
    ensure!(mark.is_some_and(|mark| mark.starts_with("to:")), "{mark:?}");
    Ok(())
}

#[tokio::test]
async fn a_job_that_somebody_left_under_the_name_of_a_hook_makes_way() -> Result<()> {
    let stage = Stage::set().await?;
    let left = stage.place.apply(&objects::job("migrate")).await?;
    let all = [hook(objects::job("migrate")), objects::config_map("conf", &[])];
    stage.repo.commit(&[("app/all.yaml", objects::manifests(&all))])?;
    let app = stage.application("hooked", persistent).await?;
    stage.place.wait(&app, "has synced", |app| phase(app) == "Succeeded").await?;
    let ran = stage.place.get(&objects::job("migrate")).await?.unwrap_or_default();
    assert_ne!(ran["metadata"]["uid"], left["metadata"]["uid"]);
    let kept = stage.plumb(&["undo", "list", "hooked"])?;
    ensure!(kept.contains("migrate"), "what somebody made can come back: {kept}");
    Ok(())
}
