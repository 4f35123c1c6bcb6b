//! A connection to a port of a pod, over the WebSocket of a scripted API server.

use std::net::SocketAddr;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use plumb_kube::Connection;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// What the protocol appends to the client's key.
const MARK: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const BINARY: u8 = 0x82;
const CLOSE: u8 = 0x88;

/// One frame without a mask, as servers send it.
async fn send(stream: &mut TcpStream, bytes: &[u8]) {
    let length = u8::try_from(bytes.len()).unwrap();
    assert!(length < 126, "one byte says the length");
    stream.write_all(&[BINARY, length]).await.unwrap();
    stream.write_all(bytes).await.unwrap();
}

/// One frame of the client, unmasked.
async fn receive(stream: &mut TcpStream) -> Vec<u8> {
    let mut head = [0; 6];
    stream.read_exact(&mut head).await.unwrap();
    assert_eq!((head[0], head[1] & 0x80), (BINARY, 0x80));
    let mut bytes = vec![0; usize::from(head[1] & 0x7f)];
    stream.read_exact(&mut bytes).await.unwrap();
    bytes.iter().zip(head[2..].iter().cycle()).map(|(byte, mask)| byte ^ mask).collect()
}

/// The head of a request, without what follows it.
async fn head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap()
}

/// Accepts one connection, and answers the bytes that come for the port in capitals.
async fn shouting_pod(listener: TcpListener) {
    let (mut stream, _) = listener.accept().await.unwrap();
    let head = head(&mut stream).await;
    assert!(
        head.starts_with("GET /api/v1/namespaces/argocd/pods/server-0/portforward?&ports=8080 "),
        "{head}"
    );
    let key = head.lines().find_map(|line| line.strip_prefix("sec-websocket-key: ")).unwrap();
    let digest = &aws_lc_rs::digest::SHA1_FOR_LEGACY_USE_ONLY;
    let accept = STANDARD.encode(aws_lc_rs::digest::digest(digest, format!("{key}{MARK}").as_bytes()));
    let answer = format!(
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\n\
         sec-websocket-protocol: v4.channel.k8s.io\r\nsec-websocket-accept: {accept}\r\n\r\n"
    );
    stream.write_all(answer.as_bytes()).await.unwrap();
    // The first frames of both channels name the port.
    for channel in [0, 1] {
        send(&mut stream, &[channel, 0x90, 0x1f]).await;
    }
    let mut said = receive(&mut stream).await;
    assert_eq!(said.remove(0), 0, "the channel of data");
    let mut answer = vec![0];
    answer.extend(said.to_ascii_uppercase());
    send(&mut stream, &answer).await;
    // A client that leaves closes the WebSocket, and waits until the server ends the connection.
    let mut close = [0; 2];
    stream.read_exact(&mut close).await.unwrap();
    assert_eq!(close[0], CLOSE);
}

async fn connection(address: SocketAddr) -> Connection {
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "here",
        "clusters": [{"name": "here", "cluster": {"server": format!("http://{address}")}}],
        "users": [{"name": "here", "user": {}}],
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "here"}}],
    });
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("kubeconfig-{}", address.port()));
    std::fs::write(&path, kubeconfig.to_string()).unwrap();
    Connection::from_kubeconfig(&path, None).await.unwrap()
}

#[tokio::test]
async fn bytes_go_to_the_port_of_a_pod_and_back() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let pod = tokio::spawn(shouting_pod(listener));
    let connection = connection(address).await;
    let mut stream = connection.pod_port("argocd", "server-0", 8080).unwrap().open().await.unwrap();
    stream.write_all(b"hello").await.unwrap();
    let mut answer = [0; 5];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HELLO");
    drop(stream);
    pod.await.unwrap();
}

#[tokio::test]
async fn a_refused_connection_says_which_port_of_which_pod() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        head(&mut stream).await;
        let status = json!({"kind": "Status", "status": "Failure", "code": 403, "reason": "Forbidden", "message": "no"});
        let body = status.to_string();
        let answer = format!(
            "HTTP/1.1 403 Forbidden\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(answer.as_bytes()).await.unwrap();
    });
    let connection = connection(address).await;
    let refused = connection.pod_port("argocd", "server-0", 8080).unwrap().open().await.unwrap_err();
    assert_eq!(refused.to_string(), "cannot connect to port 8080 of pod server-0");
}
