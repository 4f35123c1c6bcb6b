//! Listens, accepts connections, and limits what a client can use.
//!
//! The server has a thread and a runtime of its own: work on apps, however long it takes, does not delay an answer to a
//! health probe.

use std::net::{SocketAddr, TcpListener as StdListener};
use std::sync::Arc;
use std::time::{Duration, Instant};

use plumb_core::peers::{Peer, PeerShares};
use plumb_engine::{FaultLog, Handle};
use plumb_kube::Connection;
use plumb_server::{Api, ApiOptions};
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use tracing::{debug, error, warn};

use crate::connection::{Serving, connection};
use crate::routes::Side;
use crate::webhook::Webhooks;

/// Most connections of a listener at a time, and most of one client. A connection in excess is closed at once. Git servers
/// may come through one proxy, so one client may have many.
const MOST_CONNECTIONS: usize = 256;
const MOST_OF_ONE: usize = 48;
/// The same where the API is served: each stream of REST is a connection, and users may come through one proxy.
const MOST_OF_API: usize = 4096;
const MOST_OF_ONE_API: usize = 2048;
/// Connections that are kept for clients with few of them, so that two addresses cannot take all.
const KEPT_OF_API: usize = 512;
const KEPT: usize = 32;
/// How long plumb waits for open connections when it stops.
/// A call that renders takes some seconds.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);
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

/// What the API needs to start.
pub struct ApiStart {
    /// The API server that it reads and writes.
    pub connection: Connection,
    /// How it is reached.
    pub options: ApiOptions,
}

/// A running server.
pub struct Server {
    stop: watch::Sender<bool>,
    ended: Vec<oneshot::Receiver<()>>,
}

impl Server {
    /// Serves the listeners, each on a thread of its own, until stopped: however much the API has to do, health probes
    /// are answered.
    pub fn start(
        listeners: Vec<Listener>,
        handle: &Handle,
        mut api: Option<ApiStart>,
    ) -> Result<Self, std::io::Error> {
        let (stop, stopped) = watch::channel(false);
        let mut ended = Vec::new();
        for listener in listeners {
            let mut api = if listener.side == Side::Outside { api.take() } else { None };
            if let Some(api) = &mut api {
                api.options.own_address = own_address(listener.address(), api.options.own_address.take());
            }
            let (done, end) = oneshot::channel();
            ended.push(end);
            let (handle, stopped) = (handle.clone(), stopped.clone());
            let runtime = tokio::runtime::Builder::new_current_thread()
                .max_blocking_threads(BLOCKING_THREADS)
                .enable_all()
                .build()?;
            let name = match listener.side {
                Side::Inside => "web",
                Side::Outside => "api",
            };
            std::thread::Builder::new().name(name.to_owned()).spawn(move || {
                runtime.block_on(serve(listener, handle, api, stopped));
                // A thread that still reads metrics must not delay the end of the process.
                runtime.shutdown_background();
                let _ = done.send(());
            })?;
        }
        Ok(Self { stop, ended })
    }

    /// Accepts no more connections, and waits shortly for the open ones to end.
    pub async fn stop(self) {
        let _ = self.stop.send(true);
        for end in self.ended {
            let _ = end.await;
        }
    }
}

async fn serve(
    listener: Listener,
    handle: Handle,
    api: Option<ApiStart>,
    mut stopped: watch::Receiver<bool>,
) {
    let side = listener.side;
    let socket = match TcpListener::from_std(listener.socket) {
        Ok(socket) => socket,
        Err(error) => {
            error!(%error, ?side, "cannot serve HTTP");
            return;
        }
    };
    let api = api.and_then(start_api(&handle));
    let shares = match &api {
        Some(_) => PeerShares::new(MOST_OF_API, MOST_OF_ONE_API).keeping(KEPT_OF_API),
        None => PeerShares::new(MOST_CONNECTIONS, MOST_OF_ONE).keeping(KEPT),
    };
    let stopping = stopped.clone();
    let serving = Arc::new(Serving { side, handle, webhooks: Webhooks::default(), api, stopping });
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
                let serving = Arc::clone(&serving);
                connections.spawn(async move {
                    connection(&serving, stream, peer).await;
                    drop(share);
                });
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
    if let Some(api) = &serving.api {
        api.stop();
    }
    let all = async { while connections.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, all).await;
}

/// Where other replicas reach a listener: at its address, or if it listens on all, at the one of the pod.
fn own_address(bound: Option<SocketAddr>, pod: Option<String>) -> Option<String> {
    let bound = bound?;
    if !bound.ip().is_unspecified() {
        return Some(bound.to_string());
    }
    let pod: std::net::IpAddr = pod?.parse().ok()?;
    Some(SocketAddr::new(pod, bound.port()).to_string())
}

/// Starts the API, and prepares what a new installation lacks.
fn start_api(handle: &Handle) -> impl FnOnce(ApiStart) -> Option<Arc<Api>> {
    let handle = handle.clone();
    move |start| match Api::new(&start.connection, handle, start.options) {
        Ok(api) => {
            let preparing = Arc::clone(&api);
            tokio::spawn(async move {
                preparing.prepare().await;
                preparing.publish_address().await;
            });
            Some(api)
        }
        Err(error) => {
            error!(%error, "cannot serve the API");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_on_all_addresses_is_reached_at_the_pod() {
        let check = |bound: &str, pod: Option<&str>, expected: Option<&str>| {
            let found = own_address(bound.parse().ok(), pod.map(str::to_owned));
            assert_eq!(found.as_deref(), expected, "{bound} {pod:?}");
        };
        check("127.0.0.1:8080", Some("10.0.0.1"), Some("127.0.0.1:8080"));
        check("0.0.0.0:8080", Some("10.0.0.1"), Some("10.0.0.1:8080"));
        check("[::]:8080", Some("fd00::1"), Some("[fd00::1]:8080"));
        check("0.0.0.0:8080", None, None);
        check("0.0.0.0:8080", Some("nonsense"), None);
    }
}
