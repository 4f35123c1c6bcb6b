//! One request: which door, who asks, what is needed, who answers.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures::future::{BoxFuture, FutureExt as _};
use http::{HeaderMap, Method as Verb, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use plumb_api::{Code, Method, NoRoute, SelectedFields, Status, Tables, query_pairs};
use plumb_core::peers::{Peer, PeerShares};
use plumb_core::text::one_line;
use plumb_engine::Handle;
use plumb_kube::{ConnectError, Connection};
use serde_json::Value;
use tokio::sync::watch;
use tracing::{info, warn};

use crate::app_feed::AppFeed;
use crate::audit::AuditEvents;
use crate::backend::Backend;
use crate::body::AnswerBody;
use crate::call::{Answer, Call, Shared};
use crate::call_rates::CallRates;
use crate::certificate::Certificates;
use crate::client_name::{agent_of, client_name, forwarded_of};
use crate::compression::compressed;
use crate::connections::Connections;
use crate::doors::{self, CookieRules, Dialect};
use crate::handlers::{Access, find};
use crate::heavy_calls::HeavyCalls;
use crate::judged_call::{check, run, while_permitted};
use crate::page::{Page, PageMode, PageRequest, is_page_path};
use crate::replica::{FORWARDED, Forwarder, Passed, ReplicaKeys, find_leader, publish};
use crate::request_body::{Bodies, Body, LARGEST_REQUEST, Sender, check_weight, head_size, largest};
use crate::session::{Identity, Sessions, prepare};
use crate::set_feed::SetFeed;
use crate::state::State;
use crate::transport::{Transport, secure};
use crate::write_log::WriteLog;

/// When the preparation of a new installation is tried again, first and at the latest.
const PREPARE_AGAIN: Duration = Duration::from_secs(10);
const PREPARE_LATEST: Duration = Duration::from_mins(10);

/// Badges of Applications.
const BADGE: &str = "/api/badge";
/// How often the server looks whether it leads. This costs no request.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
const TOO_MANY: &str = "too many requests; try again in a second";
/// Bytes of answers that may wait for their clients, of all and of one address. All users may come through one proxy.
const OF_ANSWERS: usize = 192 << 20;
const OF_ANSWERS_OF_ONE: usize = 96 << 20;
/// The calls that every replica answers by itself: what they need is in the settings.
const ANYWHERE: [&str; 4] = [
    "version.VersionService/Version",
    "session.SessionService/Create",
    "session.SessionService/GetUserInfo",
    "session.SessionService/Delete",
];

/// How the server is reached.
#[derive(Clone, Debug)]
pub struct ApiOptions {
    /// The control-plane namespace.
    pub namespace: String,
    /// With or without TLS.
    pub transport: Transport,
    /// The path below which everything is served; empty for none.
    pub root_path: String,
    /// The path of cookies; that of `root_path` if empty.
    pub base_href: String,
    /// What the page may do.
    pub page: PageMode,
    /// The version that clients see, such as `v3.6.0+plumb.0.2.0`.
    pub version: String,
    /// The address at which other replicas reach this one; `None` if it is not known.
    pub own_address: Option<String>,
}

/// The API.
pub struct Api {
    shared: Arc<Shared>,
    certificates: Certificates,
    rates: CallRates,
    forwarder: Forwarder,
    page: Page,
    bodies: Bodies,
    /// The bytes of answers that wait to be read.
    answers: PeerShares,
    heavy: HeavyCalls,
    /// True when the server stops.
    stop: watch::Sender<bool>,
    options: ApiOptions,
}

/// What the doors need to know of a request besides its body.
struct Asked {
    headers: HeaderMap,
    peer: IpAddr,
    /// True if another replica passed the request on.
    is_passed: bool,
    /// True if the request was taken from the budget of its caller, and no call was made for it yet.
    is_counted: AtomicBool,
    /// A token for the client to go on with.
    renewed: parking_lot::Mutex<Option<String>>,
}

impl Asked {
    fn new(headers: HeaderMap, peer: IpAddr) -> Self {
        Self {
            headers,
            peer,
            is_passed: false,
            is_counted: AtomicBool::default(),
            renewed: parking_lot::Mutex::default(),
        }
    }
}

impl Api {
    /// The API over an engine. Its connections belong to the current runtime.
    pub fn new(
        connection: &Connection,
        handle: Handle,
        options: ApiOptions,
    ) -> Result<Arc<Self>, ConnectError> {
        let backend = Backend::new(connection.client()?);
        let state = State::new(backend.clone(), options.namespace.clone());
        let shared = Arc::new(Shared {
            sessions: Sessions::new(state.clone(), backend.clone()),
            feed: Arc::new(AppFeed::new(handle.clone())),
            sets: SetFeed::new(backend.clone()),
            audit: AuditEvents::new(backend.clone()),
            connections: Connections::default(),
            handle,
            backend,
            state: state.clone(),
            version: options.version.clone(),
        });
        let base = if options.base_href.is_empty() { &options.root_path } else { &options.base_href };
        Ok(Arc::new(Self {
            page: Page::new(Arc::clone(&shared), options.page, base),
            shared,
            certificates: Certificates::new(state),
            rates: CallRates::default(),
            forwarder: Forwarder::default(),
            bodies: Bodies::default(),
            answers: PeerShares::new(OF_ANSWERS, OF_ANSWERS_OF_ONE),
            heavy: HeavyCalls::default(),
            stop: watch::Sender::new(false),
            options,
        }))
    }

    /// Creates the key and the first password of a new installation; tried until it succeeds.
    pub async fn prepare(&self) {
        let mut wait = PREPARE_AGAIN;
        while let Err(status) =
            prepare(&self.shared.backend, &self.options.namespace, self.options.transport).await
        {
            warn!(reason = status.message, "cannot prepare logins; trying again");
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(PREPARE_LATEST);
        }
    }

    /// Tells the other replicas where this one is, each time that it begins to lead.
    pub async fn publish_address(&self) {
        let Some(address) = &self.options.own_address else { return };
        let mut is_published = false;
        loop {
            let leads = self.shared.handle.leader().is_some();
            if leads && !is_published {
                match publish(&self.shared.backend, &self.options.namespace, address).await {
                    Ok(()) => is_published = true,
                    Err(status) => {
                        warn!(
                            reason = status.message,
                            "cannot tell other replicas the address; trying again"
                        );
                        tokio::time::sleep(PREPARE_AGAIN).await;
                    }
                }
            }
            is_published &= leads;
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Ends all streams: they would end by themselves only with their clients.
    pub fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// How clients connect.
    pub fn transport(&self) -> Transport {
        self.options.transport
    }

    /// The TLS settings for the next connection; `None` if there is no certificate.
    pub async fn tls(&self) -> Option<Arc<rustls::ServerConfig>> {
        // Without the settings the certificate is not known, and a wrong one must not be shown.
        self.shared.state.ready().await.ok()?;
        self.certificates.config()
    }

    /// The TLS settings for connections of other replicas, where clients connect without TLS.
    pub async fn replica_tls(&self) -> Option<Arc<rustls::ServerConfig>> {
        self.shared.state.ready().await.ok()?;
        self.certificates.replica_config()
    }

    /// The path of a request below the root path; `None` if it is outside of it.
    pub fn path<'p>(&self, path: &'p str) -> Option<&'p str> {
        let root = self.options.root_path.trim_matches('/');
        if root.is_empty() {
            return Some(path);
        }
        let below = path.strip_prefix('/')?.strip_prefix(root)?;
        (below.is_empty() || below.starts_with('/')).then_some(if below.is_empty() { "/" } else { below })
    }

    fn cookies(&self) -> CookieRules {
        let options = &self.options;
        let path = if options.base_href.is_empty() { &options.root_path } else { &options.base_href };
        CookieRules { path: path.clone(), secure: options.transport == Transport::Tls }
    }

    /// Answers a request. `path` is the one below the root path.
    pub async fn answer(&self, peer: IpAddr, path: &str, request: Request<Incoming>) -> Response<AnswerBody> {
        let (head, body) = request.into_parts();
        let mut asked = Asked::new(head.headers, peer);
        self.recognise(&mut asked, head.uri.path());
        let peer = Peer::of(asked.peer);
        let kind =
            asked.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let dialect = match kind {
            "application/grpc-web+proto" => Some(Dialect::Web),
            kind if head.version == http::Version::HTTP_2 && kind.starts_with("application/grpc") => {
                Some(Dialect::Grpc)
            }
            _ => None,
        };
        let called = match dialect {
            Some(_) => Tables::get().method(path.trim_start_matches('/')),
            None => Tables::get().route(head.method.as_str(), path).ok().map(|routed| routed.method),
        };
        let leader = match called {
            Some(method) => self.leader_for(&method.path, &asked).await,
            // The leader keeps the groups that it asked for at a login.
            None if ["/auth/callback", BADGE].contains(&path) => self.leader_for(path, &asked).await,
            None if self.page.is_on() && path.starts_with("/api/") && is_page_path(&head.method, path) => {
                self.leader_for(path, &asked).await
            }
            None => None,
        };
        let answer = if let Some((address, keys)) = leader {
            let whole = head.uri.path_and_query().map_or("/", |whole| whole.as_str()).to_owned();
            let passed = async {
                let Body { bytes: body, room: _room } =
                    self.read(called.map_or(path, |method| &method.path), &asked, body).await?;
                let (method, headers) = (head.method.clone(), asked.headers.clone());
                let passed = Passed { method, path: whole, headers, body, client: asked.peer };
                match self.forwarder.pass(&address, &keys, passed).await {
                    // A token that is refused is refused, whoever leads.
                    Err(away) => {
                        Err(self.shared.sessions.identify(&asked.headers).await.err().unwrap_or(away))
                    }
                    passed => passed,
                }
            };
            match (passed.await, dialect) {
                (Ok(answer), _) => return answer,
                (Err(status), Some(dialect)) => doors::grpc_error(dialect, &status),
                (Err(status), None) => doors::rest_error(&status),
            }
        } else if let Some(dialect) = dialect {
            self.answer_grpc(dialect, path, asked, body).await
        } else {
            let query = head.uri.query().unwrap_or_default();
            self.answer_rest(&head.method, path, query, asked, body).await
        };
        let mut answer = self.held(peer, dialect, answer);
        secure(answer.headers_mut(), self.options.transport);
        answer
    }

    /// An answer waits in memory until its client has read it, so all answers share a bounded room.
    fn held(
        &self,
        peer: Peer,
        dialect: Option<Dialect>,
        answer: Response<AnswerBody>,
    ) -> Response<AnswerBody> {
        if let Ok(share) = self.answers.take(peer, answer.body().size()) {
            return answer.map(|body| body.paced(share));
        }
        let full = Status::unavailable("too many answers wait to be read; try again in a second");
        match dialect {
            Some(dialect) => doors::grpc_error(dialect, &full),
            None => doors::rest_error(&full),
        }
    }

    /// Notes the client of a request that another replica passed on.
    fn recognise(&self, asked: &mut Asked, path: &str) {
        let Some(mark) = asked.headers.get(FORWARDED).and_then(|mark| mark.to_str().ok()) else { return };
        let keys = self.shared.state.signing_key().and_then(|key| ReplicaKeys::derive(&key));
        let client = keys.and_then(|keys| keys.client_of(mark, path, jiff::Timestamp::now().as_second()));
        if let Some(client) = client {
            (asked.peer, asked.is_passed) = (client, true);
        }
    }

    /// Where a call is answered, if not here. A request is passed on once only.
    async fn leader_for(&self, path: &str, asked: &Asked) -> Option<(String, ReplicaKeys)> {
        if asked.is_passed || ANYWHERE.contains(&path) || self.shared.handle.leader().is_some() {
            return None;
        }
        self.shared.state.ready().await.ok()?;
        let keys = ReplicaKeys::derive(&self.shared.state.signing_key()?)?;
        let address = find_leader(&self.shared.state, &keys)?;
        (self.options.own_address.as_deref() != Some(address.as_str())).then_some((address, keys))
    }

    async fn answer_grpc(
        &self,
        dialect: Dialect,
        path: &str,
        asked: Asked,
        body: Incoming,
    ) -> Response<AnswerBody> {
        let name = path.trim_start_matches('/');
        let Some(method) = Tables::get().method(name) else {
            let agent = agent_of(&asked.headers);
            let method: String = one_line(name).chars().take(100).collect();
            info!(method, client = agent, "a client asked for an unknown call");
            // The name is the client's choice: one label stands for all of them.
            self.shared.handle.count_unimplemented("other", client_name(&agent));
            return doors::unimplemented(dialect, name);
        };
        let result = async {
            let Body { bytes, room: _room } = self.read(&method.path, &asked, body).await?;
            let mut messages = doors::messages(method, &bytes, LARGEST_REQUEST)?;
            let request = if method.client_streams {
                doors::uploaded(messages)
            } else {
                messages.pop().ok_or_else(|| Status::invalid("the message is incomplete"))?
            };
            self.call(method, &asked, request, None).await
        };
        let mut answer = doors::answer_grpc(dialect, method, result.await);
        if let Some(token) = asked.renewed.lock().take() {
            doors::renew(&mut answer, &token, None);
        }
        answer
    }

    /// The login of a browser at the identity provider, and badges.
    async fn answer_stranger(&self, path: &str, query: &str, asked: &Asked) -> Response<AnswerBody> {
        if let Err(status) = self.shared.state.ready().await {
            return doors::rest_error(&status);
        }
        if !self.rates.take(&asked.peer.to_string(), Instant::now()) {
            return doors::text(StatusCode::TOO_MANY_REQUESTS, TOO_MANY);
        }
        let (sso, cookies) = (self.shared.sessions.sso(), self.cookies());
        match path {
            "/auth/login" => doors::begin_sso(sso, query, &cookies, asked.peer).await,
            BADGE => {
                let leader = self.shared.handle.leader();
                doors::answer_badge(&self.shared.state, leader.as_ref(), query)
            }
            _ => doors::end_sso(sso, query, &asked.headers, &cookies, asked.peer).await,
        }
    }

    async fn answer_logout(&self, asked: &Asked) -> Response<AnswerBody> {
        if let Err(status) = self.shared.state.ready().await {
            return doors::rest_error(&status);
        }
        // A logout writes: it must not be free for those who have a token.
        if !self.rates.take(&asked.peer.to_string(), Instant::now()) {
            return doors::text(StatusCode::TOO_MANY_REQUESTS, TOO_MANY);
        }
        let host = asked.headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
        let url = self.shared.state.address_at(host);
        doors::answer_logout(&self.shared.sessions, &asked.headers, &url, &self.cookies()).await
    }

    async fn answer_rest(
        &self,
        verb: &Verb,
        path: &str,
        query: &str,
        asked: Asked,
        body: Incoming,
    ) -> Response<AnswerBody> {
        if path == "/auth/logout" {
            return self.answer_logout(&asked).await;
        }
        if *verb == Verb::GET && ["/auth/login", "/auth/callback", BADGE].contains(&path) {
            return self.answer_stranger(path, query, &asked).await;
        }
        if self.page.is_on() && is_page_path(verb, path) {
            return self.answer_page(verb, path, query, &asked, body).await;
        }
        if path == "/" && matches!(*verb, Verb::GET | Verb::HEAD) {
            return doors::text(
                StatusCode::OK,
                "plumb serves Argo CD's API here: log in with `argocd login`",
            );
        }
        let routed = match Tables::get().route(verb.as_str(), path) {
            Ok(routed) => routed,
            Err(NoRoute::Path) => return doors::text(StatusCode::NOT_FOUND, "Not Found"),
            Err(NoRoute::Verb) => return doors::text(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed"),
        };
        let value = |name: header::HeaderName| asked.headers.get(name).and_then(|value| value.to_str().ok());
        if doors::may_be_a_form(verb, &asked.headers) {
            return doors::text(StatusCode::UNSUPPORTED_MEDIA_TYPE, "Invalid content type");
        }
        let as_events = value(header::ACCEPT).is_some_and(|accept| accept.contains("text/event-stream"));
        let fields = query_pairs(query).find(|(name, _)| name == "fields");
        let fields = fields.and_then(|(_, text)| SelectedFields::parse(&text));
        let result = async {
            let Body { bytes, room: _room } = if routed.takes_body() {
                self.read(&routed.method.path, &asked, body).await?
            } else {
                Body::default()
            };
            check_weight(&bytes)?;
            let request = routed.request(Tables::get(), query, &bytes)?;
            self.call(routed.method, &asked, request, fields.clone()).await
        };
        let result = result.await;
        let cookies = self.cookies();
        let mut answer = doors::answer_rest(routed.method, result, fields, as_events, &cookies);
        if let Some(token) = asked.renewed.lock().take() {
            doors::renew(&mut answer, &token, Some(&cookies));
        }
        compressed(&asked.headers, answer).await
    }

    /// Answers for the page. What it does runs as a call of the API.
    async fn answer_page(
        &self,
        verb: &Verb,
        path: &str,
        query: &str,
        asked: &Asked,
        body: Incoming,
    ) -> Response<AnswerBody> {
        let run = |path: &'static str, request: Value| -> BoxFuture<'_, Result<Answer, Status>> {
            let Some(method) = Tables::get().method(path) else {
                return futures::future::ready(Err(Status::new(Code::Internal, "unknown call"))).boxed();
            };
            self.call(method, asked, request, None).boxed()
        };
        let request = PageRequest {
            verb,
            path,
            query,
            headers: &asked.headers,
            body,
            peer: asked.peer.to_string(),
            rates: &self.rates,
            renewed: &asked.renewed,
        };
        let answer = self.page.answer(request, &run).await;
        let mut answer = answer.map(|body| body.until(self.stop.subscribe()));
        // A page that is open for days, such as a wall, stays logged in.
        if let Some(token) = asked.renewed.lock().take() {
            doors::renew(&mut answer, &token, Some(&self.cookies()));
        }
        answer
    }

    /// Reads the body of a request. A sender without a valid token may send no more than a login takes.
    async fn read(&self, path: &str, asked: &Asked, body: Incoming) -> Result<Body, Status> {
        let identity = match self.shared.state.ready().await {
            Ok(()) => self.shared.sessions.identify(&asked.headers).await,
            Err(status) => Err(status),
        };
        // What is refused for want of a login is not read.
        if let Err(unknown) = &identity
            && find(path).is_some_and(|handler| !matches!(handler.access, Access::Open))
        {
            return Err(unknown.clone());
        }
        // Before anything of the body is in memory.
        self.count(asked, identity.as_ref().ok())?;
        asked.is_counted.store(true, Ordering::Relaxed);
        let is_known = identity.as_ref().is_ok_and(Identity::is_logged_in);
        let sender = Sender { peer: Peer::of(asked.peer), is_known, head: head_size(&asked.headers) };
        match (self.bodies.read(largest(path, is_known), sender, body).await, identity) {
            (Err(too_large), Err(unknown)) if too_large.code == Code::ResourceExhausted => Err(unknown),
            (read, _) => read,
        }
    }

    /// Takes one call from the budget of the caller. Without a login the address counts, so that strangers do not use up
    /// the calls of users.
    fn count(&self, asked: &Asked, identity: Option<&Identity>) -> Result<(), Status> {
        let is_new = self.rates.take(&caller_of(asked, identity), Instant::now());
        let too_many = || Status::new(Code::ResourceExhausted, "too many calls; try again in a second");
        if is_new { Ok(()) } else { Err(too_many()) }
    }

    /// Checks the caller and runs the handler.
    async fn call(
        &self,
        method: &Method,
        asked: &Asked,
        request: Value,
        fields: Option<SelectedFields>,
    ) -> Result<Answer, Status> {
        let agent = agent_of(&asked.headers);
        let Some(handler) = find(&method.path) else {
            info!(method = method.path, client = agent, "a client asked for a call that plumb does not have");
            self.shared.handle.count_unimplemented(&method.path, client_name(&agent));
            let why = format!("{} is not supported by plumb", method.path);
            return Err(Status::new(Code::Unimplemented, why));
        };
        self.shared.state.ready().await?;
        let identity = self.identify(asked, &handler.access).await?;
        if !asked.is_counted.swap(false, Ordering::Relaxed) {
            self.count(asked, identity.as_ref())?;
        }
        let _place = self.heavy.enter(&method.path, &caller_of(asked, identity.as_ref())).await?;
        let mut call = Call {
            shared: Arc::clone(&self.shared),
            identity,
            request,
            fields,
            peer: asked.peer,
            forwarded: forwarded_of(&asked.headers),
            app: None,
            asked: parking_lot::Mutex::default(),
            written: parking_lot::Mutex::default(),
            granted: parking_lot::Mutex::default(),
        };
        let checked = check(handler, &mut call);
        let call = Arc::new(call);
        let log = WriteLog::of(handler, &call);
        let result = match checked {
            Ok(()) => run(handler, &call).await,
            Err(status) => Err(status),
        };
        if let Some(log) = log {
            log.ended(&result);
        }
        match result? {
            Answer::Stream(messages) => {
                Ok(while_permitted(call, asked.headers.clone(), self.stop.subscribe(), messages))
            }
            answer => Ok(answer),
        }
    }

    /// Who calls. A call that is open to everybody also goes on without a valid token.
    async fn identify(&self, asked: &Asked, access: &Access) -> Result<Option<Identity>, Status> {
        let identity = match (self.shared.sessions.identify(&asked.headers).await, access) {
            (Ok(identity), _) => Some(identity),
            (Err(_), Access::Open) => None,
            (Err(status), _) => return Err(status),
        };
        if let Some(renewed) = identity.as_ref().and_then(|identity| identity.renewed.clone()) {
            *asked.renewed.lock() = Some(renewed);
        }
        Ok(identity)
    }
}

/// Whose budget a call is taken from: the user, or without a login the address.
fn caller_of(asked: &Asked, identity: Option<&Identity>) -> String {
    let user = identity.map(|identity| identity.username.as_str()).filter(|name| !name.is_empty());
    user.map_or_else(|| asked.peer.to_string(), str::to_owned)
}
