//! Requests to the API.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use http::Method;
use plumb_kube::{ClusterClient, Connection};
use plumb_web::LocalApi;
use serde_json::Value;

use super::local_config::{KnownServer, LocalConfig};
use super::port_forward::{self, PortForward};
use crate::config;
use crate::error::CommandError;

/// Longest request.
const WITHIN: Duration = Duration::from_mins(1);
/// Longest request for something that the server waits for: a refresh, a rendering.
const PATIENT: Duration = Duration::from_mins(6);
/// A stream ends when its reader does.
const FOR_EVER: Duration = Duration::from_hours(24 * 365);

/// The name of the server and of the context of logins through a forwarded port, as argocd has it.
pub(crate) const PORT_FORWARD: &str = "port-forward";

/// The flags of argocd about its API server.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flags {
    pub(crate) server: Option<String>,
    pub(crate) auth_token: Option<String>,
    pub(crate) plaintext: bool,
    pub(crate) insecure: bool,
    pub(crate) root_path: Option<String>,
    pub(crate) context: Option<String>,
    pub(crate) config: Option<PathBuf>,
    /// Headers of every request: `NAME: VALUE`.
    pub(crate) headers: Vec<String>,
    /// A file with certificates that are trusted besides the usual ones.
    pub(crate) server_crt: Option<PathBuf>,
    /// Files with the certificate of this client and its key.
    pub(crate) client_crt: Option<PathBuf>,
    pub(crate) client_crt_key: Option<PathBuf>,
    pub(crate) port_forward: Option<PortForward>,
    /// Where the forwarded port is.
    pub(crate) forwarded: Option<SocketAddr>,
}

/// What the server refused: HTTP status and message. 503 if it cannot be reached.
#[derive(Clone, Debug)]
pub(crate) struct Refused {
    pub(crate) code: u16,
    pub(crate) message: String,
}

impl Flags {
    /// The file with logins.
    pub(crate) fn file(&self) -> Result<LocalConfig, CommandError> {
        LocalConfig::read(&self.config.clone().unwrap_or_else(config::argocd_config))
    }

    /// Forwards a port, if that is asked for. The process keeps it open. `home` is the namespace of the control plane.
    pub(crate) async fn forward(&mut self, connection: &Connection, home: &str) -> Result<(), CommandError> {
        if let Some(wanted) = &self.port_forward {
            let namespace = wanted.namespace.as_deref().unwrap_or(home);
            self.forwarded =
                Some(port_forward::open(connection, namespace, wanted.server_name.as_deref()).await?);
        }
        Ok(())
    }

    /// The client for all requests.
    fn client(&self, known: &KnownServer) -> Result<reqwest::Client, CommandError> {
        let mut builder = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .tls_danger_accept_invalid_certs(known.insecure)
            .default_headers(headers(&self.headers)?);
        let read = |path: &PathBuf| {
            std::fs::read(path)
                .map_err(|error| CommandError::because(format!("read {}", path.display()), error))
        };
        if let Some(path) = &self.server_crt {
            let certificates = reqwest::Certificate::from_pem_bundle(&read(path)?);
            let certificates = certificates
                .map_err(|error| CommandError::because(format!("read {}", path.display()), error))?;
            builder = builder.tls_certs_merge(certificates);
        }
        match (&self.client_crt, &self.client_crt_key) {
            (Some(certificate), Some(key)) => {
                // The error of the parser could quote the key.
                let pair = [read(certificate)?, b"\n".to_vec(), read(key)?].concat();
                let pair = reqwest::Identity::from_pem(&pair).map_err(|_| {
                    CommandError::new("--client-crt and --client-crt-key are not a certificate and its key")
                })?;
                builder = builder.identity(pair);
            }
            (None, None) => {}
            _ => return Err(CommandError::usage("--client-crt and --client-crt-key are needed together")),
        }
        builder.build().map_err(|error| CommandError::because("set up TLS", error))
    }
}

/// The headers of the flag `--header`, which may also name several, with commas between them.
fn headers(flags: &[String]) -> Result<http::HeaderMap, CommandError> {
    let mut headers = http::HeaderMap::new();
    for text in flags.iter().flat_map(|flag| flag.split(',')) {
        let wrong = || CommandError::usage("--header: expected `NAME: VALUE`");
        let (name, value) = text.split_once(':').ok_or_else(wrong)?;
        let name: http::HeaderName = name.trim().parse().map_err(|_| wrong())?;
        let mut value: http::HeaderValue = value.trim().parse().map_err(|_| wrong())?;
        value.set_sensitive(true);
        headers.append(name, value);
    }
    Ok(headers)
}

/// The API: of a server, or in this process.
#[derive(Clone)]
pub(crate) struct Api(Way);

#[derive(Clone)]
enum Way {
    /// Requests to a server.
    Server(Server),
    /// The same calls with credentials of the cluster.
    Cluster(LocalApi),
}

