//! The HTTPS server of the witness, a mutating admission webhook. [`plumb_core::witness`] makes its answers.
//!
//! Only the API server knows the address: its path contains a secret, which is in the registration. A connection that
//! does not present it within seconds is closed, and each client can have only a few of them. The server has a thread of
//! its own, so that work on apps does not delay the writes of others.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::constant_time;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use jiff::Timestamp;
use parking_lot::Mutex;
use plumb_core::peers::{Peer, PeerShare, PeerShares};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, oneshot};
use tokio_rustls::TlsAcceptor;
use tracing::{debug, warn};

/// A review holds the old and the new object, and etcd accepts 1.5 MiB of each.
const LARGEST_REVIEW: usize = 8 << 20;
/// Buffer for the head of a request.
const LARGEST_HEAD: usize = 64 << 10;
/// Connections that have not presented the secret, of all clients and of one. An API server presents it at once.
const UNKNOWN: usize = 64;
const UNKNOWN_OF_ONE: usize = 16;
/// How long such a connection may take for the TLS handshake and the head of its first request.
const PROVE_WITHIN: Duration = Duration::from_secs(3);
/// Connections of API servers. They stay open between reviews.
const KNOWN: usize = 256;
/// How long a connection of an API server may wait for its next request.
const IDLE: Duration = Duration::from_secs(90);
/// An API server waits one second for the answer, so a body that takes longer is of no use.
const BODY_WITHIN: Duration = Duration::from_secs(2);
/// Bytes of the secret in the path.
const SECRET: usize = 32;

/// Whether a user and a field manager are plumb itself.
pub type IsOwn = Arc<dyn Fn(&str, &str) -> bool + Send + Sync>;

