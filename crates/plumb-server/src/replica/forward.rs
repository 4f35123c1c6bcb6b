//! Passes requests on to the leader, over few connections with many streams.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, Uri, header};
use http_body::Frame;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use plumb_api::{Code, Status};
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::sync::{Mutex, mpsc};
use tokio_rustls::TlsConnector;
use tracing::debug;

use super::keys::ReplicaKeys;
use super::tls::{NAME, client_config};
use crate::body::AnswerBody;

/// Says that a replica passed a request on, and who its client is.
pub(crate) const FORWARDED: &str = "x-plumb-client";
/// How long a connection may take.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// How often an idle connection is checked, and how long its answer may take.
const PING_EVERY: Duration = Duration::from_secs(20);
const PING_WITHIN: Duration = Duration::from_secs(10);
/// Most requests of one connection. The leader accepts some more.
const MOST_REQUESTS: usize = 1_000;
/// Most connections.
const MOST_CONNECTIONS: usize = 16;
/// How many frames of an answer wait for the client, and how long a client may take none of them.
const WAITING: usize = 8;
const PATIENCE: Duration = Duration::from_mins(1);
/// Headers that belong to one connection.
const OF_CONNECTION: [HeaderName; 6] = [
    header::CONNECTION,
    header::HOST,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::CONTENT_LENGTH,
    HeaderName::from_static("keep-alive"),
];

/// A request to pass on.
pub(crate) struct Passed {
    pub(crate) method: Method,
    /// The path below the root path, with the query.
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
    pub(crate) client: IpAddr,
}

struct Connection {
    address: String,
    sender: SendRequest<Full<Bytes>>,
    n_requests: Arc<AtomicUsize>,
}

/// Counts a request as long as it lives.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The connections to the leader.
#[derive(Default)]
pub(crate) struct Forwarder {
    connections: Mutex<Vec<Connection>>,
}

impl Forwarder {
    /// Sends a request to the leader and returns its answer as it comes.
    pub(crate) async fn pass(
        &self,
        address: &str,
        keys: &ReplicaKeys,
        passed: Passed,
    ) -> Result<Response<AnswerBody>, Status> {
        let (mut sender, counted) = self.sender(address, keys).await.map_err(|why| {
            debug!(leader = address, reason = why, "cannot reach the leader");
            Status::unavailable("the replica that leads cannot be reached; try again")
        })?;
        let request = request(keys, passed)?;
        let answer = sender.send_request(request).await.map_err(|error| {
            debug!(leader = address, %error, "the leader does not answer");
            Status::unavailable("the replica that leads does not answer; try again")
        })?;
        Ok(as_it_comes(answer, counted))
    }

    async fn sender(
        &self,
        address: &str,
        keys: &ReplicaKeys,
    ) -> Result<(SendRequest<Full<Bytes>>, Counted), String> {
        let mut connections = self.connections.lock().await;
        // A new leader has another address.
        connections.retain(|known| known.address == address && !known.sender.is_closed());
        let count = |known: &Connection| {
            known.n_requests.fetch_add(1, Ordering::Relaxed);
            (known.sender.clone(), Counted(Arc::clone(&known.n_requests)))
        };
        let has_room = |known: &&Connection| known.n_requests.load(Ordering::Relaxed) < MOST_REQUESTS;
        if let Some(known) = connections.iter().find(has_room) {
            return Ok(count(known));
        }
        if connections.len() >= MOST_CONNECTIONS {
            return Err("too many requests wait for the leader".to_owned());
        }
        let connecting = tokio::time::timeout(CONNECT_WITHIN, connect(address, keys));
        let sender = connecting.await.map_err(|_| "it does not answer in time".to_owned())??;
        let known = Connection { address: address.to_owned(), sender, n_requests: Arc::default() };
        let counted = count(&known);
        connections.push(known);
        Ok(counted)
    }
}

/// Connects with TLS, also where clients connect without: whoever answers at the address of the leader must show that it is
/// a replica before it sees the tokens of users.
async fn connect(address: &str, keys: &ReplicaKeys) -> Result<SendRequest<Full<Bytes>>, String> {
    let stream = TcpStream::connect(address).await.map_err(|error| error.to_string())?;
    let config = client_config(keys).ok_or("TLS cannot be set up")?;
    let name = ServerName::try_from(NAME).map_err(|error| error.to_string())?;
    let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
    let stream = stream.map_err(|error| error.to_string())?;
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder.timer(TokioTimer::new()).keep_alive_interval(PING_EVERY).keep_alive_timeout(PING_WITHIN);
    builder.keep_alive_while_idle(true);
    let shaken = builder.handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
    let (sender, connection) = shaken;
    tokio::spawn(connection);
    Ok(sender)
}