/// One server.
#[derive(Clone)]
struct Server {
    client: reqwest::Client,
    base: String,
    token: String,
}

impl Api {
    /// The server of the flags, of the environment, or of the current context.
    pub(crate) fn of(flags: &Flags) -> Result<Self, CommandError> {
        let file = flags.file()?;
        let forwarded = flags.port_forward.as_ref().map(|_| PORT_FORWARD);
        let context = flags.context.as_deref().or(forwarded).unwrap_or(file.current());
        let mut known = file.server(context).unwrap_or_default();
        if known.server.is_empty() {
            forwarded.unwrap_or_default().clone_into(&mut known.server);
        }
        let given = flags.server.clone().or_else(|| config::variable("ARGOCD_SERVER"));
        let given = given.filter(|_| forwarded.is_none());
        if let Some(server) = given.filter(|server| *server != known.server) {
            // The token of one server is not for another.
            known = file.server(&server).unwrap_or(KnownServer { server, ..KnownServer::default() });
        }
        if let Some(token) = flags.auth_token.clone().or_else(|| config::variable("ARGOCD_AUTH_TOKEN")) {
            known.token = token;
        }
        if known.server.is_empty() {
            return Err(CommandError::new("no server is known").hint("log in first: `plumb login SERVER`"));
        }
        known.plaintext |= flags.plaintext;
        known.insecure |= flags.insecure;
        Self::at(&known, flags)
    }

    /// A server. The flags say how it is reached.
    pub(crate) fn at(known: &KnownServer, flags: &Flags) -> Result<Self, CommandError> {
        let mut known = known.clone();
        if let Some(address) = flags.forwarded {
            known.server = address.to_string();
            // The certificate is for the name of the server, which is not the one of a local port.
            known.insecure = true;
        }
        let client = flags.client(&known)?;
        let scheme = if known.plaintext { "http" } else { "https" };
        let root = flags.root_path.as_deref().unwrap_or_default().trim_matches('/');
        let root = if root.is_empty() { String::new() } else { format!("/{root}") };
        let base = format!("{scheme}://{}{root}", known.server);
        Ok(Self(Way::Server(Server { client, base, token: known.token })))
    }

    /// The calls of the API with credentials of the cluster.
    pub(crate) fn with_cluster(client: ClusterClient, namespace: &str) -> Self {
        Self(Way::Cluster(LocalApi::new(client, namespace)))
    }

    /// The address of the server.
    pub(crate) fn base(&self) -> &str {
        match &self.0 {
            Way::Server(server) => &server.base,
            Way::Cluster(_) => "the cluster",
        }
    }

    /// Sends a request. An error says why there is no answer.
    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        within: Duration,
    ) -> Result<Reply, CommandError> {
        match &self.0 {
            Way::Server(server) => server.send(method, path, body, within).await.map(Reply::Server),
            Way::Cluster(local) => {
                let (path, query) = path.split_once('?').unwrap_or((path, ""));
                let body = body.map(ToString::to_string).unwrap_or_default();
                let answer = local.call(method.as_str(), path, query, body.as_bytes()).await;
                Ok(Reply::Here(answer.map_err(|why| Refused { code: why.code.http(), message: why.message })))
            }
        }
    }

    /// One call, or the status with which the server refused it.
    async fn exchange(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        within: Duration,
    ) -> Result<Value, Refused> {
        let sent = self.send(method, path, body, within).await;
        let reply = sent.map_err(|error| Refused { code: 503, message: error.message() })?;
        reply.value().await
    }

    /// A read.
    pub(super) async fn get_raw(&self, path: &str) -> Result<Value, Refused> {
        self.exchange(Method::GET, path, None, WITHIN).await
    }

    /// A call for which the server may have to render or compare.
    pub(super) async fn patient(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, Refused> {
        self.exchange(method, path, body, PATIENT).await
    }

    /// A stream of JSON objects, one per line.
    pub(crate) async fn lines(&self, path: &str) -> Result<Lines, Refused> {
        let sent = self.send(Method::GET, path, None, FOR_EVER).await;
        match sent.map_err(|error| Refused { code: 503, message: error.message() })? {
            Reply::Server(answer) if answer.status().is_success() => {
                Ok(Lines { answer, pending: Vec::new() })
            }
            reply => {
                let why = reply.value().await.err();
                Err(why.unwrap_or_else(|| Refused { code: 501, message: "this is no stream".to_owned() }))
            }
        }
    }

    /// One call: the answer as JSON, or what the server says is wrong.
    pub(crate) async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, CommandError> {
        let what = format!("ask {}", self.base());
        let reply = self.send(method, path, body, PATIENT).await?;
        reply.value().await.map_err(|why| {
            let status = http::StatusCode::from_u16(why.code).unwrap_or_default();
            let error = CommandError::new(format!("cannot {what}: {status}: {}", why.message));
            error.hint_if(status == http::StatusCode::UNAUTHORIZED, "log in again: `plumb login SERVER`")
        })
    }

    pub(crate) async fn get(&self, path: &str) -> Result<Value, CommandError> {
        self.call(Method::GET, path, None).await
    }

    /// Ends the session on the server.
    pub(crate) async fn log_out(&self) -> Result<(), CommandError> {
        let Way::Server(server) = &self.0 else { return Ok(()) };
        let request = server.client.post(format!("{}/auth/logout", server.base));
        let answer = request.header("cookie", format!("argocd.token={}", server.token)).send().await;
        let answer = answer.map_err(|error| CommandError::because("log out", error.without_url()))?;
        if answer.status().is_success() || answer.status().is_redirection() {
            return Ok(());
        }
        Err(CommandError::new(format!("cannot log out: the server answers {}", answer.status())))
    }
}

