//! Listens, accepts connections, and limits what a client can use.
//!
//! The server has a thread and a runtime of its own: work on apps, however long it takes, does not delay an answer to a
//! health probe.

use std::net::{SocketAddr, TcpListener as StdListener};
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use plumb_core::peers::{Peer, PeerShare, PeerShares};
use plumb_engine::{FaultLog, Handle};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use tracing::{debug, error, warn};

use crate::routes::{self, Side};
use crate::webhook::Webhooks;

/// Most connections of a listener at a time, and most of one client. A connection in excess is closed at once. Git servers
/// may come through one proxy, so one client may have many.
const MOST_CONNECTIONS: usize = 256;
const MOST_OF_ONE: usize = 48;
/// A client that does not send the head of its request within this time is disconnected.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest duration of a connection.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(30);
/// Buffer for the head of a request.
const BUFFER: usize = 32 * 1024;
/// How long plumb waits for open connections when it stops.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);
/// Pause after an error of accept, such as no file handles left, so that the loop does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);
/// Threads for what may take long: metrics, and bodies of webhooks.
const BLOCKING_THREADS: usize = 4;

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
    socket: StdListener,
    side: Side,
}

impl Listener {
    /// Binds an address; port 0 selects any free port.
    pub fn bind(address: SocketAddr, side: Side) -> Result<Self, BindError> {
        let bound = StdListener::bind(address).and_then(|socket| {
            socket.set_nonblocking(true)?;
            Ok(socket)
        });
        let socket = bound.map_err(|source| BindError { address, source })?;
        Ok(Self { socket, side })
    }

    /// The bound address, with the actual port.
    pub fn address(&self) -> Option<SocketAddr> {
        self.socket.local_addr().ok()
    }
}

/// A running server.
pub struct Server {
    stop: watch::Sender<bool>,
    ended: oneshot::Receiver<()>,
}

impl Server {
    /// Serves the listeners on a thread of their own until stopped.
    pub fn start(listeners: Vec<Listener>, handle: Handle) -> Result<Self, std::io::Error> {
        let (stop, stopped) = watch::channel(false);
        let (done, ended) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .max_blocking_threads(BLOCKING_THREADS)
            .enable_all()
            .build()?;
        std::thread::Builder::new().name("web".to_owned()).spawn(move || {
            runtime.block_on(async {
                let mut serving = JoinSet::new();
                for listener in listeners {
                    serving.spawn(serve(listener, handle.clone(), stopped.clone()));
                }
                while serving.join_next().await.is_some() {}
            });
            // A thread that still reads metrics must not delay the end of the process.
            runtime.shutdown_background();
            let _ = done.send(());
        })?;
        Ok(Self { stop, ended })
    }

    /// Accepts no more connections, and waits shortly for the open ones to end.
    pub async fn stop(self) {
        let _ = self.stop.send(true);
        let _ = self.ended.await;
    }
}

async fn serve(listener: Listener, handle: Handle, mut stopped: watch::Receiver<bool>) {
    let side = listener.side;
    let socket = match TcpListener::from_std(listener.socket) {
        Ok(socket) => socket,
        Err(error) => {
            error!(%error, ?side, "cannot serve HTTP");
            return;
        }
    };
    let shares = PeerShares::new(MOST_CONNECTIONS, MOST_OF_ONE);
    let webhooks = Arc::new(Webhooks::default());
    let mut connections = JoinSet::new();
    let mut faults = FaultLog::default();
    loop {
        let accepted = tokio::select! {
            _ = stopped.wait_for(|stop| *stop) => break,
            Some(_) = connections.join_next() => continue,
            accepted = socket.accept() => accepted,
        };
        match accepted {
            Ok((stream, address)) => {
                let peer = Peer::of(address.ip());
                let share = match shares.take(peer, 1) {
                    Ok(share) => share,
                    Err(why) => {
                        debug!(%address, ?why, "connection refused: too many are open");
                        continue;
                    }
                };
                connections.spawn(connection(
                    stream,
                    share,
                    side,
                    handle.clone(),
                    Arc::clone(&webhooks),
                    peer,
                ));
            }
            Err(error) => {
                if let Some(times) = faults.fault(Instant::now()) {
                    warn!(%error, times, "cannot accept a connection; trying again");
                }
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(socket);
    let all = async { while connections.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, all).await;
}

async fn connection(
    stream: TcpStream,
    share: PeerShare,
    side: Side,
    handle: Handle,
    webhooks: Arc<Webhooks>,
    peer: Peer,
) {
    let service = service_fn(|request: Request<Incoming>| {
        let (handle, webhooks) = (&handle, &webhooks);
        async move {
            let answer = routes::answer(side, handle, webhooks, peer, request).await;
            Ok::<_, std::convert::Infallible>(answer)
        }
    });
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(BUFFER)
        // Probes and scrapes are rare; an idle connection would only hold a place.
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    match tokio::time::timeout(CONNECTION_TIMEOUT, served).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => debug!(?peer, %error, "connection ended"),
        Err(_) => debug!(?peer, "connection took too long"),
    }
    drop(share);
}
