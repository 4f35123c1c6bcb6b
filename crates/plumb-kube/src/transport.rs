//! The way to one API server: TLS, credentials, and two HTTP lanes, one for requests and one for watches.
//!
//! Watches have a lane of their own so that a burst of watch data never delays an apply behind it. Both lanes
//! speak HTTP/2 where the server offers it (every API server does): the watches of some sixty kinds are then
//! streams of one connection, whose pings notice a dead peer.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper_rustls::FixedServerNameResolver;
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::ConfigExt;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, ServiceBuilder, ServiceExt};

use crate::connect::ConnectError;

/// Body of a request: always known in full before it is sent.
pub type RequestBody = Full<Bytes>;
/// Body of an answer: watches and logs stream it.
pub type AnswerBody = UnsyncBoxBody<Bytes, BoxError>;
/// One HTTP service. Tests put a scripted one in its place.
pub type Lane = BoxCloneSyncService<Request<RequestBody>, Response<AnswerBody>, BoxError>;

/// The two lanes to one API server.
#[derive(Clone)]
pub struct Transport {
    /// Requests with a short answer.
    pub requests: Lane,
    /// Watches and other answers that do not end.
    pub watches: Lane,
}

/// Which HTTP the lanes may speak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/2 where offered. Measured faster for many small requests, and one connection holds every watch.
    #[default]
    Http2,
    /// HTTP/1.1 only, one connection per request in flight.
    Http1,
}

/// A dead peer is noticed within the sum of these two.
const PING_EVERY: Duration = Duration::from_secs(20);
const PING_ANSWER: Duration = Duration::from_secs(10);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const IDLE_CONNECTION: Duration = Duration::from_secs(90);

impl Transport {
    pub(crate) fn new(config: &kube::Config, protocol: Protocol) -> Result<Self, ConnectError> {
        Ok(Self { requests: lane(config, protocol)?, watches: lane(config, protocol)? })
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
    // Two providers in one binary would make rustls panic when it has to choose; the first choice stays.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let tls =
        config.rustls_client_config().map_err(|source| ConnectError::Tls { source: Box::new(source) })?;

    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    // A PATCH is two small writes; without this the second waits for the acknowledgement of the first.
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
