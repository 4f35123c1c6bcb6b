//! The listener with the API, over a cluster that does not answer.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use http::Request;
use http_body_util::{BodyExt as _, Empty};
use hyper_util::rt::{TokioExecutor, TokioIo};
use plumb_engine::Handle;
use plumb_kube::Connection;
use plumb_server::{ApiOptions, PageMode, Transport};
use plumb_web::{ApiStart, Listener, Server, Side};
use serde_json::json;

use crate::{LIMIT, connect};

async fn serve() -> (Server, SocketAddr) {
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "none",
        "clusters": [{"name": "none", "cluster": {"server": "http://127.0.0.1:1"}}],
        "users": [{"name": "none", "user": {}}],
        "contexts": [{"name": "none", "context": {"cluster": "none", "user": "none"}}],
    });
    let listener = Listener::bind((Ipv4Addr::LOCALHOST, 0).into(), Side::Outside).unwrap();
    let address = listener.address().unwrap();
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("kubeconfig-{}", address.port()));
    std::fs::write(&path, kubeconfig.to_string()).unwrap();
    let options = ApiOptions {
        namespace: "argocd".to_owned(),
        transport: Transport::Plain,
        root_path: String::new(),
        base_href: String::new(),
        page: PageMode::Off,
        version: "v0".to_owned(),
        own_address: None,
    };
    let connection = Connection::from_kubeconfig(&path, None).await.unwrap();
    let api = ApiStart { connection, options };
    (Server::start(vec![listener], &Handle::default(), Some(api)).unwrap(), address)
}

/// Reads the answer to a probe from a connection that stays open.
fn read_ok(stream: &mut TcpStream) {
    let mut answer = Vec::new();
    while !answer.ends_with(b"ok\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        answer.push(byte[0]);
    }
    assert!(answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
}

/// A proxy keeps its connections for a minute. One that the server closes first fails the request that is on its way.
#[tokio::test]
async fn an_idle_connection_of_a_proxy_stays_open() {
    let (server, address) = serve().await;
    let probe = b"GET /healthz HTTP/1.1\r\nhost: plumb\r\n\r\n";
    let mut stream = connect(address);
    stream.write_all(probe).unwrap();
    read_ok(&mut stream);
    // Longer than a request without a head may take elsewhere. Time alone is what is tested here.
    std::thread::sleep(Duration::from_secs(7));
    stream.write_all(probe).unwrap();
    read_ok(&mut stream);
    drop(stream);
    server.stop().await;
}

/// An open connection without a request does not delay the end.
#[tokio::test]
async fn a_connection_without_a_request_ends_with_the_server() {
    let (server, address) = serve().await;
    let mut idle = connect(address);
    idle.set_read_timeout(Some(LIMIT)).unwrap();
    let mut probe = connect(address);
    probe.write_all(b"GET /healthz HTTP/1.1\r\nhost: plumb\r\n\r\n").unwrap();
    read_ok(&mut probe);
    let begun = std::time::Instant::now();
    server.stop().await;
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert_eq!(idle.read(&mut [0]).unwrap_or_default(), 0);
}

/// gRPC over HTTP/2 without TLS: the status of an error is in the headers.
#[tokio::test]
async fn a_service_that_is_not_there_is_unimplemented() {
    let (server, address) = serve().await;
    let stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let handshake = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
    let (mut client, connection) = handshake.await.unwrap();
    let connection = tokio::spawn(connection);
    let request = Request::post(format!("http://{address}/grpc.health.v1.Health/Check"))
        .header("content-type", "application/grpc")
        .body(Empty::<bytes::Bytes>::new())
        .unwrap();
    let answer = client.send_request(request).await.unwrap();
    let header =
        |name: &str| answer.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    assert_eq!(answer.status(), 200);
    assert_eq!(header("grpc-status").as_deref(), Some("12"));
    assert_eq!(header("grpc-message").as_deref(), Some("unknown method grpc.health.v1.Health/Check"));
    assert!(answer.into_body().collect().await.unwrap().to_bytes().is_empty());
    drop(client);
    connection.abort();
    server.stop().await;
}
