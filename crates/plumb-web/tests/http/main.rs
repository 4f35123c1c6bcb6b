//! The server under hostile clients. The clients use blocking sockets on the test's own thread: nothing of the server
//! may depend on the caller's runtime.

#![expect(clippy::unwrap_used, reason = "what cannot be done fails the test")]

mod api;

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use plumb_engine::Handle;
use plumb_web::{Listener, Server, Side};

/// Long enough for a busy machine.
pub(crate) const LIMIT: Duration = Duration::from_mins(1);

fn serve(sides: &[Side]) -> (Server, Vec<SocketAddr>) {
    let bind = |side: &Side| Listener::bind((Ipv4Addr::LOCALHOST, 0).into(), *side).unwrap();
    let listeners: Vec<Listener> = sides.iter().map(bind).collect();
    let addresses = listeners.iter().map(|listener| listener.address().unwrap()).collect();
    (Server::start(listeners, &Handle::default(), None).unwrap(), addresses)
}

pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream
}

fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = connect(address);
    stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: plumb\r\n\r\n").as_bytes()).unwrap();
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    answer
}

/// The test never yields to its runtime, as if all worker threads were blocked.
#[tokio::test]
async fn health_is_answered_while_every_worker_is_blocked() {
    let (server, addresses) = serve(&[Side::Inside, Side::Outside]);
    for address in addresses {
        assert!(get(address, "/healthz").starts_with("HTTP/1.1 200"));
        let ready = get(address, "/readyz");
        assert!(ready.starts_with("HTTP/1.1 503") && ready.ends_with("starting\n"), "{ready}");
    }
    server.stop().await;
}

#[tokio::test]
async fn metrics_are_of_the_inside_and_webhooks_of_the_outside() {
    let (server, addresses) = serve(&[Side::Inside, Side::Outside]);
    assert!(get(addresses[0], "/metrics").contains("plumb_leader 0"));
    assert!(get(addresses[1], "/metrics").starts_with("HTTP/1.1 404"));
    assert!(get(addresses[0], "/api/webhook").starts_with("HTTP/1.1 404"));
    assert!(get(addresses[1], "/api/webhook").starts_with("HTTP/1.1 405"));
    server.stop().await;
}

/// One client cannot open more than its share; its idle connections end after some seconds.
#[tokio::test]
async fn idle_connections_of_one_client_are_bounded_and_end() {
    let (server, addresses) = serve(&[Side::Outside]);
    let idle: Vec<TcpStream> = (0..100).map(|_| connect(addresses[0])).collect();
    let started = Instant::now();
    let mut n_refused = 0;
    // The last ones exceed the share of a client: they end at once.
    for mut stream in idle.into_iter().rev() {
        let _ = stream.read_to_end(&mut Vec::new());
        n_refused += usize::from(started.elapsed() < Duration::from_secs(4));
        assert!(started.elapsed() < LIMIT, "an idle connection does not end");
    }
    assert_eq!(n_refused, 52);
    assert!(get(addresses[0], "/healthz").starts_with("HTTP/1.1 200"), "its share is free again");
    let _ = n_refused;
    server.stop().await;
}
