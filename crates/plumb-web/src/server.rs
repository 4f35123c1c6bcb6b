//! Listening, accepting, and the bounds on what a client can make us do.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use plumb_engine::Handle;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tracing::{debug, warn};

use crate::routes;

/// Connections at a time; more wait in the system's backlog.
const MOST_CONNECTIONS: usize = 64;
/// A client that does not send its request's head within this time is let go.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest that one connection may last.
const CONNECTION_TIMEOUT: Duration = Duration::from_mins(5);
/// Room for one connection's heads.
const BUFFER: usize = 32 * 1024;
/// How long connections that are busy may take to end when plumb stops.
const GOODBYE: Duration = Duration::from_secs(2);
/// After an error of accept (no file handles left), so that it does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// Who is meant to use a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The cluster: probes and Prometheus.
    Inside,
    /// The world: webhooks.
    Outside,
}

/// An address that cannot be listened on.
#[derive(Debug, thiserror::Error)]
#[error("listen on {address}")]
pub struct BindError {
    address: SocketAddr,
    #[source]
    source: std::io::Error,
}

/// A bound address.
pub struct Listener {
    socket: TcpListener,
    side: Side,
}

impl Listener {
    /// Binds an address; port 0 takes any free one.
    pub async fn bind(address: SocketAddr, side: Side) -> Result<Self, BindError> {
        let socket = TcpListener::bind(address).await.map_err(|source| BindError { address, source })?;
        Ok(Self { socket, side })
    }

    /// The address that it really has.
    pub fn address(&self) -> Option<SocketAddr> {
        self.socket.local_addr().ok()
    }

    /// Answers until `stop` is done; then lets busy connections end, for a moment.
    pub async fn serve(self, handle: Handle, stop: impl Future<Output = ()>) {
        let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
        tokio::pin!(stop);
        loop {
            let accepted = async {
                // Never closed, so there always is a place in the end.
                let place = Arc::clone(&places).acquire_owned().await.ok()?;
                Some((self.socket.accept().await, place))
            };
            let (accepted, place) = tokio::select! {
                () = &mut stop => break,
                accepted = accepted => match accepted {
                    Some(accepted) => accepted,
                    None => break,
                },
            };
            match accepted {
                Ok((stream, peer)) => {
                    let handle = handle.clone();
                    let side = self.side;
                    tokio::spawn(async move {
                        let served = connection(TokioIo::new(stream), side, &handle);
                        match tokio::time::timeout(CONNECTION_TIMEOUT, served).await {
                            Ok(Ok(())) => {}
                            Ok(Err(error)) => debug!(%peer, %error, "connection ended"),
                            Err(_) => debug!(%peer, "connection took too long"),
                        }
                        drop(place);
                    });
                }
                Err(error) => {
                    warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        let all = u32::try_from(MOST_CONNECTIONS).unwrap_or(u32::MAX);
        let _ = tokio::time::timeout(GOODBYE, places.acquire_many(all)).await;
    }
}

async fn connection(
    stream: TokioIo<tokio::net::TcpStream>,
    side: Side,
    handle: &Handle,
) -> Result<(), hyper::Error> {
    let service = service_fn(|request: Request<Incoming>| async move {
        Ok::<_, std::convert::Infallible>(routes::answer(side, handle, request).await)
    });
    hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(BUFFER)
        // Probes and scrapes come rarely; an open connection would only keep a place.
        .keep_alive(false)
        .serve_connection(stream, service)
        .await
}
