//! Requests to the API.

use std::path::PathBuf;
use std::time::Duration;

use http::Method;
use serde_json::Value;

use super::local_config::{KnownServer, LocalConfig};
use crate::config;
use crate::error::CommandError;

/// Longest request.
const WITHIN: Duration = Duration::from_mins(1);

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

impl Flags {
    /// The file with logins.
    pub(crate) fn file(&self) -> Result<LocalConfig, CommandError> {
        LocalConfig::read(&self.config.clone().unwrap_or_else(config::argocd_config))
    }
}

/// The API of one server.
pub(crate) struct Api {
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
            .timeout(WITHIN)
            .redirect(reqwest::redirect::Policy::none())
            .tls_danger_accept_invalid_certs(known.insecure)
            .build()
            .map_err(|error| CommandError::because("set up TLS", error))?;
        let scheme = if known.plaintext { "http" } else { "https" };
        let root = root_path.unwrap_or_default().trim_matches('/');
        let root = if root.is_empty() { String::new() } else { format!("/{root}") };
        Ok(Self { client, base: format!("{scheme}://{}{root}", known.server), token: known.token.clone() })
    }

    /// One call: the answer as JSON, or what the server says is wrong.
    pub(crate) async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, CommandError> {
        let url = format!("{}{path}", self.base);
        let what = format!("ask {}", self.base);
        let mut request = self.client.request(method, &url).header("content-type", "application/json");
        if !self.token.is_empty() {
            request = request.bearer_auth(&self.token);
        }
        if let Some(body) = body {
            request = request.body(body.to_string());
        }
        let answer = request.send().await.map_err(|error| {
            let is_tls = error.is_connect();
            CommandError::because(&what, error.without_url()).hint_if(
                is_tls,
                "--plaintext is for a server without TLS, --insecure for one with its own certificate",
            )
        })?;
        let status = answer.status();
        let text = answer.text().await.map_err(|error| CommandError::because(&what, error.without_url()))?;
        let value: Value = serde_json::from_str(&text).unwrap_or_default();
        if status.is_success() {
            return Ok(value);
        }
        let message = value["message"].as_str().unwrap_or("it gives no reason");
        let error = CommandError::new(format!("cannot {what}: {status}: {message}"));
        Err(error.hint_if(status == http::StatusCode::UNAUTHORIZED, "log in again: `plumb login SERVER`"))
    }

    pub(crate) async fn get(&self, path: &str) -> Result<Value, CommandError> {
        self.call(Method::GET, path, None).await
    }

    /// Ends the session on the server.
    pub(crate) async fn log_out(&self) -> Result<(), CommandError> {
        let request = self.client.post(format!("{}/auth/logout", self.base));
        let answer = request.header("cookie", format!("argocd.token={}", self.token)).send().await;
        let answer = answer.map_err(|error| CommandError::because("log out", error.without_url()))?;
        if answer.status().is_success() || answer.status().is_redirection() {
            return Ok(());
        }
        Err(CommandError::new(format!("cannot log out: the server answers {}", answer.status())))
    }
}
