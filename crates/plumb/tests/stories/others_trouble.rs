//! No app waits for the trouble of another: slow webhooks, servers that never answer, apps that cannot be gathered.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use plumb_testkit::https::{Authority, HttpRequest, HttpResponse, HttpsServer};
use plumb_testkit::{objects, wait};
use serde_json::{Value, json};

use crate::stage::Stage;

/// How long the slow webhook takes for each object.
const WEBHOOK_TAKES: Duration = Duration::from_secs(10);
/// How long git waits for a server that accepts and does not answer.
const GIT_WAITS: Duration = Duration::from_secs(90);
const CASCADE: &str = "resources-finalizer.argocd.argoproj.io";

fn in_folder(folder: &'static str) -> impl Fn(&mut Value) {
    move |app: &mut Value| {
        app["spec"]["source"]["path"] = json!(folder);
        app["spec"]["syncPolicy"] = json!({"automated": {"prune": true}});
    }
}

fn message(app: &Value) -> &str {
    app["status"]["operationState"]["message"].as_str().unwrap_or_default()
}

fn account(version: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "quick", "annotations": {"v": version}}})
}

/// How long it takes from a commit of this version until the cluster has it.
async fn commit_to_live(stage: &Stage, app: &Value, version: &str) -> Result<Duration> {
    stage.repo.commit(&[("quick/account.yaml", objects::manifests(&[account(version)]))])?;
    let started = Instant::now();
    stage.refresh(app).await?;
    let is_there = |live: &Value| live["metadata"]["annotations"]["v"] == version;
    stage.place.wait(&account(version), "is as committed", is_there).await?;
    Ok(started.elapsed())
}

/// Admits every object, slowly.
fn admit_slowly(request: &HttpRequest) -> HttpResponse {
    let review: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    // The delay is the fault that this story is about.
    std::thread::sleep(WEBHOOK_TAKES);
    let answer = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "response": {"uid": review["request"]["uid"], "allowed": true},
    });
    let json = ("Content-Type".to_owned(), "application/json".to_owned());
    HttpResponse { status: "200 OK".to_owned(), headers: vec![json], body: answer.to_string().into_bytes() }
}

#[tokio::test]
async fn a_slow_webhook_delays_only_the_app_that_it_looks_at() -> Result<()> {
    use base64::Engine as _;
    let stage = Stage::set().await?;
    let authority = Authority::new("slow webhook")?;
    let server = HttpsServer::start(&authority, None, admit_slowly)?;
    let webhook = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": format!("slow-{}", stage.place.name())},
        "webhooks": [{
            "name": "slow.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "timeoutSeconds": 30, "failurePolicy": "Fail",
            "clientConfig": {
                "url": format!("https://{}/", server.address()),
                "caBundle": base64::engine::general_purpose::STANDARD.encode(authority.certificate()),
            },
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": stage.place.name()}},
            "objectSelector": {"matchLabels": {"speed": "slow"}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}],
        }],
    });
    stage.place.apply(&webhook).await?;
    let slow: Vec<Value> = (0..40)
        .map(|n| objects::labelled(objects::config_map(&format!("slow-{n}"), &[]), "speed", "slow"))
        .collect();
    stage.repo.commit(&[("quick/account.yaml", objects::manifests(&[account("0")]))])?;
    let quick = stage.application("beside-slow-webhook", in_folder("quick")).await?;
    stage.until_sync(&quick, "Synced").await?;
    let before = commit_to_live(&stage, &quick, "1").await?;

    stage.repo.commit(&[("slow/maps.yaml", objects::manifests(&slow))])?;
    let app = stage.application("behind-slow-webhook", in_folder("slow")).await?;
    let says_why = |app: &Value| {
        message(app).contains("objects of kind ConfigMap")
            && message(app).contains("an admission webhook may be slow")
    };
    stage.place.wait(&app, "says what it waits for", says_why).await?;
    let during = commit_to_live(&stage, &quick, "2").await?;
    stage.place.delete(&webhook).await?;
    // A request that waits for another one of the slow app waits for at least one answer of the webhook.
    let limit = WEBHOOK_TAKES.max(before * 2);
    ensure!(during < limit, "a commit took {during:?} beside the slow webhook, and {before:?} before");
    stage.until_sync(&app, "Synced").await?;
    Ok(())
}

#[tokio::test]
async fn operations_and_commits_of_a_server_that_never_answers_hold_no_worker() -> Result<()> {
    let stage = Stage::set().await?;
    let commit = stage.repo.commit(&[
        ("app/map.yaml", objects::manifests(&[objects::config_map("hangs", &[])])),
        ("quick/account.yaml", objects::manifests(&[account("0")])),
    ])?;
    let quick = stage.application("beside-dead-server", in_folder("quick")).await?;
    stage.until_sync(&quick, "Synced").await?;
    let before = commit_to_live(&stage, &quick, "1").await?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let dead = format!("http://{}/repo.git", listener.local_addr()?);
    let (held, n_held) = std::sync::mpsc::channel();
    std::thread::spawn(move || listener.incoming().flatten().for_each(|stream| drop(held.send(stream))));
    // More than there are workers of each: operations, and apps that follow a commit.
    for n in 0..30 {
        let source = json!({"repoURL": dead.replace("repo.git", &format!("repo-{n}.git")), "path": "app"});
        let operation =
            |app: &mut Value| app["operation"] = json!({"sync": {"source": source, "revision": commit}});
        stage.application(&format!("dead-operation-{n}"), operation).await?;
        let pinned = |app: &mut Value| {
            app["spec"]["source"] = json!({"repoURL": dead, "path": "app", "targetRevision": commit});
        };
        stage.application(&format!("dead-commit-{n}"), pinned).await?;
    }
    let first = n_held.recv_timeout(GIT_WAITS)?;
    let during = commit_to_live(&stage, &quick, "2").await?;
    drop((first, n_held));
    let limit = (GIT_WAITS / 2).max(before * 2);
    ensure!(during < limit, "a commit took {during:?} beside the dead server, and {before:?} before");
    Ok(())
}

