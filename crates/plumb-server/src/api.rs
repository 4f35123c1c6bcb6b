//! One request: which door, who asks, what is needed, who answers.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::{BoxFuture, FutureExt as _};
use http::{HeaderMap, HeaderValue, Method as Verb, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use plumb_api::{Code, Method, NoRoute, SelectedFields, Status, Tables, decode, query_pairs, unframe};
use plumb_engine::Handle;
use plumb_kube::{ConnectError, Connection};
use serde_json::Value;
use tracing::{error, info, warn};

use crate::app_feed::AppFeed;
use crate::backend::Backend;
use crate::body::AnswerBody;
use crate::call::{Answer, Call, Shared};
use crate::call_rates::CallRates;
use crate::certificate::{Certificates, Transport};
use crate::doors::{self, CookieRules, Dialect};
use crate::handlers::{Access, Handler, find};
use crate::page::{Page, PageMode, PageRequest, is_page_path};
use crate::session::{Sessions, prepare};
use crate::state::State;

/// Largest request.
const LARGEST: usize = 32 << 20;
/// Longest time for the body of a request to arrive.
const BODY_WITHIN: Duration = Duration::from_secs(30);
/// When the preparation of a new installation is tried again, first and at the latest.
const PREPARE_AGAIN: Duration = Duration::from_secs(10);
const PREPARE_LATEST: Duration = Duration::from_mins(10);

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
}

/// The API.
pub struct Api {
    shared: Arc<Shared>,
    certificates: Certificates,
    rates: CallRates,
    page: Page,
    options: ApiOptions,
}

/// What the doors need to know of a request besides its body.
struct Asked {
    headers: HeaderMap,
    peer: IpAddr,
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
            options,
        }))
    }

    /// Creates the key and the first password of a new installation; tried until it succeeds.
    pub async fn prepare(&self) {
        let mut wait = PREPARE_AGAIN;
        while let Err(status) = prepare(&self.shared.backend, &self.options.namespace).await {
            warn!(reason = status.message, "cannot prepare logins; trying again");
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(PREPARE_LATEST);
        }
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
        let asked = Asked { headers: head.headers, peer };
        let kind =
            asked.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let dialect = match kind {
            "application/grpc-web+proto" => Some(Dialect::Web),
            kind if head.version == http::Version::HTTP_2 && kind.starts_with("application/grpc") => {
                Some(Dialect::Grpc)
            }
            _ => None,
        };
        let mut answer = if let Some(dialect) = dialect {
            self.answer_grpc(dialect, path, asked, body).await
        } else {
            let query = head.uri.query().unwrap_or_default();
            self.answer_rest(&head.method, path, query, asked, body).await
        };
        secure(answer.headers_mut(), self.options.transport);
        answer
    }

    async fn answer_grpc(
        &self,
        dialect: Dialect,
        path: &str,
        asked: Asked,
        body: Incoming,
    ) -> Response<AnswerBody> {
        let name = path.trim_start_matches('/');
        let Some(method) = Tables::get().method(name) else { return doors::unimplemented(dialect, name) };
        let result = async {
            let bytes = read(body).await?;
            let (message, _) = unframe(&bytes, LARGEST)
                .map_err(|error| Status::invalid(error.to_string()))?
                .ok_or_else(|| Status::invalid("the message is incomplete"))?;
            let request = decode(Tables::get(), method.input, message)
                .map_err(|error| Status::invalid(error.to_string()))?;
            self.call(method, &asked, request, None).await
        };
        doors::answer_grpc(dialect, method, result.await)
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
            if let Err(status) = self.shared.state.ready().await {
                return doors::rest_error(&status);
            }
            let url = self.shared.state.setting("url");
            return doors::answer_logout(&self.shared.sessions, &asked.headers, &url, &self.cookies()).await;
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
        // A form of another site can send other types without asking the browser's user, but not this one.
        if *verb != Verb::GET
            && *verb != Verb::HEAD
            && value(header::CONTENT_TYPE) != Some("application/json")
        {
            return doors::text(StatusCode::UNSUPPORTED_MEDIA_TYPE, "Invalid content type");
        }
        let as_events = value(header::ACCEPT).is_some_and(|accept| accept.contains("text/event-stream"));
        let fields = query_pairs(query).find(|(name, _)| name == "fields");
        let fields = fields.and_then(|(_, text)| SelectedFields::parse(&text));
        let result = async {
            let bytes = if routed.takes_body() { read(body).await? } else { Vec::new() };
            let request = routed.request(Tables::get(), query, &bytes)?;
            self.call(routed.method, &asked, request, fields.clone()).await
        };
        let result = result.await;
        doors::answer_rest(routed.method, result, fields, as_events, &self.cookies())
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
        let request = PageRequest { verb, path, query, headers: &asked.headers, body };
        self.page.answer(request, &run).await
    }

    /// Checks the caller and runs the handler.
    async fn call(
        &self,
        method: &Method,
        asked: &Asked,
        request: Value,
        fields: Option<SelectedFields>,
    ) -> Result<Answer, Status> {
        let agent = asked.headers.get(header::USER_AGENT).and_then(|agent| agent.to_str().ok());
        let agent: String =
            agent.unwrap_or_default().chars().filter(|letter| !letter.is_control()).take(80).collect();
        let Some(handler) = find(&method.path) else {
            info!(method = method.path, client = agent, "a client asked for a call that plumb does not have");
            self.shared.handle.count_unimplemented(&method.path);
            let why = format!("{} is not supported by plumb", method.path);
            return Err(Status::new(Code::Unimplemented, why));
        };
        self.shared.state.ready().await?;
        let identity = match (self.shared.sessions.identify(&asked.headers), &handler.access) {
            (Ok(identity), _) => Some(identity),
            (Err(_), Access::Open) => None,
            (Err(status), _) => return Err(status),
        };
        // Without a login the address counts, so that strangers do not use up the calls of users.
        let known =
            identity.as_ref().map(|identity| identity.username.clone()).filter(|name| !name.is_empty());
        let caller = known.unwrap_or_else(|| asked.peer.to_string());
        if !self.rates.take(&caller, Instant::now()) {
            return Err(Status::new(Code::ResourceExhausted, "too many calls; try again in a second"));
        }
        let mut call = Call {
            shared: Arc::clone(&self.shared),
            identity,
            request,
            fields,
            peer: asked.peer,
            app: None,
            asked: parking_lot::Mutex::default(),
        };
        let checked = check(handler, &mut call);
        if handler.writes {
            audit(handler, &call, checked.as_ref().err());
        }
        checked?;
        let call = Arc::new(call);
        let answer = (handler.run)(Arc::clone(&call)).await?;
        if !handler.access.was_asked(&call.asked.lock()) {
            error!(
                method = handler.path,
                "a defect of plumb: a call asked for no permission; its answer is withheld"
            );
            return Err(Status::new(Code::Internal, "the permission was not checked"));
        }
        Ok(answer)
    }
}

