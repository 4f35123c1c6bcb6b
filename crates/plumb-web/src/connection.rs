//! One connection: with or without TLS, HTTP/1 or HTTP/2.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use plumb_core::peers::Peer;
use plumb_engine::Handle;
use plumb_server::{Api, Transport};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tracing::debug;

use crate::routes::{self, Security, Side};
use crate::webhook::Webhooks;

/// A client that does not send the head of its request within this time is disconnected.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// The same for clients of the API, where it is also how long a connection may be idle between two requests. Proxies keep
/// connections for a minute: one that plumb closes first fails the request that is on its way.
const IDLE_TIMEOUT: Duration = Duration::from_secs(75);
/// Longest duration of a connection without the API.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(30);
/// Longest time for the first bytes and for the TLS handshake.
const HELLO_TIMEOUT: Duration = Duration::from_secs(10);
/// Buffer for the head of a request.
const BUFFER: usize = 32 * 1024;
/// How often an idle HTTP/2 connection is checked, and how long its answer may take.
const PING_EVERY: Duration = Duration::from_mins(1);
const PING_WITHIN: Duration = Duration::from_secs(20);
/// Most streams of one HTTP/2 connection. A user may have a thousand open watches, and a replica passes on as many calls.
const MOST_STREAMS: u32 = 1_100;
/// Bytes that a client may send before they are read: in one stream, and in all of a connection.
const WINDOW: u32 = 64 << 10;
const CONNECTION_WINDOW: u32 = 256 << 10;
/// Bytes of one stream that wait to be sent.
const SEND_BUFFER: usize = 64 << 10;
/// The first bytes of HTTP/2.
const PREFACE: &[u8] = b"PRI * HTTP/2.0";
/// The first byte of TLS.
const TLS: u8 = 0x16;

/// What all connections of a listener share.
pub(crate) struct Serving {
    pub(crate) side: Side,
    pub(crate) handle: Handle,
    pub(crate) webhooks: Webhooks,
    pub(crate) api: Option<Arc<Api>>,
    pub(crate) stopping: watch::Receiver<bool>,
}

/// Serves one connection until it ends.
pub(crate) async fn connection(serving: &Arc<Serving>, stream: TcpStream, peer: Peer) {
    let Some(api) = &serving.api else {
        let served = http1(serving, stream, Security::Fine, peer, false);
        if tokio::time::timeout(CONNECTION_TIMEOUT, served).await.is_err() {
            debug!(?peer, "connection took too long");
        }
        return;
    };
    let first = tokio::select! {
        first = tokio::time::timeout(HELLO_TIMEOUT, first_bytes(&stream)) => first,
        // Browsers open connections before they need them.
        () = stopped(serving) => return,
    };
    let Ok(Some(first)) = first else { return };
    match (api.transport(), first) {
        (Transport::Tls, First::Tls) => with_tls(serving, api, stream, peer).await,
        (Transport::Tls, First::Http1) => http1(serving, stream, Security::Missing, peer, true).await,
        // A client that is answered without TLS would send its token in the clear.
        (Transport::Tls, First::Http2) => debug!(?peer, "HTTP/2 without TLS refused"),
        // A client finds no certificate here: it would ignore that it was told to do without.
        (Transport::Plain, First::Tls) => of_replica(serving, api, stream, peer).await,
        (Transport::Plain, First::Http1) => http1(serving, stream, Security::Fine, peer, true).await,
        (Transport::Plain, First::Http2) => http2(serving, stream, peer).await,
    }
}

/// How a connection begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum First {
    Tls,
    Http1,
    Http2,
}

/// Looks at the first bytes without taking them; `None` if there are none.
async fn first_bytes(stream: &TcpStream) -> Option<First> {
    let mut bytes = [0; PREFACE.len()];
    loop {
        let read = stream.peek(&mut bytes).await.ok().filter(|read| *read > 0)?;
        let seen = bytes.get(..read)?;
        if seen.first() == Some(&TLS) {
            return Some(First::Tls);
        }
        if !PREFACE.starts_with(seen) {
            return Some(First::Http1);
        }
        if read == PREFACE.len() {
            return Some(First::Http2);
        }
        // Only a part has arrived. `peek` returns at once, so the loop must not spin.
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn with_tls(serving: &Arc<Serving>, api: &Api, stream: TcpStream, peer: Peer) {
    let Some(config) = api.tls().await else { return };
    let accepted = tokio::time::timeout(HELLO_TIMEOUT, TlsAcceptor::from(config).accept(stream)).await;
    let Ok(Ok(stream)) = accepted else {
        debug!(?peer, "no TLS handshake");
        return;
    };
    if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
        http2(serving, stream, peer).await;
    } else {
        http1(serving, stream, Security::Fine, peer, true).await;
    }
}

/// A connection of another replica, which always uses TLS.
async fn of_replica(serving: &Arc<Serving>, api: &Api, stream: TcpStream, peer: Peer) {
    let Some(config) = api.replica_tls().await else { return };
    let accepted = tokio::time::timeout(HELLO_TIMEOUT, TlsAcceptor::from(config).accept(stream)).await;
    let Ok(Ok(stream)) = accepted else {
        debug!(?peer, "TLS refused: the server runs without, and this is no replica");
        return;
    };
    http2(serving, stream, peer).await;
}

async fn answer(
    serving: Arc<Serving>,
    security: Security,
    peer: Peer,
    request: Request<Incoming>,
) -> Result<http::Response<plumb_server::AnswerBody>, Infallible> {
    let api = serving.api.as_deref().map(|api| (api, security));
    Ok(routes::answer(serving.side, &serving.handle, &serving.webhooks, api, peer, request).await)
}

/// Resolves when the server stops.
async fn stopped(serving: &Serving) {
    let mut stopping = serving.stopping.clone();
    let _ = stopping.wait_for(|stop| *stop).await;
}

async fn http1(
    serving: &Arc<Serving>,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    security: Security,
    peer: Peer,
    keep_alive: bool,
) {
    // hyper keeps the place of this future for as long as the connection lives. In a box, an open stream does not hold it.
    let service = service_fn(|request| Box::pin(answer(Arc::clone(serving), security, peer, request)));
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(if keep_alive { IDLE_TIMEOUT } else { HEAD_TIMEOUT })
        .max_buf_size(BUFFER)
        // Probes and scrapes are rare; an idle connection would only hold a place.
        .keep_alive(keep_alive)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(served);
    let ended = tokio::select! {
        ended = &mut served => ended,
        () = stopped(serving) => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = ended {
        debug!(?peer, %error, "connection ended");
    }
}

async fn http2(
    serving: &Arc<Serving>,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: Peer,
) {
    let service = service_fn(|request| answer(Arc::clone(serving), Security::Fine, peer, request));
    let served = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_WITHIN)
        .max_concurrent_streams(MOST_STREAMS)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buf_size(SEND_BUFFER)
        .max_header_list_size(64 * 1024)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(served);
    let ended = tokio::select! {
        ended = &mut served => ended,
        () = stopped(serving) => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = ended {
        debug!(?peer, %error, "connection ended");
    }
}