impl Server {
    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        within: Duration,
    ) -> Result<reqwest::Response, CommandError> {
        let url = format!("{}{path}", self.base);
        let mut request =
            self.client.request(method, &url).timeout(within).header("content-type", "application/json");
        if !self.token.is_empty() {
            request = request.bearer_auth(&self.token);
        }
        if let Some(body) = body {
            request = request.body(body.to_string());
        }
        request.send().await.map_err(|error| {
            let is_tls = error.is_connect();
            CommandError::because(format!("ask {}", self.base), error.without_url()).hint_if(
                is_tls,
                "--plaintext is for a server without TLS, --insecure for one with its own certificate",
            )
        })
    }
}

/// The answer to one request.
enum Reply {
    Server(reqwest::Response),
    Here(Result<Value, Refused>),
}

impl Reply {
    async fn value(self) -> Result<Value, Refused> {
        let answer = match self {
            Self::Server(answer) => answer,
            Self::Here(result) => return result,
        };
        let status = answer.status();
        let text = answer.text().await;
        let text = text.map_err(|error| Refused { code: 503, message: error.without_url().to_string() })?;
        let value: Value = serde_json::from_str(&text).unwrap_or_default();
        if status.is_success() {
            return Ok(value);
        }
        let message = value["message"].as_str().or_else(|| value.pointer("/error/message")?.as_str());
        Err(Refused { code: status.as_u16(), message: message.unwrap_or("it gives no reason").to_owned() })
    }
}

/// Longest line of a stream.
const LONGEST: usize = 64 << 20;

/// Lines of an answer that goes on.
pub(crate) struct Lines {
    answer: reqwest::Response,
    pending: Vec<u8>,
}

impl Lines {
    /// The next line; `None` at the end.
    pub(crate) async fn next(&mut self) -> std::io::Result<Option<String>> {
        loop {
            if let Some(end) = self.pending.iter().position(|byte| *byte == b'\n') {
                let rest = self.pending.split_off(end + 1);
                let line = std::mem::replace(&mut self.pending, rest);
                let line = String::from_utf8_lossy(&line).trim().to_owned();
                if line.is_empty() {
                    continue;
                }
                return Ok(Some(line));
            }
            if self.pending.len() > LONGEST {
                return Err(std::io::Error::other("a line of the server is too long"));
            }
            let chunk = self.answer.chunk().await;
            match chunk.map_err(|error| std::io::Error::other(error.without_url()))? {
                Some(chunk) => self.pending.extend_from_slice(&chunk),
                None => return Ok(None),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_have_a_name_and_a_value() {
        let read = |flags: &[&str]| {
            let flags: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
            headers(&flags).map(|headers| {
                let shown = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
                    format!("{name}={}", value.to_str().unwrap())
                };
                headers.iter().map(shown).collect::<Vec<_>>().join(" ")
            })
        };
        assert_eq!(read(&["x-one: 1,x-two:2", "x-three: a:b"]).unwrap(), "x-one=1 x-two=2 x-three=a:b");
        for wrong in ["a=b", "a b: c", ": c", "a: b\nc"] {
            assert!(read(&[wrong]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_forwarded_port_has_a_login_of_its_own() {
        let directory = tempfile::tempdir().unwrap();
        let config = directory.path().join("config");
        let mut file = LocalConfig::read(&config).unwrap();
        let server = |server: &str, token: &str| KnownServer {
            server: server.to_owned(),
            token: token.to_owned(),
            ..KnownServer::default()
        };
        file.log_in(PORT_FORWARD, &server(PORT_FORWARD, "of-the-port"));
        file.log_in("other.example.com", &server("other.example.com", "of-other"));
        file.write().unwrap();
        let flags = Flags {
            config: Some(config),
            port_forward: Some(PortForward::default()),
            forwarded: Some(([127, 0, 0, 1], 4000).into()),
            ..Flags::default()
        };
        let Way::Server(server) = Api::of(&flags).unwrap().0 else { panic!("no server") };
        assert_eq!((server.base.as_str(), server.token.as_str()), ("https://127.0.0.1:4000", "of-the-port"));
    }
}
