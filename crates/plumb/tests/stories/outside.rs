//! What plumb tells the world and what the world tells plumb: HTTP, events, logs, and how it starts and stops.

use std::net::SocketAddr;

use anyhow::{Context, Result, ensure};
use aws_lc_rs::hmac;
use plumb_testkit::{objects, wait};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::stage::Stage;

const SECRET: &str = "a webhook's secret";

/// One request, one answer, over a connection of its own.
pub(crate) async fn http(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Result<(u16, String)> {
    let mut stream = TcpStream::connect(address).await?;
    let mut head = format!(
        "{method} {path} HTTP/1.1\r\nhost: plumb\r\nconnection: close\r\ncontent-length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        head = format!("{head}{name}: {value}\r\n");
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let code = answer.split(' ').nth(1).context("no status line")?.parse()?;
    let body = answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default();
    Ok((code, body))
}

pub(crate) async fn get(address: SocketAddr, path: &str) -> Result<(u16, String)> {
    http(address, "GET", path, &[], &[]).await
}

/// A push as GitHub tells it, with a signature made with `secret`.
pub(crate) async fn tell_push(address: SocketAddr, url: &str, secret: Option<&str>) -> Result<u16> {
    let body = json!({
        "ref": "refs/heads/main", "before": "1", "after": "2",
        "repository": {"html_url": url, "default_branch": "main"}, "commits": [],
    })
    .to_string();
    let signed = secret.map(|secret| {
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
        let tag = hmac::sign(&key, body.as_bytes());
        tag.as_ref().iter().fold("sha256=".to_owned(), |text, byte| format!("{text}{byte:02x}"))
    });
    let mut headers = vec![("x-github-event", "push")];
    if let Some(signed) = &signed {
        headers.push(("x-hub-signature-256", signed));
    }
    Ok(http(address, "POST", "/api/webhook", &headers, body.as_bytes()).await?.0)
}

/// The line of a metric that has all these labels.
pub(crate) fn metric<'a>(text: &'a str, name: &str, labels: &[&str]) -> Option<&'a str> {
    text.lines().find(|line| {
        line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' ']))
            && labels.iter().all(|label| line.contains(label))
    })
}

