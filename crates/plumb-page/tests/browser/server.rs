//! A small server with the page's files and the page's own calls, over the real read model.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use bytes::Bytes;
use futures::StreamExt as _;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use plumb_crd::Application;
use plumb_page::{Changes, Row, Token, View, activity, asset, columns, home, index_html};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// How many apps there are.
pub(crate) const N_APPS: usize = 10_000;
/// A text that must never become part of the document.
pub(crate) const HOSTILE: &str = "<img src=x onerror=alert(1)>";

type Body = UnsyncBoxBody<Bytes, Infallible>;

struct Shared {
    view: Mutex<View>,
    changed: watch::Sender<u64>,
    cut: Mutex<CancellationToken>,
}

/// The server. It ends with the runtime.
pub(crate) struct Server {
    shared: Arc<Shared>,
    address: SocketAddr,
}

fn app(name: &str, health: &str, message: &str) -> Application {
    let value = json!({
        "metadata": {"name": name, "namespace": "argocd", "uid": name, "resourceVersion": message.len().to_string()},
        "spec": {"project": "shop", "destination": {"name": "prod", "namespace": "pay"},
                 "source": {"repoURL": "https://git.example/x.git", "targetRevision": "main"}},
        "status": {"sync": {"status": "Synced", "revision": "3f2c9d1aa0"},
                   "health": {"status": health, "message": message, "lastTransitionTime": "2026-11-01T00:00:00Z"}},
    });
    Application::from_json(&value).unwrap_or_default()
}

impl Server {
    pub(crate) async fn start() -> Result<Self> {
        let mut view = View::new(1);
        for n in 0..N_APPS {
            let (health, message) = if n == 3 { ("Degraded", HOSTILE) } else { ("Healthy", "") };
            view.note_app(app(&format!("app-{n}"), health, message), "prod");
        }
        let report = json!({
            "metadata": {"name": "app-3", "namespace": "argocd"},
            "summary": {"counted": 0, "explained": 0, "worst": ""}, "findings": [],
            "health": [{"group": "apps", "kind": "Deployment", "namespace": "pay", "name": HOSTILE, "status": "Progressing",
                        "stuck": true, "message": HOSTILE, "since": "2026-11-01T00:00:00Z"}],
        });
        view.note_report(plumb_crd::DriftReport::from_json(&report)?);
        let shared = Arc::new(Shared {
            view: Mutex::new(view),
            changed: watch::channel(0).0,
            cut: Mutex::new(CancellationToken::new()),
        });
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let serving = Arc::clone(&shared);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let shared = Arc::clone(&serving);
                tokio::spawn(async move {
                    let service = service_fn(|request| {
                        let shared = Arc::clone(&shared);
                        async move { Ok::<_, Infallible>(answer(&shared, &request)) }
                    });
                    let _ = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        Ok(Self { shared, address })
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.address)
    }

    /// Makes an app ill.
    pub(crate) fn degrade(&self, name: &str) {
        lock(&self.shared.view).note_app(app(name, "Degraded", "crashes"), "prod");
        self.shared.changed.send_modify(|number| *number += 1);
    }

    /// Cuts all open streams.
    pub(crate) fn cut(&self) {
        std::mem::take(&mut *lock(&self.shared.cut)).cancel();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn whole(kind: &str, body: impl Into<Bytes>) -> Response<Body> {
    let mut answer = Response::new(Full::new(body.into()).boxed_unsync());
    if let Ok(kind) = kind.parse() {
        answer.headers_mut().insert("content-type", kind);
    }
    answer
}

fn answer(shared: &Arc<Shared>, request: &Request<Incoming>) -> Response<Body> {
    let path = request.uri().path();
    if let Some(file) = path.strip_prefix("/assets/").and_then(asset) {
        return whole(
            if file.name.rsplit_once('.').is_some_and(|(_, end)| end == "css") {
                "text/css"
            } else {
                "text/javascript"
            },
            file.plain,
        );
    }
    let Some(call) = path.strip_prefix("/api/plumb/v1/") else {
        let mut page = whole("text/html", index_html("/").unwrap_or_default());
        let policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
                      require-trusted-types-for 'script'; trusted-types 'none'";
        if let Ok(policy) = policy.parse() {
            page.headers_mut().insert("content-security-policy", policy);
        }
        return page;
    };
    if call == "stream" {
        let token = request.uri().query().and_then(|query| query.strip_prefix("from=")?.parse().ok());
        return stream(shared, token.unwrap_or(Token { epoch: 1, number: 0 }));
    }
    let view = lock(&shared.view);
    let value = match call {
        "me" => {
            json!({"user": "test", "readOnly": false, "namespace": "argocd", "version": "v", "now": now(), "banner": ""})
        }
        "home" => {
            let rows: Vec<&Row> = view.rows().collect();
            let mut home = home(rows.into_iter(), Timestamp::now()).into_json();
            home["token"] = json!(view.token().to_string());
            home
        }
        "apps" => {
            let rows: Vec<Value> = view.rows().map(Row::cells).collect();
            json!({"columns": columns(), "rows": rows, "token": view.token().to_string()})
        }
        "activity" => activity(view.rows()),
        _ => json!({}),
    };
    whole("application/json", value.to_string())
}

fn now() -> i64 {
    Timestamp::now().as_second()
}

/// A beat at once, then every change.
fn stream(shared: &Arc<Shared>, from: Token) -> Response<Body> {
    let changed = shared.changed.subscribe();
    let cut = lock(&shared.cut).clone();
    let first = format!("event: beat\nid: {from}\ndata: {{\"now\": {}}}\n\n", now());
    let start = (Arc::clone(shared), changed, from, Some(first));
    let events = futures::stream::unfold(start, |(shared, mut changed, token, first)| async move {
        if let Some(first) = first {
            return Some((first, (shared, changed, token, None)));
        }
        loop {
            let (text, next) = {
                let view = lock(&shared.view);
                let next = view.token();
                let text = match view.changes(token, |_, _| true) {
                    Changes::Since { rows, .. } if rows.is_empty() => None,
                    Changes::Since { rows, .. } => {
                        let rows: Vec<Value> = rows.into_iter().map(Row::cells).collect();
                        Some(format!(
                            "event: rows\nid: {next}\ndata: {}\n\n",
                            json!({"rows": rows, "gone": []})
                        ))
                    }
                    Changes::Reset => Some(format!("event: reset\nid: {next}\ndata: {{}}\n\n")),
                };
                (text, next)
            };
            if let Some(text) = text {
                return Some((text, (shared, changed, next, None)));
            }
            changed.changed().await.ok()?;
        }
    });
    let events = events.take_until(async move { cut.cancelled().await });
    let frames = events.map(|text| Ok(Frame::data(Bytes::from(text))));
    let mut answer = Response::new(StreamBody::new(frames).boxed_unsync());
    answer.headers_mut().insert("content-type", http::HeaderValue::from_static("text/event-stream"));
    answer
}
