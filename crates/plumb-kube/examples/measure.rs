//! Figures that the design rests on, measured against a real API server.
//!
//! `measure KUBECONFIG throughput`: how many small applies a second, by protocol and by client.
//! `measure KUBECONFIG latency`: from another client's write to the change that the store tells.
//! `measure KUBECONFIG memory [N]`: what N objects take, fed through the real watch code from a script.
#![expect(clippy::print_stdout, clippy::unwrap_used, clippy::expect_used, reason = "a program for figures")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::StreamExt;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Frame;
use plumb_core::object::{GroupVersionKind, Manifest};
use plumb_core::tracking::TrackingSettings;
use plumb_kube::{
    AnswerBody, ApplyOptions, ClusterClient, Connection, Fence, Gate, Lane, LiveOptions, LiveStore, Protocol,
    RequestBody, Selection, Transport, WritePermit, owner_by,
};
use serde_json::{Value, json};
use tower::util::BoxCloneSyncService;
use tower::{BoxError, service_fn};

const NAMESPACE: &str = "plumb-measure";

#[tokio::main]
async fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let kubeconfig = Path::new(args.first().expect("a kubeconfig"));
    let n = args.get(2).map_or(20_000, |n| n.parse().expect("a number"));
    match args.get(1).map(String::as_str) {
        Some("throughput") => throughput(kubeconfig).await,
        Some("latency") => latency(kubeconfig).await,
        Some("memory") => memory(kubeconfig, n).await,
        _ => println!("what? throughput, latency or memory"),
    }
}

async fn connect(kubeconfig: &Path, protocol: Protocol) -> ClusterClient {
    let connection = Connection::from_kubeconfig(kubeconfig, None).await.unwrap().with_protocol(protocol);
    let client = connection.client().unwrap();
    client.discover().await.unwrap();
    client
}

async fn apply(gate: &Gate, object: Value) -> Manifest {
    let manifest = Manifest::new(object).unwrap();
    let permit = WritePermit::requested_by_user(manifest.key().unwrap());
    gate.apply(&permit, &manifest, &ApplyOptions::default()).await.unwrap().manifest
}

fn namespace() -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
}

fn config_map(name: &str, text: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": NAMESPACE,
        "annotations": {"argocd.argoproj.io/tracking-id": format!("measure:/ConfigMap:{NAMESPACE}/{name}")}},
        "data": {"text": text}})
}

// --- throughput ------------------------------------------------------------------------------------------

const APPLIES: usize = 1500;

async fn throughput(kubeconfig: &Path) {
    let client = connect(kubeconfig, Protocol::Http2).await;
    apply(&Gate::new(client, Fence::of_command(), None), namespace()).await;
    for round in 0..3 {
        for (name, protocol) in [("HTTP/2", Protocol::Http2), ("HTTP/1.1", Protocol::Http1)] {
            let client = connect(kubeconfig, protocol).await;
            let gate = Gate::new(client.clone(), Fence::of_command(), None);
            let started = Instant::now();
            futures::stream::iter(0..APPLIES)
                .for_each_concurrent(512, |n| {
                    let gate = &gate;
                    async move {
                        apply(gate, config_map(&format!("m-{n}"), &format!("{name} {round}"))).await;
                    }
                })
                .await;
            report(&format!("plumb-kube {name}"), started.elapsed(), client.concurrency());
        }
        for concurrency in [16, 32, 64] {
            bare_loop(kubeconfig, concurrency, round).await;
        }
    }
}

