//! Requests to Helm repositories and registries. The address policy judges every IP address before a connection, also
//! after redirects. Credentials go to one origin only.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use plumb_core::source::{AddressPolicy, AddressRefused, normal_host};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{ACCEPT, AUTHORIZATION, LOCATION};
use reqwest::{Response, Url};
use sha2::{Digest as _, Sha256};
use tokio::io::AsyncWriteExt as _;

use super::advice;
use super::error::ChartError;
use super::repository::{ChartRepository, ClientCertificate};
use crate::cache_files::make_directory;
use crate::hash::hex;

/// Longest time for one request with its body.
const TIMEOUT: Duration = Duration::from_mins(1);
const MAX_REDIRECTS: usize = 5;

/// One request.
pub(super) struct Request<'a> {
    pub(super) repository: &'a ChartRepository,
    pub(super) address: Url,
    pub(super) credentials: RequestCredentials<'a>,
    pub(super) accept: Option<&'a str>,
    /// What is fetched, for messages.
    pub(super) what: &'a str,
}

/// What a request proves to the server that it goes to first. A server that it is redirected to gets nothing.
#[derive(Clone, Copy)]
pub(super) enum RequestCredentials<'a> {
    /// Nothing.
    None,
    /// The client certificate only.
    Certificate,
    /// User and password of the repository.
    Password,
    /// User, password and client certificate of the repository.
    Repository,
    /// A token, and the client certificate.
    Bearer(&'a str),
}

impl Request<'_> {
    /// The same request with these credentials.
    pub(super) fn with<'r>(&'r self, credentials: RequestCredentials<'r>) -> Request<'r> {
        Request { credentials, address: self.address.clone(), ..*self }
    }

    /// Sends the request and follows redirects. The response may have any status.
    pub(super) async fn send(&self) -> Result<Response, ChartError> {
        let mut address = self.address.clone();
        for _ in 0..=MAX_REDIRECTS {
            let response = self.send_to(&address).await?;
            let location = response.headers().get(LOCATION).filter(|_| response.status().is_redirection());
            let Some(location) = location else { return Ok(response) };
            let target = location.to_str().ok().and_then(|text| address.join(text).ok());
            let target = target.ok_or_else(|| self.redirect("the server redirects to an invalid address"))?;
            if !matches!(target.scheme(), "http" | "https") {
                return Err(self.redirect("the server redirects to an address that is not http(s)"));
            }
            if address.scheme() == "https" && target.scheme() == "http" {
                return Err(self.redirect("the server redirects from https to http"));
            }
            address = target;
        }
        Err(self.redirect("the server redirects too often"))
    }

    async fn send_to(&self, address: &Url) -> Result<Response, ChartError> {
        let host = address.host_str().unwrap_or_default().to_owned();
        let port = address.port_or_known_default().unwrap_or_default();
        let refused = |source: AddressRefused| ChartError::Address { what: self.what.to_owned(), source };
        let policy = &self.repository.policy;
        policy.permits_host(&host, port).map_err(refused)?;
        let credentials =
            if is_same_origin(address, &self.address) { self.credentials } else { RequestCredentials::None };
        let resolver =
            Guard { host: normal_host(&host).unwrap_or_default(), port, policy: Arc::clone(policy) };
        let client = client(self.repository, credentials, resolver).map_err(|error| match error {
            ClientError::Setting { advice, source } => {
                ChartError::Http { what: self.what.to_owned(), advice: advice.to_owned(), source }
            }
            ClientError::Other(source) => self.failed(&host, source),
        })?;
        // Credentials come from the Secret. Credentials in the address would appear in messages.
        let mut plain = address.clone();
        let _ = plain.set_username("");
        let _ = plain.set_password(None);
        let mut request = client.get(plain);
        match credentials {
            RequestCredentials::Repository | RequestCredentials::Password => {
                if let Some(username) = &self.repository.username {
                    request = request.basic_auth(username, self.repository.password.as_deref());
                }
            }
            RequestCredentials::Bearer(token) => {
                request = request.header(AUTHORIZATION, format!("Bearer {token}"));
            }
            RequestCredentials::None | RequestCredentials::Certificate => {}
        }
        if let Some(accept) = self.accept {
            request = request.header(ACCEPT, accept);
        }
        request.send().await.map_err(|source| match address_refused(&source) {
            Some(source) => refused(source),
            None => self.failed(&host, source),
        })
    }

    /// The error for a response that is not wanted, or the response.
    pub(super) fn checked(&self, response: Response) -> Result<Response, ChartError> {
        let host = response.url().host_str().unwrap_or_default().to_owned();
        response.error_for_status().map_err(|source| self.failed(&host, source))
    }

    /// The whole body, which must not be larger than the limit.
    pub(super) async fn bytes(&self, mut response: Response, limit: usize) -> Result<Vec<u8>, ChartError> {
        let host = response.url().host_str().unwrap_or_default().to_owned();
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|source| self.failed(&host, source))? {
            if bytes.len() + chunk.len() > limit {
                return Err(self.too_large(limit));
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes)
    }

    /// Writes the body to a file that has no name, which the system removes when it is closed.
    pub(super) async fn file(
        &self,
        mut response: Response,
        limit: usize,
        directory: &std::path::Path,
    ) -> Result<FetchedFile, ChartError> {
        let host = response.url().host_str().unwrap_or_default().to_owned();
        let disk = |error: std::io::Error| ChartError::Cache {
            name: self.what.to_owned(),
            reason: error.to_string(),
        };
        make_directory(directory).map_err(disk)?;
        let file = tempfile::tempfile_in(directory).map_err(disk)?;
        let mut writer = tokio::fs::File::from_std(file.try_clone().map_err(disk)?);
        let (mut hasher, mut n_bytes) = (Sha256::new(), 0);
        while let Some(chunk) = response.chunk().await.map_err(|source| self.failed(&host, source))? {
            n_bytes += chunk.len();
            if n_bytes > limit {
                return Err(self.too_large(limit));
            }
            hasher.update(&chunk);
            writer.write_all(&chunk).await.map_err(disk)?;
        }
        writer.flush().await.map_err(disk)?;
        Ok(FetchedFile { file, digest: hex(&hasher.finalize()) })
    }

    fn too_large(&self, limit: usize) -> ChartError {
        ChartError::TooLarge { what: self.what.to_owned(), limit }
    }

    fn redirect(&self, reason: &'static str) -> ChartError {
        ChartError::Protocol { what: self.what.to_owned(), reason: reason.to_owned() }
    }

    fn failed(&self, host: &str, source: reqwest::Error) -> ChartError {
        ChartError::Http {
            what: self.what.to_owned(),
            advice: advice::of_download(self.repository, host, &source),
            source: source.without_url(),
        }
    }
}