#[tokio::test]
async fn a_push_is_told_counted_and_written_down() -> Result<()> {
    let stage = Stage::set().await?;
    let (web, inside) = (stage.address("webhooks").await?, stage.address("metrics and health").await?);
    stage.place.apply(&objects::secret("argocd-secret", &[("webhook.github.secret", SECRET)])).await?;
    let map = |value: &str| objects::manifests(&[objects::config_map("told", &[("a", value)])]);
    stage.repo.commit(&[("app/map.yaml", map("1"))])?;
    let app = stage.application("told", |app| app["spec"]["syncPolicy"] = json!({"automated": {}})).await?;
    stage.until_sync(&app, "Synced").await?;
    assert_eq!(get(inside, "/healthz").await?.0, 200);
    assert_eq!(get(inside, "/readyz").await?, (200, "leading\n".to_owned()));

    // Nobody polls within this test: what comes next comes by the webhook.
    let second = stage.repo.commit(&[("app/map.yaml", map("2"))])?;
    let url = stage.repo.url();
    assert_eq!(tell_push(web, &url, None).await?, 401, "no signature");
    assert_eq!(tell_push(web, &url, Some("another secret")).await?, 401, "another's signature");
    assert_eq!(
        http(
            web,
            "POST",
            "/api/webhook",
            &[("x-github-event", "push"), ("x-hub-signature-256", "sha256=00")],
            b"\xff{"
        )
        .await?
        .0,
        401,
        "not read"
    );
    assert_eq!(http(web, "POST", "/api/webhook", &[], b"{}").await?.0, 400, "nobody's");
    assert_eq!(get(web, "/metrics").await?.0, 404, "numbers are not for the world");
    assert_eq!(tell_push(web, &url, Some(SECRET)).await?, 200);
    stage
        .place
        .wait(&app, "is at the new commit", |app| {
            app["status"]["sync"]["revision"] == second.as_str()
                && app["status"]["sync"]["status"] == "Synced"
        })
        .await?;

    assert_eq!(get(inside, "/metrics").await?.0, 200);
    // plumb knows what it wrote by the answer; that the watch tells of it too may come after the status.
    let of_watch = ("argocd_cluster_events_total", &["kind=\"ConfigMap\""]);
    let is_counted = |text: &String| metric(text, of_watch.0, of_watch.1).is_some();
    let limit = std::time::Duration::from_secs(30);
    let text =
        wait::until_seen(limit, "the watch is counted", async || numbers(inside).await, is_counted).await?;
    let namespace = format!("namespace=\"{}\"", stage.place.name());
    for (name, labels) in [
        (
            "argocd_app_info",
            &[
                namespace.as_str(),
                "name=\"told\"",
                "project=\"default\"",
                "autosync_enabled=\"true\"",
                "dest_server=\"https://kubernetes.default.svc\"",
                "sync_status=\"Synced\"",
            ][..],
        ),
        ("argocd_app_sync_total", &["name=\"told\"", "phase=\"Succeeded\"", "dry_run=\"false\""]),
        ("argocd_app_sync_duration_seconds_total", &["name=\"told\""]),
        ("argocd_app_reconcile_count", &[namespace.as_str()]),
        ("argocd_app_reconcile_bucket", &["le=\"+Inf\""]),
        ("argocd_app_k8s_request_total", &["name=\"told\"", "verb=\"Patch\"", "response_code=\"200\""]),
        ("argocd_cluster_info", &["server=\"https://kubernetes.default.svc\"", "name=\"in-cluster\""]),
        ("argocd_cluster_connection_status", &["server=\"https://kubernetes.default.svc\"", "} 1"]),
        ("argocd_cluster_api_resources", &["server=\"https://kubernetes.default.svc\""]),
        ("argocd_cluster_api_resource_objects", &[]),
        ("argocd_cluster_cache_age_seconds", &["server=\"https://kubernetes.default.svc\""]),
        ("argocd_resource_events_processing_count", &["server=\"https://kubernetes.default.svc\""]),
        ("argocd_resource_events_processed_in_batch", &["server=\"https://kubernetes.default.svc\""]),
        ("argocd_git_request_total", &["request_type=\"ls-remote\""]),
        ("argocd_webhook_requests_total", &["sender=\"github\"", "outcome=\"refused\"} 3"]),
        ("argocd_webhook_requests_total", &["sender=\"github\"", "outcome=\"taken\"} 1"]),
        ("workqueue_depth", &["name=\"app_reconciliation_queue\""]),
        ("workqueue_adds_total", &["name=\"app_reconciliation_queue\""]),
        ("workqueue_queue_duration_seconds_count", &["name=\"app_reconciliation_queue\""]),
        ("workqueue_work_duration_seconds_count", &["name=\"app_reconciliation_queue\""]),
        ("workqueue_unfinished_work_seconds", &["name=\"app_reconciliation_queue\""]),
        ("workqueue_longest_running_processor_seconds", &["name=\"app_reconciliation_queue\""]),
        ("process_resident_memory_bytes", &[]),
        ("process_cpu_seconds_total", &[]),
        ("plumb_renders_total", &["cached=\"false\""]),
        ("plumb_leader", &[" 1"]),
    ] {
        ensure!(metric(&text, name, labels).is_some(), "{name} {labels:?} is missing in\n{text}");
    }
    assert!(!text.contains(SECRET));

    // Events come a moment later, and stay few.
    let reasons = |events: &plumb_testkit::wait::Seen| -> Vec<String> {
        let of_app = events.values().filter(|event| event["involvedObject"]["name"] == "told");
        of_app
            .map(|event| {
                format!(
                    "{} {}",
                    event["reason"].as_str().unwrap_or_default(),
                    event["message"].as_str().unwrap_or_default()
                )
            })
            .collect()
    };
    let completed = format!("OperationCompleted Sync operation to {second} succeeded");
    let events = stage
        .place
        .wait_list("v1", "Event", "", "tell of the second sync", |events| {
            reasons(events).contains(&completed)
        })
        .await?;
    let told = reasons(&events);
    assert!(told.contains(&format!("OperationStarted Initiated automated sync to '{second}'")), "{told:#?}");
    assert!(
        told.iter().any(|event| event.starts_with("ResourceUpdated Updated sync status: ")
            && event.ends_with("-> Synced")),
        "{told:#?}"
    );
    assert!(told.len() <= 16, "{told:#?}");
    let event = events.values().find(|event| event["reason"] == "OperationCompleted").context("an event")?;
    assert_eq!(event["source"]["component"], "argocd-application-controller");
    assert_eq!(event["metadata"]["annotations"]["dest-server"], "https://kubernetes.default.svc");
    Ok(())
}

