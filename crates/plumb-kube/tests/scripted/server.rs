//! An API server that plays a script: it serves one kind, `v1/ConfigMap`, and answers watches and requests as
//! each test says. It is stricter than a real one: a request that the script does not expect fails the test.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Frame;
use plumb_kube::{ClusterClient, RequestBody, Transport};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, service_fn};

/// What a watch of the script does, in order.
#[derive(Clone, Debug)]
pub(crate) enum Play {
    /// One event.
    Event(Value),
    /// Silence for so many seconds.
    Pause(u64),
    /// The connection breaks.
    Break,
    /// The server closes in good order.
    Close,
    /// The watch is refused.
    Refuse(u16),
}

type Headers = Vec<(&'static str, String)>;

#[derive(Default)]
struct Script {
    watches: VecDeque<Vec<Play>>,
    answers: VecDeque<(u16, Headers, Value)>,
    seen: Vec<String>,
}

/// The script and what was asked.
#[derive(Clone, Default)]
pub(crate) struct Server(Arc<Mutex<Script>>);

impl Server {
    pub(crate) fn client(&self) -> ClusterClient {
        let requests = self.lane();
        let watches = self.lane();
        ClusterClient::over(Transport { requests, watches }, "http://scripted".to_owned())
    }

    /// The next watch plays this.
    pub(crate) fn watch(&self, plays: Vec<Play>) -> &Self {
        self.0.lock().unwrap().watches.push_back(plays);
        self
    }

    /// The next request that is neither discovery nor a watch is answered with this.
    pub(crate) fn answer(&self, code: u16, headers: Headers, body: Value) -> &Self {
        self.0.lock().unwrap().answers.push_back((code, headers, body));
        self
    }

    /// Method and path of everything that was asked, discovery left out.
    pub(crate) fn seen(&self) -> Vec<String> {
        self.0.lock().unwrap().seen.clone()
    }

    fn lane(&self) -> plumb_kube::Lane {
        let server = self.clone();
        BoxCloneSyncService::new(service_fn(move |request: Request<RequestBody>| {
            let server = server.clone();
            async move { Ok::<_, BoxError>(server.respond(&request)) }
        }))
    }

    fn respond(&self, request: &Request<RequestBody>) -> Response<plumb_kube::AnswerBody> {
        let path = request.uri().path();
        if let (&Method::GET, Some(body)) = (request.method(), discovery(path)) {
            return whole(200, &[("content-type", AGGREGATED.to_owned())], &body);
        }
        let asked = format!("{} {}", request.method(), request.uri());
        let mut script = self.0.lock().unwrap();
        script.seen.push(asked);
        if request.uri().query().is_some_and(|query| query.contains("watch=true")) {
            // A follower that comes back more often than the script expects finds silence.
            let plays = script.watches.pop_front().unwrap_or_else(|| vec![Play::Pause(86400)]);
            return play(plays);
        }
        match script.answers.pop_front() {
            Some((code, headers, body)) => whole(code, &headers, &body),
            None => whole(500, &[], &json!({"message": "not in the script"})),
        }
    }
}

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

fn discovery(path: &str) -> Option<Value> {
    match path {
        "/version" => Some(json!({"major": "1", "minor": "36", "gitVersion": "v1.36.0"})),
        "/openapi/v3" => Some(json!({"paths": {}})),
        "/apis" => Some(json!({"items": []})),
        "/api" => {
            Some(json!({"items": [{"metadata": {"name": ""}, "versions": [{"version": "v1", "resources": [{
            "resource": "configmaps", "responseKind": {"kind": "ConfigMap"}, "scope": "Namespaced",
            "verbs": ["get", "list", "watch", "create", "patch", "update", "delete"]}]}]}]}))
        }
        _ => None,
    }
}

fn whole(code: u16, headers: &[(&'static str, String)], body: &Value) -> Response<plumb_kube::AnswerBody> {
    let mut response = Response::builder().status(code);
    for (name, value) in headers {
        response = response.header(*name, value);
    }
    let body = Full::new(Bytes::from(body.to_string())).map_err(|never: Infallible| match never {});
    response.body(body.boxed_unsync()).unwrap()
}

fn play(plays: Vec<Play>) -> Response<plumb_kube::AnswerBody> {
    if let [Play::Refuse(code)] = plays.as_slice() {
        let reason = if *code == 410 { "Expired" } else { "" };
        return whole(*code, &[], &json!({"kind": "Status", "code": code, "reason": reason}));
    }
    let (sender, receiver) = mpsc::unbounded_channel::<Result<Frame<Bytes>, BoxError>>();
    tokio::spawn(async move {
        for play in plays {
            match play {
                Play::Event(event) => {
                    let line = format!("{event}\n");
                    // Two frames, to prove that lines are put together again.
                    let (head, tail) = line.as_bytes().split_at(line.len() / 2);
                    for part in [head, tail] {
                        let _ = sender.send(Ok(Frame::data(Bytes::copy_from_slice(part))));
                    }
                }
                Play::Pause(seconds) => tokio::time::sleep(Duration::from_secs(seconds)).await,
                Play::Break => {
                    let _ = sender.send(Ok(Frame::data(Bytes::from_static(b"{\"type\":\"ADDED\",\"obj"))));
                    let _ = sender.send(Err("connection reset by peer".into()));
                    return;
                }
                Play::Close | Play::Refuse(_) => return,
            }
        }
        // What the script leaves open stays open.
        tokio::time::sleep(Duration::from_hours(24)).await;
    });
    let stream = futures::stream::unfold(receiver, |mut receiver| async move {
        receiver.recv().await.map(|frame| (frame, receiver))
    });
    Response::new(StreamBody::new(stream.boxed()).boxed_unsync())
}

/// A `ConfigMap` in a state.
pub(crate) fn object(name: &str, uid: &str, version: u64) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
        "name": name, "namespace": "a", "uid": uid, "resourceVersion": version.to_string(),
        "annotations": {"argocd.argoproj.io/tracking-id": format!("app:/ConfigMap:a/{name}")}}})
}

pub(crate) fn added(name: &str, uid: &str, version: u64) -> Play {
    Play::Event(json!({"type": "ADDED", "object": object(name, uid, version)}))
}

/// One that no app tracks.
pub(crate) fn untracked(name: &str, uid: &str, version: u64) -> Play {
    let mut object = object(name, uid, version);
    object["metadata"]["annotations"] = json!({});
    Play::Event(json!({"type": "ADDED", "object": object}))
}

pub(crate) fn modified(name: &str, uid: &str, version: u64) -> Play {
    Play::Event(json!({"type": "MODIFIED", "object": object(name, uid, version)}))
}

pub(crate) fn deleted(name: &str, uid: &str, version: u64) -> Play {
    Play::Event(json!({"type": "DELETED", "object": object(name, uid, version)}))
}

pub(crate) fn bookmark(version: u64) -> Play {
    Play::Event(json!({"type": "BOOKMARK", "object": {"kind": "ConfigMap", "apiVersion": "v1",
        "metadata": {"resourceVersion": version.to_string()}}}))
}

pub(crate) fn list_end(version: u64) -> Play {
    Play::Event(json!({"type": "BOOKMARK", "object": {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {
        "resourceVersion": version.to_string(), "annotations": {"k8s.io/initial-events-end": "true"}}}}))
}

pub(crate) fn expired() -> Play {
    Play::Event(json!({"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired",
        "message": "too old resource version"}}))
}
