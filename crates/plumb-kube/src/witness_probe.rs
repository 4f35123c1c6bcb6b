//! Asks whether the witness of a leader answers, as the API server would.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Uri;
use plumb_core::object::Manifest;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Most bytes of an answer that are read.
const LARGEST_ANSWER: usize = 4096;

/// A client of the witness that a registration names. It keeps its connection.
pub struct WitnessProbe {
    address: String,
    host: ServerName<'static>,
    path: String,
    connector: TlsConnector,
    stream: Option<TlsStream<TcpStream>>,
}

impl WitnessProbe {
    /// A probe for the first webhook of a registration; `None` if its address or certificate cannot be read.
    pub fn of(registration: &Manifest) -> Option<Self> {
        let text = |field: &str| registration.value().pointer(field).and_then(Value::as_str);
        let url: Uri = text("/webhooks/0/clientConfig/url")?.parse().ok()?;
        let pem = STANDARD.decode(text("/webhooks/0/clientConfig/caBundle")?).ok()?;
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(&pem).ok()?).ok()?;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .ok()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let host = url.host()?;
        Some(Self {
            address: format!("{host}:{}", url.port_u16().unwrap_or(443)),
            host: ServerName::try_from(host.trim_matches(['[', ']']).to_owned()).ok()?,
            path: url.path().to_owned(),
            connector: TlsConnector::from(Arc::new(config)),
            stream: None,
        })
    }

    /// True if the witness answers within this time.
    pub async fn is_answered(&mut self, within: Duration) -> bool {
        // A connection that was idle for long may have been closed: then a new one is tried.
        let had_connection = self.stream.is_some();
        let asked = async {
            match self.ask().await {
                Err(_) if had_connection => self.ask().await,
                asked => asked,
            }
        };
        let is_answered = matches!(tokio::time::timeout(within, asked).await, Ok(Ok(())));
        if !is_answered {
            self.stream = None;
        }
        is_answered
    }

    /// Sends a request that only a witness with this secret answers with anything but 404.
    async fn ask(&mut self) -> std::io::Result<()> {
        let mut stream = if let Some(stream) = self.stream.take() {
            stream
        } else {
            let stream = TcpStream::connect(&self.address).await?;
            self.connector.connect(self.host.clone(), stream).await?
        };
        let request = format!("GET {} HTTP/1.1\r\nhost: witness\r\n\r\n", self.path);
        stream.write_all(request.as_bytes()).await?;
        stream.flush().await?;
        let mut answer = Vec::new();
        while !is_whole(&answer) {
            let n_read = stream.read_buf(&mut answer).await?;
            if n_read == 0 || answer.len() > LARGEST_ANSWER {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
        }
        if !answer.starts_with(b"HTTP/1.1 405") {
            return Err(std::io::ErrorKind::InvalidData.into());
        }
        self.stream = Some(stream);
        Ok(())
    }
}

/// True if these bytes are a whole answer.
fn is_whole(answer: &[u8]) -> bool {
    let text = String::from_utf8_lossy(answer).to_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
    length.is_some_and(|length: usize| body.len() >= length)
}
