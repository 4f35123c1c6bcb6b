//! A TCP proxy to an API server that can be interrupted. It forwards bytes and reads none of them, so TLS and
//! credentials are those of the two ends: it acts like a firewall, a dead switch or a sleeping machine.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// What the proxy does with connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineState {
    /// It forwards data.
    Whole,
    /// It closes open connections and refuses new ones.
    Cut,
    /// It keeps connections open and forwards nothing: a client notices only by a timeout.
    Silent,
}

/// A running line. Dropping it ends every connection.
pub struct Line {
    address: SocketAddr,
    state: watch::Sender<LineState>,
    n_open: Arc<AtomicUsize>,
    server: JoinHandle<()>,
}

impl Line {
    /// Starts a line on a free port of 127.0.0.1, to that port.
    pub async fn to(port: u16) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.context("listen on 127.0.0.1")?;
        let address = listener.local_addr().context("listen on 127.0.0.1")?;
        let state = watch::Sender::new(LineState::Whole);
        let n_open = Arc::new(AtomicUsize::new(0));
        let server = tokio::spawn(serve(listener, port, state.subscribe(), Arc::clone(&n_open)));
        Ok(Self { address, state, n_open, server })
    }

    /// The address of the API server at the other end, through this line.
    pub fn server(&self) -> String {
        format!("https://{}", self.address)
    }

    /// From now on.
    pub fn set(&self, state: LineState) {
        self.state.send_replace(state);
    }

    /// How many connections are open.
    pub fn n_open(&self) -> usize {
        self.n_open.load(Ordering::SeqCst)
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.state.send_replace(LineState::Cut);
        self.server.abort();
    }
}

async fn serve(
    listener: TcpListener,
    port: u16,
    state: watch::Receiver<LineState>,
    n_open: Arc<AtomicUsize>,
) {
    while let Ok((near, _)) = listener.accept().await {
        if *state.borrow() == LineState::Cut {
            continue;
        }
        let (state, n_open) = (state.clone(), Arc::clone(&n_open));
        tokio::spawn(async move {
            n_open.fetch_add(1, Ordering::SeqCst);
            carry(near, port, state).await;
            n_open.fetch_sub(1, Ordering::SeqCst);
        });
    }
}

async fn carry(mut near: TcpStream, port: u16, mut state: watch::Receiver<LineState>) {
    if *state.borrow() == LineState::Whole {
        let Ok(mut far) = TcpStream::connect(("127.0.0.1", port)).await else { return };
        tokio::select! {
            _ = copy_bidirectional(&mut near, &mut far) => return,
            _ = state.wait_for(|state| *state != LineState::Whole) => {}
        }
        // Data in flight is lost: an interrupted connection is never continued.
        if *state.borrow() == LineState::Silent {
            let _ = state.wait_for(|state| *state != LineState::Silent).await;
        }
    } else {
        let _ = state.wait_for(|state| *state != LineState::Silent).await;
    }
}
