//! Requests to the API.

use std::path::PathBuf;
use std::time::Duration;

use http::Method;
use plumb_kube::ClusterClient;
use plumb_web::LocalApi;
use serde_json::Value;

use super::local_config::{KnownServer, LocalConfig};
use crate::config;
use crate::error::CommandError;

/// Longest request.
const WITHIN: Duration = Duration::from_mins(1);
/// Longest request for something that the server waits for: a refresh, a rendering.
const PATIENT: Duration = Duration::from_mins(6);
/// A stream ends when its reader does.
const FOR_EVER: Duration = Duration::from_hours(24 * 365);

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
        let context = flags.context.as_deref().unwrap_or(file.current());
        let mut known = file.server(context).unwrap_or_default();
        let given = flags.server.clone().or_else(|| config::variable("ARGOCD_SERVER"));
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
        Self::at(&known, flags.root_path.as_deref())
    }

    /// A server.
    pub(crate) fn at(known: &KnownServer, root_path: Option<&str>) -> Result<Self, CommandError> {
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .tls_danger_accept_invalid_certs(known.insecure)
            .build()
            .map_err(|error| CommandError::because("set up TLS", error))?;
        let scheme = if known.plaintext { "http" } else { "https" };
        let root = root_path.unwrap_or_default().trim_matches('/');
        let root = if root.is_empty() { String::new() } else { format!("/{root}") };
        let base = format!("{scheme}://{}{root}", known.server);
        Ok(Self(Way::Server(Server { client, base, token: known.token.clone() })))
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
