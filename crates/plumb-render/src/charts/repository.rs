//! A Helm repository or OCI registry, and how to reach it.

use std::sync::Arc;

use plumb_core::project::{Project, shown_repo_url};
use plumb_core::source::{AddressPolicy, RepoAddress, normal_host};
use reqwest::Url;
use sha2::{Digest as _, Sha256};

use super::error::ChartError;
use super::http::is_same_origin;
use crate::hash::hex;

/// Largest index, in bytes. The largest public indexes have about 25 MB. The index is kept on disk, and of its versions
/// only those of the wanted chart are kept in memory.
const MAX_INDEX: usize = 32 << 20;

/// A Helm repository or OCI registry, and how to reach it.
#[derive(Clone, Default)]
pub struct ChartRepository {
    /// `https://…`, `oci://host/path`, or `host/path` of a registry.
    pub url: String,
    /// User name.
    pub username: Option<String>,
    /// Password or token.
    pub password: Option<String>,
    /// Send the credentials also to other hosts that the index names, if this project permits them as a source. The index is
    /// written by whoever uploads charts, and the credentials are not theirs.
    pub pass_credentials: Option<Arc<Project>>,
    /// Accept any certificate.
    pub insecure: bool,
    /// Certificates (PEM) to trust besides the system's.
    pub ca: Option<String>,
    /// The client certificate for servers that request one.
    pub client: Option<ClientCertificate>,
    /// Proxy for http(s); may contain a password.
    pub proxy: Option<String>,
    /// Hosts that are reached without the proxy, separated by commas.
    pub no_proxy: Option<String>,
    /// Speak plain HTTP to an OCI registry.
    pub plain_http: bool,
    /// Which servers may be connected to.
    pub policy: Arc<AddressPolicy>,
    /// Largest index, in bytes; `None`: 32 MiB.
    pub max_index: Option<usize>,
}

/// A client certificate and its key, as PEM.
#[derive(Clone)]
pub struct ClientCertificate {
    /// The certificate.
    pub certificate: String,
    /// Its private key.
    pub key: String,
}

impl std::fmt::Debug for ChartRepository {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChartRepository").field("url", &self.shown()).finish_non_exhaustive()
    }
}

impl ChartRepository {
    /// A hash of the repository and its credentials. A stored archive is only returned to a caller with the same
    /// credentials.
    pub(super) fn identity(&self) -> String {
        let part = |text: &Option<String>| text.clone().unwrap_or_default();
        let mut text = format!("{}\0{}\0{}", self.url, part(&self.username), part(&self.password));
        if let Some(client) = &self.client {
            text = format!("{text}\0{}\0{}", client.certificate, client.key);
        }
        hex(&Sha256::digest(text))
    }

    /// May a server that the index names see the credentials?
    pub(super) fn shows_credentials_to(&self, address: &Url, index: &Url) -> bool {
        let is_same = is_same_origin(address, index);
        // Not in clear text what was sent encrypted to the index.
        let is_as_safe = address.scheme() == "https" || index.scheme() != "https";
        let permits = |project: &Arc<Project>| project.permits_source(address.as_str());
        is_same || (is_as_safe && self.pass_credentials.as_ref().is_some_and(permits))
    }

    /// The address for messages, without credentials.
    pub(super) fn shown(&self) -> String {
        shown_repo_url(&self.url)
    }

    /// True for an OCI registry, false for a repository with an index.
    pub fn is_oci(&self) -> bool {
        self.url.starts_with("oci://") || !self.url.contains("://")
    }

    /// The address of `index.yaml`.
    pub(super) fn index_address(&self) -> Result<Url, ChartError> {
        let bad = || ChartError::Url { url: self.shown() };
        let address = self.url.trim().trim_end_matches('/');
        let url = self.checked(&format!("{address}/"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(bad());
        }
        url.join("index.yaml").map_err(|_| bad())
    }

    /// The server of an OCI registry, and the path below it.
    pub(super) fn registry(&self) -> Result<(Url, String), ChartError> {
        let address = self.url.trim();
        let address = address.strip_prefix("oci://").unwrap_or(address);
        let (authority, path) = address.split_once('/').unwrap_or((address, ""));
        let scheme = if self.plain_http { "http" } else { "https" };
        let mut url = self.checked(&format!("{scheme}://{authority}/"))?;
        // The one registry whose address is another than its name.
        if url.host_str() == Some("docker.io") {
            url.set_host(Some("registry-1.docker.io")).map_err(|_| ChartError::Url { url: self.shown() })?;
        }
        Ok((url, path.trim_matches('/').to_owned()))
    }

    /// The address for the client, without credentials. Its host is the one that projects judge.
    fn checked(&self, address: &str) -> Result<Url, ChartError> {
        let bad = || ChartError::Url { url: self.shown() };
        let judged = RepoAddress::parse(&self.url).map_err(|_| bad())?;
        let mut url = Url::parse(address).map_err(|_| bad())?;
        let host = url.host_str().and_then(|host| normal_host(host).ok());
        if host.as_deref() != Some(judged.host()) {
            return Err(bad());
        }
        // Credentials come from the Secret. Credentials in the address would appear in messages.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        Ok(url)
    }

    pub(super) fn max_index_bytes(&self) -> usize {
        self.max_index.unwrap_or(MAX_INDEX)
    }
}