async fn numbers(inside: SocketAddr) -> String {
    get(inside, "/metrics").await.map(|(_, text)| text).unwrap_or_default()
}

/// Connections from another address of this machine that announce a body and do not send it.
async fn slow_clients(web: SocketAddr, n_clients: usize) -> Result<Vec<TcpStream>> {
    let mut slow = Vec::new();
    for _ in 0..n_clients {
        let socket = tokio::net::TcpSocket::new_v4()?;
        socket.bind("127.0.0.2:0".parse()?)?;
        let mut stream = socket.connect(web).await?;
        let head = "POST /api/webhook HTTP/1.1\r\nhost: plumb\r\nx-github-event: push\r\ncontent-length: 900000\r\n\r\n{";
        stream.write_all(head.as_bytes()).await?;
        slow.push(stream);
    }
    Ok(slow)
}

#[tokio::test]
async fn slow_and_large_webhooks_do_not_keep_others_out() -> Result<()> {
    let stage = Stage::set().await?;
    let web = stage.address("webhooks").await?;
    let url = stage.repo.url();
    let ready = async || tell_push(web, &url, None).await.ok();
    wait::until_seen(wait::LIMIT, "pushes are taken", ready, |code| *code == Some(200)).await?;

    let slow = slow_clients(web, 40).await?;
    let told = std::time::Instant::now();
    assert_eq!(tell_push(web, &url, None).await?, 200);
    // A body that does not arrive is given up after five seconds: this one did not wait for that.
    ensure!(told.elapsed() < std::time::Duration::from_secs(4), "it waited {:?}", told.elapsed());
    drop(slow);

    let large = vec![b' '; (1 << 20) + 1];
    let (code, answer) = http(web, "POST", "/api/webhook", &[("x-github-event", "push")], &large)
        .await
        .unwrap_or((413, "larger".to_owned()));
    assert_eq!(code, 413, "{answer}");
    let flood = format!("{{\"repository\": [{}0]}}", "{\"\":0},".repeat(100_000));
    let (code, answer) =
        http(web, "POST", "/api/webhook", &[("x-github-event", "push")], flood.as_bytes()).await?;
    assert_eq!((code, answer.as_str()), (400, "the body names no repository\n"));
    Ok(())
}