/// The least that a program can do: kube's client, the same requests, a fixed number at once.
async fn bare_loop(kubeconfig: &Path, concurrency: usize, round: usize) {
    let file = kube::config::Kubeconfig::read_from(kubeconfig).unwrap();
    let options = kube::config::KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(file, &options).await.unwrap();
    let client = kube::Client::try_from(config).unwrap();
    let started = Instant::now();
    futures::stream::iter(0..APPLIES)
        .for_each_concurrent(concurrency, |n| {
            let client = client.clone();
            async move {
                let name = format!("m-{n}");
                let body = config_map(&name, &format!("bare {concurrency} {round}")).to_string();
                let uri = format!(
                    "/api/v1/namespaces/{NAMESPACE}/configmaps/{name}?fieldManager=argocd-controller&force=true&fieldValidation=Strict"
                );
                let request = Request::builder()
                    .method(Method::PATCH)
                    .uri(uri)
                    .header("content-type", "application/apply-patch+yaml")
                    .body(body.into_bytes())
                    .unwrap();
                client.request_text(request).await.unwrap();
            }
        })
        .await;
    report("bare loop HTTP/1.1", started.elapsed(), concurrency);
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn report(what: &str, took: Duration, concurrency: usize) {
    let rate = APPLIES as f64 / took.as_secs_f64();
    println!("{what:<20} {APPLIES} applies in {took:>8.1?}  {rate:>7.0}/s  concurrency {concurrency}");
}

// --- latency ---------------------------------------------------------------------------------------------

async fn latency(kubeconfig: &Path) {
    let writer = connect(kubeconfig, Protocol::Http2).await;
    let gate = Gate::new(writer, Fence::of_command(), None);
    apply(&gate, namespace()).await;
    let reader = connect(kubeconfig, Protocol::Http2).await;
    let store = LiveStore::start(reader, LiveOptions::new(owner_by(TrackingSettings::default())));
    let started = Instant::now();
    store.wait_complete().await;
    println!("complete after {:?}: {:?}", started.elapsed(), store.size());
    let mut changes = store.subscribe();
    let mut after_answer = Vec::new();
    let mut after_request = Vec::new();
    for n in 0..300 {
        let sent = Instant::now();
        let written = apply(&gate, config_map("latency", &n.to_string())).await;
        let answered = Instant::now();
        loop {
            let change = changes.recv().await.unwrap();
            if change.key == written.key().unwrap() {
                break;
            }
        }
        after_answer.push(answered.elapsed());
        after_request.push(sent.elapsed());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    for (what, mut times) in [("request to change", after_request), ("answer to change", after_answer)] {
        times.sort();
        println!("{what}: p50 {:?} p99 {:?}", times[times.len() / 2], times[times.len() * 99 / 100]);
    }
}

// --- memory ----------------------------------------------------------------------------------------------

/// Objects of the cluster itself, as patterns for many more.
async fn patterns(kubeconfig: &Path) -> Vec<(String, String)> {
    let client = connect(kubeconfig, Protocol::Http2).await;
    let gate = Gate::new(client.clone(), Fence::of_command(), None);
    apply(&gate, namespace()).await;
    let mark = |kind: &str, name: &str| json!({"argocd.argoproj.io/tracking-id": format!("measure:{kind}:{NAMESPACE}/{name}")});
    let labels = json!({"app": "pattern", "team": "measure", "chart": "pattern-1.2.3"});
    apply(&gate, json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "pattern", "namespace": NAMESPACE, "labels": labels, "annotations": mark("apps/Deployment", "pattern")},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "pattern"}},
            "template": {"metadata": {"labels": labels}, "spec": {"serviceAccountName": "default",
                "containers": [{"name": "web", "image": "registry.example/team/web:1.2.3",
                    "ports": [{"containerPort": 8080}], "env": [{"name": "A", "value": "b"}, {"name": "C", "value": "d"}],
                    "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"memory": "128Mi"}},
                    "readinessProbe": {"httpGet": {"path": "/ready", "port": 8080}},
                    "envFrom": [{"configMapRef": {"name": "pattern"}}]}]}}}})).await;
    apply(&gate, json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "pattern", "namespace": NAMESPACE, "labels": labels, "annotations": mark("/Service", "pattern")},
        "spec": {"selector": {"app": "pattern"}, "ports": [{"port": 80, "targetPort": 8080}]}})).await;
    apply(&gate, json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "pattern", "namespace": NAMESPACE, "labels": labels, "annotations": mark("/ConfigMap", "pattern")},
        "data": {"settings.yaml": "level: info\nworkers: 4\n".repeat(20)}})).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let mut found = Vec::new();
    for (api_version, kind) in [
        ("apps/v1", "Deployment"),
        ("v1", "Service"),
        ("v1", "ConfigMap"),
        ("apps/v1", "ReplicaSet"),
        ("v1", "Pod"),
    ] {
        let gvk = GroupVersionKind::from_api_version(api_version, kind);
        let selection = Selection { namespace: Some(NAMESPACE.to_owned()), ..Selection::default() };
        let objects = client.list(&gvk, &selection).await.unwrap();
        let object =
            objects.iter().find(|object| object.name().is_some_and(|name| name.starts_with("pattern")));
        let object = object.expect("a pattern of each kind");
        println!("{kind}: {} bytes of JSON", object.value().to_string().len());
        found.push((kind.to_owned(), object.value().to_string()));
    }
    found
}