fn request(keys: &ReplicaKeys, passed: Passed) -> Result<Request<Full<Bytes>>, Status> {
    let wrong = || Status::invalid("the request cannot be passed on");
    let uri = format!("http://{NAME}{}", passed.path);
    let uri: Uri = uri.parse().map_err(|_| wrong())?;
    let mark = keys.mark(passed.client, uri.path(), jiff::Timestamp::now().as_second());
    let mut request = Request::new(Full::new(Bytes::from(passed.body)));
    *request.method_mut() = passed.method;
    *request.uri_mut() = uri;
    *request.headers_mut() = passed.headers;
    for name in OF_CONNECTION {
        request.headers_mut().remove(name);
    }
    request.headers_mut().insert(FORWARDED, HeaderValue::from_str(&mark).map_err(|_| wrong())?);
    Ok(request)
}

fn broken() -> HeaderMap {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from(Code::Unavailable.number()));
    trailers.insert("grpc-message", HeaderValue::from_static("the replica that leads has ended; try again"));
    trailers
}

/// The answer of the leader, frame by frame. A client that reads nothing for long is cut off.
fn as_it_comes(answer: Response<Incoming>, counted: Counted) -> Response<AnswerBody> {
    let (head, mut body) = answer.into_parts();
    let (sender, frames) = mpsc::channel(WAITING);
    let is_grpc = head.headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind == "application/grpc");
    tokio::spawn(async move {
        let _counted = counted;
        loop {
            let frame = tokio::select! {
                frame = body.frame() => frame,
                () = sender.closed() => return,
            };
            let frame = match frame {
                Some(Ok(frame)) => frame,
                // Without trailers, a client of gRPC would not try again.
                Some(Err(_)) if is_grpc => Frame::trailers(broken()),
                Some(Err(_)) | None => return,
            };
            if sender.send_timeout(frame, PATIENCE).await.is_err() {
                return;
            }
        }
    });
    Response::from_parts(head, AnswerBody::stream(frames))
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;
    use tokio::net::TcpListener;
    use tokio_rustls::TlsAcceptor;

    use super::super::tls::server_config;
    use super::*;

    fn passed() -> Passed {
        let mut headers = HeaderMap::new();
        headers.insert("token", HeaderValue::from_static("secret-token"));
        let client = "192.0.2.1".parse().unwrap();
        Passed { method: Method::GET, path: "/api/v1/x".to_owned(), headers, body: Vec::new(), client }
    }

    #[tokio::test]
    async fn who_is_no_replica_sees_no_token() {
        let keys = ReplicaKeys::derive(b"one").unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let stranger = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut seen = vec![0; 4096];
            let n = stream.read(&mut seen).await.unwrap();
            seen.truncate(n);
            seen
        });
        assert!(Forwarder::default().pass(&address, &keys, passed()).await.is_err());
        let seen = stranger.await.unwrap();
        assert_eq!(seen.first(), Some(&0x16), "the first bytes are those of TLS");
        assert!(!String::from_utf8_lossy(&seen).contains("secret-token"));
    }

    #[tokio::test]
    async fn a_replica_of_another_installation_is_refused_and_one_of_this_is_not() {
        let (keys, others) = (ReplicaKeys::derive(b"one").unwrap(), ReplicaKeys::derive(b"two").unwrap());
        for (server, expected) in [(&keys, true), (&others, false)] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap().to_string();
            let config = server_config(server).unwrap();
            tokio::spawn(async move {
                let (stream, _) = listener.accept().await.unwrap();
                let Ok(stream) = TlsAcceptor::from(Arc::new(config)).accept(stream).await else { return };
                let service = hyper::service::service_fn(|_| async {
                    Ok::<_, std::convert::Infallible>(Response::new(AnswerBody::full("hello")))
                });
                let served = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                let _ = served.serve_connection(TokioIo::new(stream), service).await;
            });
            let answer = Forwarder::default().pass(&address, &keys, passed()).await;
            assert_eq!(answer.is_ok(), expected);
        }
    }
}
