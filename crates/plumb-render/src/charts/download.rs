//! Downloads from Helm repositories.

use std::time::Duration;

use super::advice;
use super::error::ChartError;
use super::repository::{ChartRepository, ClientCertificate};

const TIMEOUT: Duration = Duration::from_mins(1);

/// One download, under a limit. Credentials are sent only to the repository's own host, and not after redirects.
pub(super) async fn get(
    repository: &ChartRepository,
    address: reqwest::Url,
    base: &reqwest::Url,
    limit: usize,
    what: &str,
) -> Result<Vec<u8>, ChartError> {
    let host = address.host_str().unwrap_or_default().to_owned();
    let failed = |source: reqwest::Error| ChartError::Http {
        what: what.to_owned(),
        advice: advice::of_download(repository, &host, &source),
        source: source.without_url(),
    };
    let is_same_host = (address.scheme(), address.host_str(), address.port_or_known_default())
        == (base.scheme(), base.host_str(), base.port_or_known_default());
    let sends_credentials = is_same_host || repository.pass_credentials;
    let client = client(repository, sends_credentials).map_err(|error| match error {
        ClientError::Setting { advice, source } => {
            ChartError::Http { what: what.to_owned(), advice: advice.to_owned(), source }
        }
        ClientError::Other(source) => failed(source),
    })?;
    let mut request = client.get(address);
    if let Some(username) = repository.username.as_ref().filter(|_| sends_credentials) {
        request = request.basic_auth(username, repository.password.as_deref());
    }
    let mut response = request.send().await.and_then(reqwest::Response::error_for_status).map_err(failed)?;
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(failed)? {
        if bytes.len() + chunk.len() > limit {
            return Err(ChartError::TooLarge { what: what.to_owned(), limit });
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// Why the client cannot be built.
enum ClientError {
    /// An invalid setting, and how to fix it.
    Setting { advice: &'static str, source: reqwest::Error },
    /// Anything else.
    Other(reqwest::Error),
}

fn client(repository: &ChartRepository, sends_credentials: bool) -> Result<reqwest::Client, ClientError> {
    let setting = |advice: &'static str| move |source| ClientError::Setting { advice, source };
    let mut builder = reqwest::Client::builder()
        .timeout(TIMEOUT)
        .redirect(reqwest::redirect::Policy::limited(5))
        .referer(false)
        .tls_danger_accept_invalid_certs(repository.insecure);
    if let Some(ca) = &repository.ca {
        let certificates =
            reqwest::Certificate::from_pem_bundle(ca.as_bytes()).map_err(setting(advice::BAD_CA))?;
        builder = builder.tls_certs_merge(certificates);
    }
    if let Some(ClientCertificate { certificate, key }) =
        repository.client.as_ref().filter(|_| sends_credentials)
    {
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
    builder.build().map_err(|source| match repository.client {
        Some(_) if sends_credentials => ClientError::Setting { advice: advice::BAD_CLIENT, source },
        Some(_) | None => ClientError::Other(source),
    })
}
