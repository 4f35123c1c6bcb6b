//! A small server with the page's files and calls, over the real read model. It can fail in the ways that servers fail.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::StreamExt as _;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use plumb_core::app::AppId;
use plumb_crd::Application;
use plumb_crd::application::Condition;
use plumb_page::{Changes, Row, Token, View, asset, index_html};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::answers::{argo_call, own_call, trouble};
use crate::fleet::{N_APPS, app, now, report_of, specimens};

/// How often a stream says that it lives.
const BEAT: Duration = Duration::from_secs(5);
/// Changes of so long are sent together, as plumb does.
const TOGETHER: Duration = Duration::from_millis(100);

type Body = UnsyncBoxBody<Bytes, Infallible>;

/// How the server answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mood {
    /// As it should.
    Well,
    /// Nobody is logged in.
    LoggedOut,
    /// It does not answer with what was asked for, as a proxy before a dead server.
    Away,
    /// It keeps its connections and sends nothing, as behind a NAT that forgot them.
    Silent,
}

/// What else is different from a server where all is well.
#[expect(clippy::struct_excessive_bools, reason = "each is one thing that a test switches on")]
#[derive(Debug, Default)]
pub(crate) struct Quirks {
    /// Nobody is logged in, and anonymous access is on.
    pub(crate) is_anonymous: bool,
    /// The page is read-only.
    pub(crate) is_read_only: bool,
    /// The user may see no app.
    pub(crate) hides_apps: bool,
    /// `DriftReport`s cannot be read.
    pub(crate) is_blind: bool,
    /// So many requests for the snapshot of all apps fail.
    pub(crate) failing_snapshots: usize,
    /// An act on this app finds that the plan is old, once.
    pub(crate) moved: Option<String>,
    /// The plans of these apps need their names.
    pub(crate) typed: Vec<String>,
    /// The first answer with a log breaks off after three lines.
    pub(crate) cuts_logs: bool,
    /// The next document names another build of the page.
    pub(crate) is_upgraded: bool,
    /// The deleted objects that were restored.
    pub(crate) restored: Vec<String>,
}

pub(crate) struct Shared {
    pub(crate) view: Mutex<View>,
    pub(crate) apps: BTreeMap<String, Application>,
    pub(crate) acts: Mutex<Vec<Value>>,
    pub(crate) quirks: Mutex<Quirks>,
    changed: watch::Sender<u64>,
    cut: Mutex<CancellationToken>,
    mood: AtomicU8,
    round: AtomicU64,
    streams: AtomicUsize,
}

impl Shared {
    /// Changes this many apps, the ones after `from`, which stay well. One change each.
    pub(crate) fn churn(&self, from: usize, count: usize) {
        let round = self.round.fetch_add(1, Ordering::Relaxed);
        let mut view = lock(&self.view);
        for n in from..from + count {
            let name = format!("app-{}", 100 + n % (N_APPS - 100));
            let mut changed = app(&name, "Healthy", "");
            changed.metadata.resource_version = format!("{n}-{round}");
            view.note_app(changed, "prod");
        }
        drop(view);
        self.changed.send_modify(|number| *number += 1);
    }
}

/// The server. It ends with the runtime.
pub(crate) struct Server {
    pub(crate) shared: Arc<Shared>,
    address: SocketAddr,
}

fn view(epoch: u64) -> View {
    let mut view = View::new(epoch);
    for n in 0..N_APPS {
        view.note_app(app(&format!("app-{n}"), "Healthy", ""), "prod");
    }
    for specimen in specimens() {
        view.note_app(specimen.app, "prod-eu");
        if let Some(report) = specimen.report {
            view.note_report(report);
        }
    }
    view
}