/// A server that takes connections and closes them. Returns its address and how many there were.
fn closing_server() -> Result<(String, Arc<AtomicUsize>)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = format!("http://{}/repo.git", listener.local_addr()?);
    let taken = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&taken);
    std::thread::spawn(move || {
        for _ in listener.incoming().flatten() {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    });
    Ok((address, taken))
}

#[tokio::test]
async fn a_prune_waits_for_a_sibling_whose_other_server_is_away() -> Result<()> {
    let stage = Stage::set().await?;
    let (moves, stays) = (objects::config_map("moves", &[("a", "1")]), objects::config_map("stays", &[]));
    stage.repo.commit(&[
        ("from/moves.yaml", objects::manifests(std::slice::from_ref(&moves))),
        ("from/stays.yaml", objects::manifests(&[stays])),
        ("to/other.yaml", objects::manifests(&[objects::config_map("other", &[])])),
    ])?;
    let from = stage.application("moves-from", in_folder("from")).await?;
    let to = stage.application("moves-to", in_folder("to")).await?;
    stage.until_sync(&from, "Synced").await?;
    stage.until_sync(&to, "Synced").await?;
    let before = stage.place.get(&moves).await?.context("it was synced")?;

    // The app that gets the object has a second source by now, whose server is away.
    let (away, taken) = closing_server()?;
    let own = json!({"repoURL": stage.repo.url(), "path": "to", "targetRevision": to["spec"]["source"]["targetRevision"]});
    let sources = |all: Value| json!({"spec": {"source": null, "sources": all}});
    let both = sources(json!([own, {"repoURL": away, "path": "x"}]));
    stage.place.patch_as("a-person", &to, &both).await?;
    stage.until_sync(&to, "Unknown").await?;
    stage.repo.write("to/moves.yaml", objects::manifests(std::slice::from_ref(&moves)).as_bytes())?;
    let commit = stage.repo.remove(&["from/moves.yaml"])?;
    stage.refresh(&from).await?;
    let waits = |app: &Value| message(app).contains("pruning waits") && message(app).contains("/moves-to");
    stage.place.wait(&from, "says what its prune waits for", waits).await?;
    // The sibling is asked again and again meanwhile.
    let asked = taken.load(Ordering::Relaxed);
    let asked_again = async || taken.load(Ordering::Relaxed);
    wait::until_seen(Duration::from_mins(2), "the server is asked again", asked_again, |now| {
        *now > asked + 1
    })
    .await?;
    let uid = |object: &Value| object["metadata"]["uid"].clone();
    let during = stage.place.get(&moves).await?.context("it is still there")?;
    assert_eq!(uid(&during), uid(&before));

    stage.place.patch_as("a-person", &to, &sources(json!([own]))).await?;
    let is_there = |app: &Value| {
        let sync = &app["status"]["sync"];
        let commits = [&sync["revision"], &sync["revisions"][0]];
        sync["status"] == "Synced" && commits.iter().any(|at| **at == commit.as_str())
    };
    stage.place.wait(&from, "is at the commit", is_there).await?;
    stage.place.wait(&to, "is at the commit", is_there).await?;
    let after = stage.place.get(&moves).await?.context("it has moved")?;
    assert_eq!(uid(&after), uid(&before), "it was never deleted");
    Ok(())
}

#[tokio::test]
async fn an_app_whose_source_is_refused_can_be_deleted() -> Result<()> {
    let stage = Stage::set().await?;
    let map = objects::config_map("map", &[("a", "1")]);
    stage.repo.commit(&[("app/map.yaml", objects::manifests(std::slice::from_ref(&map)))])?;
    let project = |repositories: Value| {
        let mut project = objects::app_project("narrow");
        project["spec"]["sourceRepos"] = repositories;
        project
    };
    stage.place.apply(&project(json!(["*"]))).await?;
    let leaving = |app: &mut Value| {
        app["metadata"]["finalizers"] = json!([CASCADE]);
        app["spec"]["project"] = json!("narrow");
        app["spec"]["syncPolicy"] = json!({"automated": {}});
    };
    let app = stage.application("refused-source", leaving).await?;
    stage.until_sync(&app, "Synced").await?;
    stage.place.apply(&project(json!(["https://elsewhere.example.com/*"]))).await?;
    let is_refused =
        |app: &Value| app["status"]["conditions"].to_string().contains("is not permitted in project");
    stage.place.wait(&app, "is refused", is_refused).await?;
    stage.place.delete(&app).await?;
    stage.place.wait_gone(&app).await?;
    stage.place.wait_gone(&map).await?;

    // An app that was never permitted anything has nothing to delete.
    let nowhere = stage
        .application("refused-destination", |app| {
            leaving(app);
            app["spec"]["project"] = json!("never-made");
        })
        .await?;
    stage.place.wait(&nowhere, "misses its project", |app| !app["status"]["conditions"].is_null()).await?;
    stage.place.delete(&nowhere).await?;
    stage.place.wait_gone(&nowhere).await?;
    Ok(())
}
