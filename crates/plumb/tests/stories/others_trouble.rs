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
/// How long a slow chart takes.
const RENDER_TAKES: Duration = Duration::from_mins(1);
/// How many commits are measured.
const COMMITS: usize = 5;
/// On a busy machine a commit may take this much longer by chance.
const FLOOR: Duration = Duration::from_secs(1);
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

/// The file that has a version of the `ServiceAccount`, and what is in it.
type Versioned = fn(&str) -> (&'static str, String);

fn quick_file(version: &str) -> (&'static str, String) {
    ("quick/account.yaml", objects::manifests(&[account(version)]))
}

/// What commits need until the cluster has them: the median of several.
async fn commit_to_live(stage: &Stage, app: &Value, file: Versioned, name: &str) -> Result<Duration> {
    let mut samples = Vec::new();
    for n in 0..COMMITS {
        let version = format!("{name}-{n}");
        stage.repo.commit(&[file(&version)])?;
        let started = Instant::now();
        stage.refresh(app).await?;
        let is_there = |live: &Value| live["metadata"]["annotations"]["v"] == version.as_str();
        stage.place.wait(&account(&version), "is as committed", is_there).await?;
        samples.push(started.elapsed());
    }
    samples.sort_unstable();
    samples.get(COMMITS / 2).copied().context("there are commits")
}

/// Fails if commits take much longer during somebody else's trouble than before.
fn check_unhindered(before: Duration, during: Duration, beside: &str) -> Result<()> {
    let limit = (before * 2).max(before + FLOOR);
    ensure!(during <= limit, "a commit took {during:?} beside {beside}, and {before:?} before");
    Ok(())
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

/// A webhook that takes long for every `ConfigMap` of the namespace that is labelled as slow.
fn slow_webhook(stage: &Stage, authority: &Authority, server: &HttpsServer) -> Value {
    use base64::Engine as _;
    json!({
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
    })
}

fn slow_map(name: &str) -> Value {
    objects::labelled(objects::config_map(name, &[]), "speed", "slow")
}

#[tokio::test]
async fn a_slow_webhook_delays_only_the_app_that_it_looks_at() -> Result<()> {
    let stage = Stage::set().await?;
    let authority = Authority::new("slow webhook")?;
    let server = HttpsServer::start(&authority, None, admit_slowly)?;
    let webhook = slow_webhook(&stage, &authority, &server);
    stage.place.apply(&webhook).await?;
    let slow: Vec<Value> = (0..40).map(|n| slow_map(&format!("slow-{n}"))).collect();
    stage.repo.commit(&[("quick/account.yaml", objects::manifests(&[account("0")]))])?;
    let quick = stage.application("beside-slow-webhook", in_folder("quick")).await?;
    stage.until_sync(&quick, "Synced").await?;
    let before = commit_to_live(&stage, &quick, quick_file, "before").await?;

    stage.repo.commit(&[("slow/maps.yaml", objects::manifests(&slow))])?;
    let app = stage.application("behind-slow-webhook", in_folder("slow")).await?;
    let says_why = |app: &Value| {
        message(app).contains("objects of kind ConfigMap")
            && message(app).contains("an admission webhook may be slow")
    };
    stage.place.wait(&app, "says what it waits for", says_why).await?;
    let during = commit_to_live(&stage, &quick, quick_file, "during").await?;
    stage.place.delete(&webhook).await?;
    check_unhindered(before, during, "the slow webhook")?;
    stage.until_sync(&app, "Synced").await?;
    Ok(())
}

/// More apps wait for the webhook than plumb has workers.
#[tokio::test]
async fn many_apps_behind_a_slow_webhook_leave_room_for_others() -> Result<()> {
    let stage = Stage::set().await?;
    let authority = Authority::new("slow webhook")?;
    let server = HttpsServer::start(&authority, None, admit_slowly)?;
    let webhook = slow_webhook(&stage, &authority, &server);
    stage.place.apply(&webhook).await?;
    let mut files = vec![("quick/account.yaml".to_owned(), objects::manifests(&[account("0")]))];
    for n in 0..30 {
        let maps: Vec<Value> = (0..4).map(|m| slow_map(&format!("slow-{n}-{m}"))).collect();
        files.push((format!("slow-{n}/maps.yaml"), objects::manifests(&maps)));
    }
    stage.repo.commit(&files)?;
    let quick = stage.application("beside-slow-apps", in_folder("quick")).await?;
    stage.until_sync(&quick, "Synced").await?;
    let before = commit_to_live(&stage, &quick, quick_file, "before").await?;
    let mut slow = Vec::new();
    for n in 0..30 {
        let of_folder = |app: &mut Value| {
            in_folder("slow")(app);
            app["spec"]["source"]["path"] = json!(format!("slow-{n}"));
        };
        slow.push(stage.application(&format!("behind-{n}"), of_folder).await?);
    }
    let waits = |app: &Value| message(app).contains("an admission webhook may be slow");
    for app in [slow.first(), slow.last()].into_iter().flatten() {
        stage.place.wait(app, "says what it waits for", waits).await?;
    }
    let during = commit_to_live(&stage, &quick, quick_file, "during").await?;
    stage.place.delete(&webhook).await?;
    check_unhindered(before, during, "30 apps behind a slow webhook")
}

/// A program in place of Helm: it takes long for charts whose release name starts with `slow`.
fn fake_helm(stage: &Stage) -> Result<String> {
    let path = stage.cache().join("fake-helm");
    let map = "apiVersion: v1\\nkind: ConfigMap\\nmetadata: {name: %s}\\n";
    let account =
        "apiVersion: v1\\nkind: ServiceAccount\\nmetadata: {name: quick, annotations: {v: \"%s\"}}\\n";
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in\n*slow-*) sleep {}; printf '{map}' slow ;;\n\
         *) printf '{account}' \"$(cat version)\" ;;\nesac\n",
        RENDER_TAKES.as_secs()
    );
    std::fs::write(&path, script)?;
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    Ok(path.display().to_string())
}

/// More charts than there are places for tools take long, in the same project.
#[tokio::test]
async fn slow_charts_of_one_project_leave_room_for_others() -> Result<()> {
    let mut stage = Stage::bare().await?;
    stage.arguments = vec![format!("--helm={}", fake_helm(&stage)?)];
    stage.begin().await?;
    let chart = "apiVersion: v2\nname: chart\nversion: 1.0.0\n".to_owned();
    stage.repo.commit(&[
        ("slow/Chart.yaml", chart.clone()),
        ("chart/Chart.yaml", chart),
        ("chart/version", "0".to_owned()),
        ("quick/account.yaml", objects::manifests(&[account("0")])),
    ])?;
    let honest = stage.application("honest", in_folder("chart")).await?;
    stage.until_sync(&honest, "Synced").await?;
    let file: Versioned = |version| ("chart/version", version.to_owned());
    let before = commit_to_live(&stage, &honest, file, "before").await?;
    for n in 0..24 {
        stage.application(&format!("slow-{n}"), in_folder("slow")).await?;
    }
    let has_begun =
        async || std::fs::read_dir(stage.cache().join("render/scratch")).map_or(0, Iterator::count);
    wait::until_seen(RENDER_TAKES, "slow charts are rendered", has_begun, |n| *n > 0).await?;
    let during = commit_to_live(&stage, &honest, file, "during").await?;
    check_unhindered(before, during, "24 slow charts")
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
    let before = commit_to_live(&stage, &quick, quick_file, "before").await?;
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
    let during = commit_to_live(&stage, &quick, quick_file, "during").await?;
    drop((first, n_held));
    check_unhindered(before, during, "the dead server")
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