impl Server {
    pub(crate) async fn start() -> Result<Self> {
        let apps = specimens().into_iter().map(|specimen| (specimen.app.metadata.name.clone(), specimen.app));
        let shared = Arc::new(Shared {
            view: Mutex::new(view(1)),
            apps: apps.collect(),
            acts: Mutex::default(),
            quirks: Mutex::default(),
            changed: watch::channel(0).0,
            cut: Mutex::new(CancellationToken::new()),
            mood: AtomicU8::new(0),
            round: AtomicU64::new(0),
            streams: AtomicUsize::new(0),
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
                        async move { Ok::<_, Infallible>(answer(&shared, request).await) }
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

    /// Makes an app ill. Returns the time, in milliseconds.
    pub(crate) fn degrade(&self, name: &str) -> i64 {
        let round = self.shared.round.fetch_add(1, Ordering::Relaxed);
        let at = Timestamp::now().as_millisecond();
        lock(&self.shared.view).note_app(app(name, "Degraded", &format!("crashes {round}")), "prod");
        self.shared.changed.send_modify(|number| *number += 1);
        at
    }

    /// Makes apps ill, each for a reason of its own, at length.
    pub(crate) fn fail(&self, names: &[String]) {
        let mut view = lock(&self.shared.view);
        for name in names {
            let message = format!("{name} crashes: {}", "as a log says at length, ".repeat(20));
            view.note_app(app(name, "Degraded", &message), "prod");
        }
        drop(view);
        self.shared.changed.send_modify(|number| *number += 1);
    }

    /// Makes apps well.
    pub(crate) fn mend(&self, names: &[String]) {
        let mut view = lock(&self.shared.view);
        for name in names {
            view.note_app(app(name, "Healthy", ""), "prod");
        }
        drop(view);
        self.shared.changed.send_modify(|number| *number += 1);
    }

    /// Somebody edits an object of an app: its report has a finding.
    pub(crate) fn drift(&self, name: &str) {
        lock(&self.shared.view).note_report(report_of(name));
        self.shared.changed.send_modify(|number| *number += 1);
    }

    /// The cluster of these apps cannot be reached.
    pub(crate) fn lose_cluster(&self, names: &[&str]) {
        let mut view = lock(&self.shared.view);
        for name in names {
            let mut lost = app(name, "Unknown", "");
            "Unknown".clone_into(&mut lost.status.sync.status);
            lost.status.conditions = vec![Condition {
                condition_type: "ComparisonError".to_owned(),
                message: "cluster https://10.0.0.2 cannot be reached: connection refused".to_owned(),
                last_transition_time: Some(now()),
            }];
            "lost".clone_into(&mut lost.metadata.resource_version);
            view.note_app(lost, "prod-us");
        }
        drop(view);
        self.shared.changed.send_modify(|number| *number += 1);
    }

    /// Another state of this app is noted, which looks the same.
    pub(crate) fn touch(&self, name: &str) {
        let round = self.shared.round.fetch_add(1, Ordering::Relaxed);
        let Some(app) = self.shared.apps.get(name) else { return };
        let mut app = app.clone();
        app.metadata.resource_version = format!("touched-{round}");
        lock(&self.shared.view).note_app(app, "prod-eu");
        self.shared.changed.send_modify(|number| *number += 1);
    }

    /// Answers like this from now on. What is open stays as it is.
    pub(crate) fn turn(&self, mood: Mood) {
        self.shared.mood.store(mood as u8, Ordering::SeqCst);
    }

    /// What is different from now on.
    pub(crate) fn quirks(&self, change: impl FnOnce(&mut Quirks)) {
        change(&mut lock(&self.shared.quirks));
    }

    /// Changes this many apps, the ones after `from`.
    pub(crate) fn churn(&self, from: usize, count: usize) {
        self.shared.churn(from, count);
    }

    /// The app is gone.
    pub(crate) fn forget(&self, name: &str) {
        let id = AppId { namespace: "argocd".to_owned(), name: name.to_owned() };
        lock(&self.shared.view).note_app_gone(&id);
        self.shared.changed.send_modify(|number| *number += 1);
    }

    /// Cuts all open streams.
    pub(crate) fn cut(&self) {
        std::mem::take(&mut *lock(&self.shared.cut)).cancel();
    }

    /// Answers like this from now on. Open streams are cut.
    pub(crate) fn become_like(&self, mood: Mood) {
        self.shared.mood.store(mood as u8, Ordering::SeqCst);
        self.cut();
    }

    /// As after a restart: another epoch, so that no token is known.
    pub(crate) fn restart(&self) {
        *lock(&self.shared.view) = view(2);
        self.cut();
    }

    /// How many streams are open.
    pub(crate) fn n_streams(&self) -> usize {
        self.shared.streams.load(Ordering::SeqCst)
    }

    /// What users did since the last time.
    pub(crate) fn acts(&self) -> Vec<Value> {
        std::mem::take(&mut *lock(&self.shared.acts))
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn typed(kind: &'static str, body: impl Into<Bytes>) -> Response<Body> {
    let mut answer = Response::new(Full::new(body.into()).boxed_unsync());
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}

fn packed(kind: &'static str, body: Bytes) -> Response<Body> {
    let mut answer = typed(kind, body);
    answer.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    answer
}

fn refusal(status: StatusCode, text: &str) -> Response<Body> {
    let mut answer = typed("application/json", json!({"error": text}).to_string());
    *answer.status_mut() = status;
    answer
}

async fn answer(shared: &Arc<Shared>, request: Request<Incoming>) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path();
    if let Some(file) = path.strip_prefix("/assets/").and_then(asset) {
        let is_style = file.name.rsplit_once('.').is_some_and(|(_, end)| end == "css");
        let kind = if is_style { "text/css" } else { "text/javascript" };
        return packed(kind, Bytes::from_static(file.gzip));
    }
    if !path.starts_with("/api/") {
        let mut html = index_html("/").unwrap_or_default();
        if std::mem::take(&mut lock(&shared.quirks).is_upgraded) {
            html = html.replace("main-", "next-");
        }
        let mut page = typed("text/html", html);
        let policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
                      require-trusted-types-for 'script'; trusted-types 'none'";
        page.headers_mut().insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
        return page;
    }
    let is_open = path == "/api/v1/settings";
    match shared.mood.load(Ordering::SeqCst) {
        mood if mood == Mood::LoggedOut as u8 && !is_open => {
            return refusal(StatusCode::UNAUTHORIZED, "no session information");
        }
        mood if mood == Mood::Away as u8 => {
            let mut bad = typed("text/html", "<h1>502 Bad Gateway</h1>");
            *bad.status_mut() = StatusCode::BAD_GATEWAY;
            return bad;
        }
        mood if mood == Mood::Silent as u8 => return std::future::pending().await,
        _ => {}
    }
    let query = parts.uri.query().unwrap_or_default();
    if path == "/api/plumb/v1/stream" {
        let token = query.strip_prefix("from=").and_then(|token| token.parse().ok());
        return stream(shared, token.unwrap_or(Token { epoch: 0, number: 0 }));
    }
    if path.ends_with("/logs") {
        return log(shared, query);
    }
    let body = if parts.method == Method::POST {
        body.collect().await.ok().and_then(|body| serde_json::from_slice(&body.to_bytes()).ok())
    } else {
        None
    };
    let path = path.to_owned();
    let given = path
        .strip_prefix("/api/plumb/v1/")
        .map(|call| own_call(shared, call, body.as_ref()))
        .or_else(|| path.strip_prefix("/api/v1/").map(|call| argo_call(shared, call, query)));
    let Some(value) = given.flatten() else {
        return refusal(StatusCode::NOT_FOUND, "this server has no such call");
    };
    if path.ends_with("/apps") && fails_now(shared) {
        return refusal(StatusCode::SERVICE_UNAVAILABLE, "this replica does not lead yet; try again");
    }
    let text = value.to_string();
    if path.ends_with("/acts") && value.get("plan").is_some() {
        let mut moved = typed("application/json", text);
        *moved.status_mut() = StatusCode::CONFLICT;
        return moved;
    }
    if text.len() < 1400 {
        return typed("application/json", text);
    }
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let _ = encoder.write_all(text.as_bytes());
    packed("application/json", Bytes::from(encoder.finish().unwrap_or_default()))
}

/// One line of a log, as the call of the API sends it.
fn log_line(n: usize) -> String {
    let text = match n {
        20 => format!("level=warn msg=\"{}\" tail=end-of-a-long-line", "a long line ".repeat(33)),
        40 => "level=fatal msg=\"Failed to download plugins\"".to_owned(),
        _ => format!("level=info msg=\"request {n}\""),
    };
    let at = format!("2026-11-15T03:12:{:02}Z", n % 60);
    let result = json!({"content": text, "timeStampStr": at, "podName": format!("payments-x2{}", n % 2), "last": false});
    json!({"result": result}).to_string() + "\n"
}

/// A log that is followed stays open. One that is cut goes on, with lines that were sent already, when it is asked for again.
fn log(shared: &Shared, query: &str) -> Response<Body> {
    let lines = |some: std::ops::Range<usize>| some.map(log_line).collect::<String>();
    let cuts = lock(&shared.quirks).cuts_logs;
    if cuts && !query.contains("sinceSeconds") {
        return typed("application/json", lines(0..3));
    }
    let text = if cuts { lines(1..5) } else { lines(0..41) };
    let first = futures::stream::once(async move { Ok(Frame::data(Bytes::from(text))) });
    let mut answer = Response::new(if query.contains("follow=true") {
        StreamBody::new(first.chain(futures::stream::pending())).boxed_unsync()
    } else {
        StreamBody::new(first).boxed_unsync()
    });
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

/// True for as many snapshots as shall fail.
fn fails_now(shared: &Shared) -> bool {
    let left = &mut lock(&shared.quirks).failing_snapshots;
    let fails = *left > 0;
    *left = left.saturating_sub(1);
    fails
}

/// One open stream, which is counted.
struct Open {
    shared: Arc<Shared>,
    changed: watch::Receiver<u64>,
    token: Token,
    is_new: bool,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.shared.streams.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Open {
    fn news(&mut self) -> Option<String> {
        let view = lock(&self.shared.view);
        let next = view.token();
        let text = match view.changes(self.token, |_, _| true) {
            Changes::Since { rows, .. } if rows.is_empty() => None,
            Changes::Since { rows, .. } => {
                let rows: Vec<Value> = rows.into_iter().map(Row::cells).collect();
                Some(format!("event: rows\nid: {next}\ndata: {}\n\n", json!({"rows": rows, "gone": []})))
            }
            Changes::Reset => Some(format!("event: reset\nid: {next}\ndata: {{}}\n\n")),
        };
        self.token = next;
        text
    }

    fn beat(&self) -> String {
        let beat = json!({"now": now().as_second(), "trouble": trouble(&self.shared)});
        format!("event: beat\nid: {}\ndata: {beat}\n\n", self.token)
    }
}

/// A beat at once, then every change, and a beat where nothing changes.
fn stream(shared: &Arc<Shared>, token: Token) -> Response<Body> {
    let cut = lock(&shared.cut).clone();
    shared.streams.fetch_add(1, Ordering::SeqCst);
    let changed = shared.changed.subscribe();
    let open = Open { shared: Arc::clone(shared), changed, token, is_new: true };
    let events = futures::stream::unfold(open, |mut open| async move {
        if std::mem::take(&mut open.is_new) {
            let first = open.news().unwrap_or_default() + &open.beat();
            return Some((first, open));
        }
        let woken = tokio::time::timeout(BEAT, open.changed.changed()).await;
        if open.shared.mood.load(Ordering::SeqCst) == Mood::Silent as u8 {
            return std::future::pending().await;
        }
        match woken {
            Err(_) => Some((open.beat(), open)),
            Ok(Err(_)) => None,
            Ok(Ok(())) => {
                tokio::time::sleep(TOGETHER).await;
                open.changed.mark_unchanged();
                let text = open.news().unwrap_or_else(|| open.beat());
                Some((text, open))
            }
        }
    });
    let events = events.take_until(async move { cut.cancelled().await });
    let frames = events.map(|text| Ok(Frame::data(Bytes::from(text))));
    let mut answer = Response::new(StreamBody::new(frames).boxed_unsync());
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    answer
}
