//! Requests to other servers that users name: SCM providers and generator plugins. The same address policy applies.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use plumb_core::error_chain::error_chain;
use plumb_core::source::{AddressPolicy, normal_host};
use reqwest::Url;

use super::http::{Guard, address_refused};

/// Largest body of an answer.
const LARGEST_BODY: usize = 16 << 20;

/// One request. Redirects are not followed: its headers hold credentials.
#[derive(Clone)]
pub struct WebRequest {
    /// The whole URL.
    pub url: String,
    /// Headers.
    pub headers: Vec<(String, String)>,
    /// JSON to send with POST; without it the request is a GET.
    pub body: Option<String>,
    /// Do not verify the certificate.
    pub insecure: bool,
    /// Certificates of authorities in PEM that count besides the usual ones.
    pub authorities: Option<String>,
    /// Longest time for the request with its answer.
    pub timeout: Duration,
}

/// Headers hold credentials: only the address is shown.
impl fmt::Debug for WebRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebRequest").field("url", &self.url).finish_non_exhaustive()
    }
}

/// An answer with any status.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WebAnswer {
    /// Status code.
    pub status: u16,
    /// Headers, with names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The body.
    pub body: String,
}

/// Sends a request. The error says what is wrong, without credentials.
pub async fn ask_web(policy: &Arc<AddressPolicy>, request: &WebRequest) -> Result<WebAnswer, String> {
    let address: Url = request.url.parse().map_err(|_| "the address is not a URL".to_owned())?;
    if !matches!(address.scheme(), "http" | "https") {
        return Err("the address is not http(s)".to_owned());
    }
    let host = address.host_str().unwrap_or_default().to_owned();
    let port = address.port_or_known_default().unwrap_or_default();
    policy.permits_host(&host, port).map_err(|refused| refused.to_string())?;
    let failed = |error: reqwest::Error| match address_refused(&error) {
        Some(refused) => refused.to_string(),
        None => format!("cannot ask {host}: {}", error_chain(&error.without_url())),
    };
    let guard = Guard { host: normal_host(&host).unwrap_or_default(), port, policy: Arc::clone(policy) };
    let authorities = match &request.authorities {
        None => Vec::new(),
        Some(pem) => reqwest::Certificate::from_pem_bundle(pem.as_bytes())
            .map_err(|_| "the certificates of authorities are not PEM".to_owned())?,
    };
    let client = reqwest::Client::builder()
        .timeout(request.timeout)
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .user_agent("argocd-applicationset")
        .dns_resolver(Arc::new(guard))
        .tls_danger_accept_invalid_certs(request.insecure)
        .tls_certs_merge(authorities)
        .build()
        .map_err(failed)?;
    let mut sent = match &request.body {
        None => client.get(address),
        Some(body) => client.post(address).header("Content-Type", "application/json").body(body.clone()),
    };
    for (name, value) in &request.headers {
        sent = sent.header(name, value);
    }
    let mut response = sent.send().await.map_err(failed)?;
    let headers = response.headers().iter();
    let headers = headers
        .filter_map(|(name, value)| Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned())))
        .collect();
    let status = response.status().as_u16();
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(failed)? {
        if bytes.len() + chunk.len() > LARGEST_BODY {
            return Err(format!("the answer of {host} is larger than {LARGEST_BODY} bytes"));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(WebAnswer { status, headers, body: String::from_utf8_lossy(&bytes).into_owned() })
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    /// Answers one request, and returns what was asked.
    async fn server(answer: &'static str) -> (String, tokio::task::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let served = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut asked = Vec::new();
            let mut buffer = [0; 1024];
            while !asked.windows(4).any(|end| end == b"\r\n\r\n") {
                let n_read = stream.read(&mut buffer).await.unwrap();
                asked.extend_from_slice(&buffer[..n_read]);
            }
            stream.write_all(answer.as_bytes()).await.unwrap();
            String::from_utf8(asked).unwrap()
        });
        (address, served)
    }

    fn request(url: String) -> WebRequest {
        let headers = vec![("Authorization".to_owned(), "Bearer t".to_owned())];
        WebRequest {
            url,
            headers,
            body: None,
            insecure: false,
            authorities: None,
            timeout: Duration::from_secs(20),
        }
    }

    #[tokio::test]
    async fn an_answer_has_its_status_headers_and_body() {
        let (address, served) =
            server("HTTP/1.1 404 Not Found\r\nX-Next-Page: 2\r\nContent-Length: 2\r\n\r\n[]").await;
        let policy = Arc::new(AddressPolicy::workstation());
        let answer = ask_web(&policy, &request(format!("{address}/x?y=1"))).await.unwrap();
        assert_eq!((answer.status, answer.body.as_str()), (404, "[]"));
        assert_eq!(answer.headers.get("x-next-page").map(String::as_str), Some("2"));
        let asked = served.await.unwrap();
        assert!(asked.starts_with("GET /x?y=1 ") && asked.contains("authorization: Bearer t"), "{asked}");
    }

    #[tokio::test]
    async fn a_redirect_is_not_followed_with_the_credentials() {
        let (address, served) =
            server("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/steal\r\nContent-Length: 0\r\n\r\n")
                .await;
        let policy = Arc::new(AddressPolicy::workstation());
        let answer = ask_web(&policy, &request(address)).await.unwrap();
        assert_eq!(answer.status, 302);
        served.await.unwrap();
    }

    #[tokio::test]
    async fn the_address_policy_applies() {
        let policy = Arc::new(AddressPolicy::cluster([]));
        for url in ["http://127.0.0.1:1/x", "http://169.254.169.254/latest/meta-data", "file:///etc/passwd"] {
            assert!(ask_web(&policy, &request(url.to_owned())).await.is_err(), "{url}");
        }
    }
}
