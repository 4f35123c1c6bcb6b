//! A small https server on 127.0.0.1 with certificates of its own making, which may ask its clients for theirs.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Who signs certificates.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: String,
}

/// A certificate and its key, as PEM.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The certificate.
    pub certificate: String,
    /// Its private key.
    pub key: String,
}

impl Authority {
    /// A new one.
    pub fn new(name: &str) -> Result<Self> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?.pem();
        Ok(Self { issuer: Issuer::new(params, key), certificate })
    }

    /// What others need to trust it.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// A certificate for a server or a client of this name (or IP address).
    pub fn issue(&self, name: &str) -> Result<Identity> {
        let mut params = CertificateParams::new(vec![name.to_owned()])?;
        params.distinguished_name.push(DnType::CommonName, name);
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?.pem();
        Ok(Identity { certificate, key: key.serialize_pem() })
    }
}

/// What a client asks for.
#[derive(Clone, Debug, Default)]
pub struct HttpRequest {
    /// `GET`, `POST` …
    pub method: String,
    /// Without the query.
    pub path: String,
    /// After the question mark.
    pub query: String,
    /// By name in lower case.
    pub headers: BTreeMap<String, String>,
    /// The body.
    pub body: Vec<u8>,
}

/// What it gets.
#[derive(Clone, Debug)]
pub struct HttpResponse {
    /// Such as `200 OK`.
    pub status: String,
    /// Name and value.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl HttpResponse {
    /// One without a body.
    pub fn status(status: &str) -> Self {
        Self { status: status.to_owned(), headers: Vec::new(), body: Vec::new() }
    }
}

/// A server; its threads end with the process.
pub struct HttpsServer {
    address: SocketAddr,
}

impl HttpsServer {
    /// Starts a server whose certificate `authority` signs. With `clients` it talks only to those who show a
    /// certificate of that authority.
    pub fn start(
        authority: &Authority,
        clients: Option<&Authority>,
        answer: impl Fn(&HttpRequest) -> HttpResponse + Send + Sync + 'static,
    ) -> Result<Self> {
        let config = Arc::new(server_config(&authority.issue("127.0.0.1")?, clients)?);
        let listener = TcpListener::bind("127.0.0.1:0").context("listen")?;
        let address = listener.local_addr()?;
        let answer = Arc::new(answer);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (config, answer) = (Arc::clone(&config), Arc::clone(&answer));
                // A client that disconnects or is refused is not an error of the server.
                std::thread::spawn(move || serve(stream, config, answer.as_ref()));
            }
        });
        Ok(Self { address })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

fn server_config(identity: &Identity, clients: Option<&Authority>) -> Result<rustls::ServerConfig> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()?;
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(clients) => {
            let mut roots = rustls::RootCertStore::empty();
            roots.add(CertificateDer::from_pem_slice(clients.certificate.as_bytes())?)?;
            let verifier =
                rustls::server::WebPkiClientVerifier::builder_with_provider(roots.into(), provider);
            builder.with_client_cert_verifier(verifier.build()?)
        }
    };
    let certificate = CertificateDer::from_pem_slice(identity.certificate.as_bytes())?;
    let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes())?;
    Ok(builder.with_single_cert(vec![certificate], key)?)
}

/// Answers the requests of one connection.
fn serve(
    stream: TcpStream,
    config: Arc<rustls::ServerConfig>,
    answer: &dyn Fn(&HttpRequest) -> HttpResponse,
) -> Result<()> {
    let connection = rustls::ServerConnection::new(config)?;
    let mut stream = BufReader::new(rustls::StreamOwned::new(connection, stream));
    while let Some(request) = read_request(&mut stream)? {
        let response = answer(&request);
        let mut head = format!("HTTP/1.1 {}\r\nContent-Length: {}\r\n", response.status, response.body.len());
        for (name, value) in &response.headers {
            head.extend([name.as_str(), ": ", value, "\r\n"]);
        }
        let body = if request.method == "HEAD" { &[][..] } else { &response.body };
        let stream = stream.get_mut();
        stream.write_all(&[head.as_bytes(), b"\r\n", body].concat())?;
        stream.flush()?;
    }
    Ok(())
}

fn read_request<S: Read>(stream: &mut BufReader<S>) -> Result<Option<HttpRequest>> {
    let mut line = String::new();
    if stream.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace();
    let method = words.next().unwrap_or_default().to_owned();
    let target = words.next().context("a request names what it wants")?;
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut request =
        HttpRequest { method, path: path.to_owned(), query: query.to_owned(), ..HttpRequest::default() };
    loop {
        let mut line = String::new();
        stream.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        request.headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = request.headers.get("content-length").map_or(Ok(0), |text| text.parse())?;
    request.body = vec![0; length];
    stream.read_exact(&mut request.body)?;
    Ok(Some(request))
}

/// Gives out the repositories below a directory, by the real `git http-backend`.
pub fn git_http_backend(root: impl Into<PathBuf>) -> impl Fn(&HttpRequest) -> HttpResponse + Send + Sync {
    let root = root.into();
    move |request| {
        backend(&root, request).unwrap_or_else(|_| HttpResponse::status("500 Internal Server Error"))
    }
}

fn backend(root: &Path, request: &HttpRequest) -> Result<HttpResponse> {
    let header = |name: &str| request.headers.get(name).cloned().unwrap_or_default();
    let mut child = Command::new("git")
        .arg("http-backend")
        .env("GIT_PROJECT_ROOT", root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("PATH_INFO", &request.path)
        .env("QUERY_STRING", &request.query)
        .env("REQUEST_METHOD", &request.method)
        .env("CONTENT_TYPE", header("content-type"))
        .env("CONTENT_LENGTH", request.body.len().to_string())
        .env("HTTP_CONTENT_ENCODING", header("content-encoding"))
        .env("GIT_PROTOCOL", header("git-protocol"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("run git http-backend")?;
    child.stdin.take().context("its input")?.write_all(&request.body)?;
    let output = child.wait_with_output()?.stdout;
    let end = output.windows(4).position(|bytes| bytes == b"\r\n\r\n").context("the end of its headers")?;
    let mut response = HttpResponse::status("200 OK");
    for line in String::from_utf8_lossy(&output[..end]).lines() {
        match line.split_once(": ") {
            Some(("Status", status)) => status.clone_into(&mut response.status),
            Some((name, value)) => response.headers.push((name.to_owned(), value.to_owned())),
            None => {}
        }
    }
    response.body = output[end + 4..].to_vec();
    Ok(response)
}