#[tokio::test]
async fn the_labels_of_a_cluster_are_numbers_where_somebody_asks_for_them() -> Result<()> {
    let mut stage = Stage::bare().await?;
    stage
        .setting("argocd-cmd-params-cm", "controller.metrics.cluster.labels", "team, cloud.example/region")
        .await?;
    let secret = objects::secret("here", &[("server", "https://kubernetes.default.svc"), ("name", "here")]);
    let secret = objects::labelled(secret, "argocd.argoproj.io/secret-type", "cluster");
    stage.place.apply(&objects::labelled(secret.clone(), "team", "blue")).await?;
    stage.begin().await?;
    let inside = stage.address("metrics and health").await?;
    let has = |labels: &'static [&'static str]| {
        move |text: &String| metric(text, "argocd_cluster_labels", labels).is_some()
    };
    let what = "the labels are there, those that the Secret lacks empty";
    let blue = has(&["name=\"here\"", "label_team=\"blue\"", "label_cloud_example_region=\"\"", "} 1"]);
    let text = wait::until_seen(wait::LIMIT, what, async || numbers(inside).await, blue).await?;
    ensure!(metric(&text, "argocd_cluster_info", &["name=\"here\""]).is_some(), "{text}");
    // Another label is another number, and the cluster is not read anew for it.
    stage.place.apply(&objects::labelled(secret, "team", "red")).await?;
    let red = has(&["label_team=\"red\""]);
    wait::until_seen(wait::LIMIT, "the label follows", async || numbers(inside).await, red).await?;
    ensure!(!stage.log()?.contains("restarting: a user asked"));

    // Whoever asks for it gets everything read anew.
    let ask = json!({"metadata": {"annotations": {"argocd.argoproj.io/refresh": "2026-11-16T10:00:00Z"}}});
    stage.place.patch_as("argocd-server", &objects::secret("here", &[]), &ask).await?;
    let log = async || stage.log().unwrap_or_default();
    // The first start may still have been busy: what counts is what comes after the word.
    let is_anew = |log: &String| {
        log.split_once("restarting: a user asked")
            .is_some_and(|(_, after)| after.contains("applications known"))
    };
    wait::until_seen(wait::LIMIT, "plumb reads the cluster anew", log, is_anew).await?;
    Ok(())
}

#[tokio::test]
async fn it_stops_in_order_says_so_as_json_and_a_killed_one_is_not_waited_for() -> Result<()> {
    let mut stage = Stage::bare().await?;
    stage.arguments = vec!["--log-format=json".to_owned()];
    stage.begin().await?;
    let lease =
        json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "plumb"}});
    let held =
        |lease: &Value| lease["spec"]["holderIdentity"].as_str().is_some_and(|holder| !holder.is_empty());
    let first = stage.place.wait(&lease, "is held", held).await?;

    stage.kill_plumb()?;
    stage.start_plumb()?;
    let changed =
        |lease: &Value| held(lease) && lease["spec"]["holderIdentity"] != first["spec"]["holderIdentity"];
    stage.place.wait(&lease, "is held by another", changed).await?;
    assert!(stage.log()?.contains("ended without releasing the lease"), "by proof, not by waiting");

    let status = stage.stop_plumb()?;
    assert!(status.success(), "{status}");
    let free = stage.place.wait(&lease, "is free", |lease| !held(lease)).await?;
    assert_eq!(free["spec"]["holderIdentity"], "");
    let log = stage.log()?;
    for line in log.lines() {
        let line: Value = serde_json::from_str(line).with_context(|| line.to_owned())?;
        ensure!(
            line["level"].is_string()
                && line["timestamp"].is_string()
                && line["fields"]["message"].is_string(),
            "{line}"
        );
    }
    assert!(log.contains("\"stopping\""), "{log}");
    Ok(())
}

#[tokio::test]
async fn it_does_not_start_beside_another_controller() -> Result<()> {
    let mut stage = Stage::bare().await?;
    let mut pod = objects::pod("argocd-application-controller-0");
    pod["spec"]["containers"][0]["command"] = json!(["/usr/local/bin/argocd-application-controller"]);
    stage.place.apply(&pod).await?;
    let ready = |pod: &Value| {
        pod["status"]["conditions"]
            .as_array()
            .into_iter()
            .flatten()
            .any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
    };
    stage.place.wait(&pod, "is ready", ready).await?;
    stage.start_plumb()?;
    let status = stage.wait_for_plumb()?;
    assert_eq!(status.code(), Some(20));
    let log = stage.log()?;
    assert!(
        log.contains("pod argocd-application-controller-0") && log.contains("--beside-other-controllers"),
        "{log}"
    );

    stage.arguments = vec!["--beside-other-controllers".to_owned()];
    stage.begin().await?;
    Ok(())
}
