//! Listens, accepts connections, and limits what a client can use.

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

use crate::routes::{self, Side};

/// Most connections at a time; more wait in the system's backlog.
const MOST_CONNECTIONS: usize = 64;
/// A client that does not send the head of its request within this time is disconnected.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest duration of a connection.
const CONNECTION_TIMEOUT: Duration = Duration::from_mins(5);
/// Buffer for the head of a request.
const BUFFER: usize = 32 * 1024;
/// How long plumb waits for open connections when it stops.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);
/// Pause after an error of accept, such as no file handles left, so that the loop does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// The address cannot be bound.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}")]
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
    /// Binds an address; port 0 selects any free port.
    pub async fn bind(address: SocketAddr, side: Side) -> Result<Self, BindError> {
        let socket = TcpListener::bind(address).await.map_err(|source| BindError { address, source })?;
        Ok(Self { socket, side })
    }

    /// The bound address, with the actual port.
    pub fn address(&self) -> Option<SocketAddr> {
        self.socket.local_addr().ok()
    }

    /// Serves until `stop` completes, then waits shortly for open connections to end.
    pub async fn serve(self, handle: Handle, stop: impl Future<Output = ()>) {
        let permits = Arc::new(Semaphore::new(MOST_CONNECTIONS));
        tokio::pin!(stop);
        loop {
            let accepted = async {
                // The semaphore is never closed, so this ends.
                let permit = Arc::clone(&permits).acquire_owned().await.ok()?;
                Some((self.socket.accept().await, permit))
            };
            let (accepted, permit) = tokio::select! {
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
                        drop(permit);
                    });
                }
                Err(error) => {
                    warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        let all = u32::try_from(MOST_CONNECTIONS).unwrap_or(u32::MAX);
        let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, permits.acquire_many(all)).await;
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
        // Probes and scrapes are rare; an idle connection would only hold a permit.
        .keep_alive(false)
        .serve_connection(stream, service)
        .await
}