/// Why the witness cannot start.
#[derive(Debug, thiserror::Error)]
pub enum WitnessError {
    /// plumb cannot listen on the address.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// The system does not start a thread, or gives no random numbers.
    #[error("cannot start the server of the witness")]
    Start(#[source] std::io::Error),
    /// plumb cannot create a certificate.
    #[error("cannot create a certificate for {host}")]
    Certificate {
        /// The host of the certificate.
        host: String,
        /// Why not.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// A witness that listens, not yet registered.
pub struct Witness {
    listener: std::net::TcpListener,
    acceptor: TlsAcceptor,
    address: SocketAddr,
    ca_bundle: String,
    path: String,
}

/// A witness that answers until this is dropped.
pub struct WitnessServer {
    /// Dropped with this, which ends the thread.
    _stop: oneshot::Sender<()>,
}

impl Witness {
    /// Listens on `address` (port 0: a free one) with a new self-signed certificate for `host`. It is valid
    /// for this process only: it is not stored and needs no rotation.
    pub fn listen(address: SocketAddr, host: &str) -> Result<Self, WitnessError> {
        let certificate = |source: Box<dyn std::error::Error + Send + Sync>| WitnessError::Certificate {
            host: host.to_owned(),
            source,
        };
        let made = rcgen::generate_simple_self_signed(vec![host.to_owned()])
            .map_err(|error| certificate(error.into()))?;
        let ca_bundle = STANDARD.encode(made.cert.pem());
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
        let chain = vec![CertificateDer::from(made.cert.der().to_vec())];
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
            .map_err(|error| certificate(error.into()))?;
        let listen = |source| WitnessError::Listen { address, source };
        let listener = std::net::TcpListener::bind(address).map_err(listen)?;
        listener.set_nonblocking(true).map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let path = format!("/witness/{}", secret()?);
        Ok(Self { listener, acceptor: TlsAcceptor::from(Arc::new(config)), address, ca_bundle, path })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The certificate as a registration carries it.
    pub fn ca_bundle(&self) -> &str {
        &self.ca_bundle
    }

    /// The path of its address. It contains a secret.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Answers on a thread of its own until the result is dropped.
    pub fn serve(self, is_own: IsOwn) -> Result<WitnessServer, WitnessError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(WitnessError::Start)?;
        let (stop, stopped) = oneshot::channel();
        let served = move || {
            runtime.block_on(async {
                tokio::select! {
                    () = self.accept(is_own) => {}
                    _ = stopped => {}
                }
            });
        };
        let thread = std::thread::Builder::new().name("witness".to_owned()).spawn(served);
        thread.map_err(WitnessError::Start)?;
        Ok(WitnessServer { _stop: stop })
    }

    async fn accept(self, is_own: IsOwn) {
        let listener = match TcpListener::from_std(self.listener) {
            Ok(listener) => listener,
            Err(error) => {
                warn!(%error, "the witness cannot accept connections");
                return;
            }
        };
        let shared = Arc::new(Shared {
            path: self.path,
            is_own,
            unknown: PeerShares::new(UNKNOWN, UNKNOWN_OF_ONE),
            known: PeerShares::new(KNOWN, KNOWN),
        });
        loop {
            let (stream, address) = match listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Out of file descriptors, say: it passes, and a loop would not help it.
                    debug!(%error, "the witness cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            };
            let peer = Peer::of(address.ip());
            let Ok(share) = shared.unknown.take(peer, 1) else { continue };
            let (acceptor, shared) = (self.acceptor.clone(), Arc::clone(&shared));
            tokio::spawn(async move { serve_connection(stream, acceptor, &shared, peer, share).await });
        }
    }
}

/// What all connections share.
struct Shared {
    path: String,
    is_own: IsOwn,
    unknown: PeerShares,
    known: PeerShares,
}

/// Serves one connection. Until it presents the secret, it has a place among the unknown ones and little time.
async fn serve_connection(
    stream: TcpStream,
    acceptor: TlsAcceptor,
    shared: &Shared,
    peer: Peer,
    unknown: PeerShare,
) {
    let proven = Notify::new();
    // `None` as soon as a request presented the secret.
    let place = Mutex::new(Some(unknown));
    let known = Mutex::new(None);
    let prove = || {
        if place.lock().take().is_some() {
            *known.lock() = shared.known.take(peer, 1).ok();
            proven.notify_one();
        }
    };
    let serve = async {
        let Ok(stream) = acceptor.accept(stream).await else { return };
        let service = service_fn(|request| answer(request, shared, &prove));
        let answered = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(IDLE)
            .max_buf_size(LARGEST_HEAD)
            .serve_connection(TokioIo::new(stream), service)
            .await;
        if let Err(error) = answered {
            debug!(%error, "a connection to the witness broke");
        }
    };
    let in_time = async {
        if tokio::time::timeout(PROVE_WITHIN, proven.notified()).await.is_ok() && known.lock().is_some() {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        () = serve => {}
        () = in_time => {}
    }
}

async fn answer(
    request: Request<Incoming>,
    shared: &Shared,
    prove: &impl Fn(),
) -> Result<Response<Full<Bytes>>, Infallible> {
    let is_secret =
        constant_time::verify_slices_are_equal(request.uri().path().as_bytes(), shared.path.as_bytes());
    if is_secret.is_err() {
        return Ok(closing(plain(StatusCode::NOT_FOUND, "not found")));
    }
    prove();
    if request.method() != Method::POST {
        return Ok(plain(StatusCode::METHOD_NOT_ALLOWED, "POST an AdmissionReview"));
    }
    let body = Limited::new(request.into_body(), LARGEST_REVIEW).collect();
    let Ok(Ok(body)) = tokio::time::timeout(BODY_WITHIN, body).await else {
        return Ok(closing(plain(StatusCode::PAYLOAD_TOO_LARGE, "cannot read the whole review")));
    };
    // What exactly is wrong is not said: the review may hold a Secret.
    let is_own = |user: &str, manager: &str| (shared.is_own)(user, manager);
    let Ok(review) = plumb_core::witness::answer(&body.to_bytes(), Timestamp::now(), is_own) else {
        return Ok(plain(StatusCode::BAD_REQUEST, "not an AdmissionReview"));
    };
    let mut response = Response::new(Full::from(review.to_string()));
    let json = http::HeaderValue::from_static("application/json");
    response.headers_mut().insert(http::header::CONTENT_TYPE, json);
    Ok(response)
}

fn plain(status: StatusCode, text: &'static str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(text));
    *response.status_mut() = status;
    response
}

/// The connection ends after this answer.
fn closing(mut response: Response<Full<Bytes>>) -> Response<Full<Bytes>> {
    response.headers_mut().insert(http::header::CONNECTION, http::HeaderValue::from_static("close"));
    response
}

/// A secret that cannot be guessed, as hexadecimal digits.
fn secret() -> Result<String, WitnessError> {
    use std::fmt::Write as _;
    let mut bytes = [0; SECRET];
    aws_lc_rs::rand::fill(&mut bytes)
        .map_err(|_| WitnessError::Start(std::io::Error::other("the system gives no random numbers")))?;
    let mut text = String::new();
    for byte in bytes {
        // Writing to a `String` cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}