fn vary(pattern: &str, n: usize) -> String {
    let object: Value = serde_json::from_str(pattern).unwrap();
    let uid = object["metadata"]["uid"].as_str().unwrap();
    let version = object["metadata"]["resourceVersion"].as_str().unwrap();
    pattern
        .replace(uid, &format!("0b9f1c4e-8d3a-4f6e-9a51-{n:012x}"))
        .replace(
            &format!("\"resourceVersion\":\"{version}\""),
            &format!("\"resourceVersion\":\"{}\"", 1000 + n),
        )
        .replace("\"pattern", &format!("\"web-{n}"))
        .replace("measure:", &format!("app-{}:", n / 4))
        .replace(NAMESPACE, &format!("team-{}", n % 200))
        .replace("/pattern", &format!("/web-{n}"))
}

async fn memory(kubeconfig: &Path, n: usize) {
    let patterns = Arc::new(patterns(kubeconfig).await);
    let each = n / patterns.len();
    let served = Arc::new(AtomicUsize::new(0));
    let lane = scripted(Arc::clone(&patterns), each, Arc::clone(&served));
    let client =
        ClusterClient::over(Transport { requests: lane.clone(), watches: lane }, "http://script".to_owned());
    let before = resident();
    let started = Instant::now();
    let store = LiveStore::start(client, LiveOptions::new(owner_by(TrackingSettings::default())));
    store.wait_complete().await;
    let took = started.elapsed();
    let size = store.size();
    println!("{size:?} in {took:?}, {} MiB of JSON", served.load(Ordering::Relaxed) / 1024 / 1024);
    println!("resident: {} KiB before, {} KiB after", before, resident());
    let started = Instant::now();
    let snapshot = store.snapshot("app-10", &[], &[]).await;
    println!("a snapshot of {} objects takes {:?}", snapshot.live.objects.len(), started.elapsed());
}

fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// A server of many objects that are made while they are sent.
fn scripted(patterns: Arc<Vec<(String, String)>>, each: usize, served: Arc<AtomicUsize>) -> Lane {
    BoxCloneSyncService::new(service_fn(move |request: Request<RequestBody>| {
        let (patterns, served) = (Arc::clone(&patterns), Arc::clone(&served));
        async move { Ok::<_, BoxError>(respond(&request, &patterns, each, &served)) }
    }))
}

fn respond(
    request: &Request<RequestBody>,
    patterns: &[(String, String)],
    each: usize,
    served: &Arc<AtomicUsize>,
) -> Response<AnswerBody> {
    let resources = |group: &str| {
        let resources: Vec<Value> = patterns
            .iter()
            .filter(|(kind, _)| matches!(kind.as_str(), "Deployment" | "ReplicaSet") == (group == "apps"))
            .map(|(kind, _)| {
                json!({"resource": format!("{}s", kind.to_lowercase()), "responseKind": {"kind": kind},
                "scope": "Namespaced", "verbs": ["get", "list", "watch"]})
            })
            .collect();
        json!({"items": [{"metadata": {"name": group}, "versions": [{"version": "v1", "resources": resources}]}]})
    };
    let body = match request.uri().path() {
        "/version" => json!({"minor": "36"}),
        "/openapi/v3" => json!({}),
        "/api" => resources(""),
        "/apis" => resources("apps"),
        path => {
            let plural = path.rsplit('/').next().unwrap_or_default().to_owned();
            let at =
                patterns.iter().position(|(kind, _)| format!("{}s", kind.to_lowercase()) == plural).unwrap();
            return stream(patterns[at].1.clone(), at * each, each, Arc::clone(served));
        }
    };
    let body = Full::new(Bytes::from(body.to_string())).map_err(|never| match never {});
    Response::builder()
        .header("content-type", "application/json;g=apidiscovery.k8s.io;v=v2")
        .body(body.boxed_unsync())
        .unwrap()
}

fn stream(pattern: String, first: usize, each: usize, served: Arc<AtomicUsize>) -> Response<AnswerBody> {
    let objects = futures::stream::iter(first..first + each).map(move |n| {
        let line = format!("{{\"type\":\"ADDED\",\"object\":{}}}\n", vary(&pattern, n));
        served.fetch_add(line.len(), Ordering::Relaxed);
        Ok(Frame::data(Bytes::from(line)))
    });
    let end = json!({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "999999",
        "annotations": {"k8s.io/initial-events-end": "true"}}}});
    let end = futures::stream::iter([Ok(Frame::data(Bytes::from(format!("{end}\n"))))]);
    let body = objects.chain(end).chain(futures::stream::pending::<Result<Frame<Bytes>, BoxError>>());
    Response::new(StreamBody::new(body.boxed()).boxed_unsync())
}
