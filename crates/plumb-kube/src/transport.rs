//! The HTTP connection to one API server: TLS, credentials, and two lanes, one for requests and one for
//! watches.
//!
//! Watches have their own lane so that a burst of watch data never delays an apply. Both lanes use HTTP/2
//! where the server offers it (every API server does): the watches of some sixty kinds are then streams of
//! one connection, whose pings detect a dead peer.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper_rustls::FixedServerNameResolver;
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::ConfigExt;
use parking_lot::Mutex;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, Service, ServiceBuilder, ServiceExt};

use crate::error::ConnectError;

/// Body of a request, complete before it is sent.
pub type RequestBody = Full<Bytes>;
/// Body of an answer. Watches and logs stream it.
pub type AnswerBody = UnsyncBoxBody<Bytes, BoxError>;
/// One HTTP service. Tests replace it with a scripted one.
pub type Lane = BoxCloneSyncService<Request<RequestBody>, Response<AnswerBody>, BoxError>;

/// The two lanes to one API server.
#[derive(Clone)]
pub struct Transport {
    /// Requests with a short answer.
    pub requests: Lane,
    /// Watches and other streaming answers.
    pub watches: Lane,
}

/// Which HTTP versions the lanes may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/2 where offered: few connections hold every watch, and pings detect a dead peer.
    #[default]
    Http2,
    /// HTTP/1.1 only, one connection per request in flight.
    Http1,
}

/// A dead peer is detected within the sum of these two.
const PING_EVERY: Duration = Duration::from_secs(20);
const PING_ANSWER: Duration = Duration::from_secs(10);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const IDLE_CONNECTION: Duration = Duration::from_secs(90);

impl Transport {
    pub(crate) fn new(config: &kube::Config, protocol: Protocol) -> Result<Self, ConnectError> {
        let requests = lane(config, protocol)?;
        let config = config.clone();
        let spread = Spread::new(lane(&config, protocol)?, move || lane(&config, protocol).ok());
        Ok(Self { requests, watches: BoxCloneSyncService::new(spread) })
    }
}

/// Spreads watches over as many connections as they need.
///
/// A server limits the streams of one HTTP/2 connection (Go's default is 250), and a watch does not end: on a
/// cluster with a thousand kinds the 251st would wait forever. So a connection counts as full long before
/// that, and the next watch opens another one.
#[derive(Clone)]
struct Spread {
    lanes: Arc<Mutex<Vec<Counted>>>,
    another: Arc<dyn Fn() -> Option<Lane> + Send + Sync>,
}

const WATCHES_PER_CONNECTION: usize = 100;

#[derive(Clone)]
struct Counted {
    lane: Lane,
    /// Each open answer holds a clone; the count is the number of open watches.
    open: Arc<()>,
}

impl Spread {
    fn new(first: Lane, another: impl Fn() -> Option<Lane> + Send + Sync + 'static) -> Self {
        let lanes = Arc::new(Mutex::new(vec![Counted { lane: first, open: Arc::new(()) }]));
        Self { lanes, another: Arc::new(another) }
    }

    /// A connection with room for one more watch.
    fn pick(&self) -> Option<Counted> {
        let mut lanes = self.lanes.lock();
        let has_room = |counted: &&Counted| Arc::strong_count(&counted.open) <= WATCHES_PER_CONNECTION;
        if let Some(free) = lanes.iter().find(has_room) {
            return Some(free.clone());
        }
        match (self.another)() {
            Some(lane) => {
                let fresh = Counted { lane, open: Arc::new(()) };
                lanes.push(fresh.clone());
                Some(fresh)
            }
            None => lanes.last().cloned(),
        }
    }
}

impl Service<Request<RequestBody>> for Spread {
    type Response = Response<AnswerBody>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<AnswerBody>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<RequestBody>) -> Self::Future {
        let picked = self.pick();
        Box::pin(async move {
            let Some(Counted { lane, open }) = picked else { return Err("no connection".into()) };
            let answer = lane.oneshot(request).await?;
            Ok(answer.map(|body| Placed { body, _place: open }.boxed_unsync()))
        })
    }
}

/// An answer that counts as open on its connection until it is dropped.
struct Placed {
    body: AnswerBody,
    _place: Arc<()>,
}

impl http_body::Body for Placed {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, BoxError>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }
}

fn lane(config: &kube::Config, protocol: Protocol) -> Result<Lane, ConnectError> {
    let client = http_client(config, protocol)?;
    let auth =
        config.auth_layer().map_err(|source| ConnectError::Credentials { source: Box::new(source) })?;
    let headers = config
        .extra_headers_layer()
        .map_err(|source| ConnectError::Credentials { source: Box::new(source) })?;
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(auth)
        .layer(headers)
        .map_err(BoxError::from)
        .service(client)
        .map_response(|answer: Response<hyper::body::Incoming>| {
            answer.map(|body| body.map_err(BoxError::from).boxed_unsync())
        });
    Ok(BoxCloneSyncService::new(service))
}

type HttpsClient = HttpClient<hyper_rustls::HttpsConnector<HttpConnector>, RequestBody>;

fn http_client(config: &kube::Config, protocol: Protocol) -> Result<HttpsClient, ConnectError> {
    // rustls panics if a binary has two providers and none is installed. A provider that is installed already
    // stays.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let tls =
        config.rustls_client_config().map_err(|source| ConnectError::Tls { source: Box::new(source) })?;

    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    // A PATCH is two small writes; with Nagle's algorithm the second would wait for the acknowledgement of
    // the first.
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(config.connect_timeout.or(Some(CONNECT_TIMEOUT)));
    tcp.set_keepalive(Some(PING_EVERY));

    let mut connector = hyper_rustls::HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http();
    if let Some(name) = &config.tls_server_name {
        let name = name
            .clone()
            .try_into()
            .map_err(|source| ConnectError::ServerName { name: name.clone(), source: Box::new(source) })?;
        connector = connector.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    let connector = match protocol {
        Protocol::Http2 => connector.enable_all_versions().wrap_connector(tcp),
        Protocol::Http1 => connector.enable_http1().wrap_connector(tcp),
    };
    Ok(HttpClient::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE_CONNECTION)
        .http2_keep_alive_interval(PING_EVERY)
        .http2_keep_alive_timeout(PING_ANSWER)
        .http2_keep_alive_while_idle(true)
        .build(connector))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn silent() -> Lane {
        BoxCloneSyncService::new(tower::service_fn(|_: Request<RequestBody>| async {
            Ok::<_, BoxError>(Response::new(Full::new(Bytes::new()).map_err(BoxError::from).boxed_unsync()))
        }))
    }

    #[tokio::test]
    async fn a_full_connection_is_followed_by_another_and_places_come_back() {
        let opened = Arc::new(AtomicUsize::new(1));
        let counter = Arc::clone(&opened);
        let spread = Spread::new(silent(), move || {
            counter.fetch_add(1, Ordering::Relaxed);
            Some(silent())
        });
        let watch = || async { spread.clone().oneshot(Request::new(RequestBody::default())).await.unwrap() };
        let mut answers = Vec::new();
        for _ in 0..250 {
            answers.push(watch().await);
        }
        assert_eq!(opened.load(Ordering::Relaxed), 3);
        answers.truncate(10);
        for _ in 0..200 {
            answers.push(watch().await);
        }
        assert_eq!(
            opened.load(Ordering::Relaxed),
            3,
            "the places of answers that were dropped are used again"
        );
    }
}
