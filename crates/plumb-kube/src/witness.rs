//! The HTTPS server of the witness, a mutating admission webhook. [`plumb_core::witness`] makes its answers.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

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
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tracing::debug;

/// A review holds the old and the new object, and etcd accepts 1.5 MiB of each.
const LARGEST_REVIEW: usize = 8 << 20;
/// More than an API server opens; further connections wait.
const CONNECTIONS: usize = 64;
/// An API server finishes the TLS handshake well within this time.
const HANDSHAKE: Duration = Duration::from_secs(5);

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
    listener: TcpListener,
    acceptor: TlsAcceptor,
    address: SocketAddr,
    ca_bundle: String,
}

impl Witness {
    /// Listens on `address` (port 0: a free one) with a new self-signed certificate for `host`. It is valid
    /// for this process only: it is not stored and needs no rotation.
    pub async fn listen(address: SocketAddr, host: &str) -> Result<Self, WitnessError> {
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
        let listener = TcpListener::bind(address).await.map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        Ok(Self { listener, acceptor: TlsAcceptor::from(Arc::new(config)), address, ca_bundle })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The certificate as a registration carries it.
    pub fn ca_bundle(&self) -> &str {
        &self.ca_bundle
    }

    /// Answers until dropped.
    pub async fn serve(self) {
        let connections = Arc::new(Semaphore::new(CONNECTIONS));
        loop {
            let Ok(permit) = Arc::clone(&connections).acquire_owned().await else { return };
            let stream = match self.listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    // Out of file descriptors, say: it passes, and a loop would not help it.
                    debug!(%error, "the witness cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            };
            let acceptor = self.acceptor.clone();
            tokio::spawn(async move {
                serve_connection(stream, acceptor).await;
                drop(permit);
            });
        }
    }
}

async fn serve_connection(stream: TcpStream, acceptor: TlsAcceptor) {
    let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await else { return };
    let answered = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(Duration::from_secs(90))
        .serve_connection(TokioIo::new(stream), service_fn(answer))
        .await;
    if let Err(error) = answered {
        debug!(%error, "a connection to the witness broke");
    }
}

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    if request.method() != Method::POST {
        return Ok(plain(StatusCode::METHOD_NOT_ALLOWED, "POST an AdmissionReview"));
    }
    let Ok(body) = Limited::new(request.into_body(), LARGEST_REVIEW).collect().await else {
        return Ok(plain(StatusCode::PAYLOAD_TOO_LARGE, "cannot read the whole review"));
    };
    // What exactly is wrong is not said: the review may hold a Secret.
    let Ok(review) = plumb_core::witness::answer(&body.to_bytes(), Timestamp::now()) else {
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