/// What the table says that the caller needs.
fn check(handler: &Handler, call: &mut Call) -> Result<(), Status> {
    match &handler.access {
        Access::Open | Access::Login | Access::Shows | Access::Asks(_) => Ok(()),
        Access::App(action) => {
            let action = action(&call.request);
            call.app = Some(call.find_app(&action)?);
            Ok(())
        }
        Access::On(resource, action, object) => call.require(resource, action, &object(&call.request)),
    }
}

/// One line for every write: who, what, from where, allowed or not. Bodies are never logged.
fn audit(handler: &Handler, call: &Call, refused: Option<&Status>) {
    let name = |path: &str| call.request.pointer(path).and_then(Value::as_str);
    let paths = [
        "/name",
        "/application/metadata/name",
        "/project/metadata/name",
        "/project",
        "/repo/repo",
        "/cluster/server",
        "/id/value",
    ];
    let object = paths.into_iter().find_map(name).unwrap_or_default();
    let object: String = object.chars().filter(|letter| !letter.is_control()).take(200).collect();
    info!(
        user = call.username(),
        method = handler.path,
        object,
        from = %call.peer,
        allowed = refused.is_none(),
        "write through the API"
    );
}

async fn read(body: Incoming) -> Result<Vec<u8>, Status> {
    let reading = tokio::time::timeout(BODY_WITHIN, Limited::new(body, LARGEST).collect());
    match reading.await {
        Ok(Ok(body)) => Ok(body.to_bytes().to_vec()),
        Ok(Err(_)) => Err(Status::new(Code::ResourceExhausted, "the request is too large or broken")),
        Err(_) => Err(Status::new(Code::DeadlineExceeded, "the request did not arrive in time")),
    }
}

/// The headers of every answer.
fn secure(headers: &mut HeaderMap, transport: Transport) {
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    // The page has a policy of its own.
    headers
        .entry(header::CONTENT_SECURITY_POLICY)
        .or_insert(HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'"));
    if transport == Transport::Tls {
        headers.insert(header::STRICT_TRANSPORT_SECURITY, HeaderValue::from_static("max-age=31536000"));
    }
}