/// A body on disk.
pub(super) struct FetchedFile {
    pub(super) file: std::fs::File,
    /// sha256 in hex.
    pub(super) digest: String,
}

impl FetchedFile {
    /// Reads from the start. Several readers do not disturb each other.
    pub(super) fn reader(&self) -> FileReader<'_> {
        FileReader { file: &self.file, offset: 0 }
    }
}

/// Reads a file from its start, with a position of its own.
pub(super) struct FileReader<'a> {
    file: &'a std::fs::File,
    offset: u64,
}

impl std::io::Read for FileReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        use std::os::unix::fs::FileExt as _;
        let n_read = self.file.read_at(buffer, self.offset)?;
        self.offset += n_read as u64;
        Ok(n_read)
    }
}

/// Is it the same server and protocol?
pub(super) fn is_same_origin(one: &Url, other: &Url) -> bool {
    let origin =
        |url: &Url| (url.scheme().to_owned(), url.host_str().map(str::to_owned), url.port_or_known_default());
    origin(one) == origin(other)
}

/// Looks up the server's name and keeps the IP addresses that are permitted. Names of proxies come from settings of the
/// operator and are not judged.
pub(super) struct Guard {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) policy: Arc<AddressPolicy>,
}

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let is_server = normal_host(name.as_str()).is_ok_and(|name| name == self.host);
        let (port, policy) = (self.port, Arc::clone(&self.policy));
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let (mut permitted, mut refusal) = (Vec::new(), None);
            for address in found {
                match policy.permits(name.as_str(), port, address.ip()) {
                    Err(refused) if is_server => refusal = Some(refused),
                    Ok(()) | Err(_) => permitted.push(address),
                }
            }
            match refusal {
                Some(refused) if permitted.is_empty() => Err(refused.into()),
                Some(_) | None => Ok(Box::new(permitted.into_iter()) as Addrs),
            }
        })
    }
}

/// The policy's refusal among the causes.
pub(super) fn address_refused(error: &reqwest::Error) -> Option<AddressRefused> {
    let mut current: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = current {
        if let Some(refused) = error.downcast_ref::<AddressRefused>() {
            return Some(refused.clone());
        }
        let inside = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        current =
            inside.map(|inside| inside as &(dyn std::error::Error + 'static)).or_else(|| error.source());
    }
    None
}

/// Why the client cannot be built.
enum ClientError {
    /// An invalid setting, and how to fix it.
    Setting { advice: &'static str, source: reqwest::Error },
    /// Anything else.
    Other(reqwest::Error),
}

fn client(
    repository: &ChartRepository,
    credentials: RequestCredentials<'_>,
    resolver: Guard,
) -> Result<reqwest::Client, ClientError> {
    let setting = |advice: &'static str| move |source| ClientError::Setting { advice, source };
    let mut builder = reqwest::Client::builder()
        .timeout(TIMEOUT)
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .dns_resolver(Arc::new(resolver))
        .tls_danger_accept_invalid_certs(repository.insecure);
    if let Some(ca) = &repository.ca {
        let certificates =
            reqwest::Certificate::from_pem_bundle(ca.as_bytes()).map_err(setting(advice::BAD_CA))?;
        builder = builder.tls_certs_merge(certificates);
    }
    let has_identity = !matches!(credentials, RequestCredentials::None | RequestCredentials::Password);
    let certificate = repository.client.as_ref().filter(|_| has_identity);
    if let Some(ClientCertificate { certificate, key }) = certificate {
        let pem = format!("{}\n{}\n", certificate.trim_end(), key.trim_end());
        let identity = reqwest::Identity::from_pem(pem.as_bytes()).map_err(setting(advice::BAD_CLIENT))?;
        builder = builder.identity(identity);
    }
    if let Some(address) = &repository.proxy {
        let proxy = reqwest::Proxy::all(address).map_err(setting(advice::BAD_PROXY))?;
        let direct = repository.no_proxy.as_deref().and_then(reqwest::NoProxy::from_string);
        builder = builder.proxy(proxy.no_proxy(direct));
    }
    // Only `build` detects that a certificate and its key do not match.
    builder.build().map_err(|source| match certificate {
        Some(_) => ClientError::Setting { advice: advice::BAD_CLIENT, source },
        None => ClientError::Other(source),
    })
}
