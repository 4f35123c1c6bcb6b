//! The identity provider: what it offers, its keys, and the requests to it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use plumb_core::text::without_logins;
use reqwest::{Certificate, Client};
use serde_json::{Map, Value};

use super::config::OidcConfig;
use super::form::{escaped, form};
use super::token::{self, Expected, IdTokenError, Key};

/// Longest request, and largest answer.
const WITHIN: Duration = Duration::from_secs(10);
const LARGEST: usize = 1 << 20;
/// How long what the provider says counts.
const FRESH: Duration = Duration::from_mins(15);
/// A token with an unknown key makes plumb ask again, but not more often than this: anybody may send such tokens.
const ASK_AGAIN: Duration = Duration::from_secs(10);

/// What a provider offers.
#[derive(Clone)]
struct Offer {
    authorization: String,
    token: String,
    /// True if the secret of the client is sent in a header, as most providers want it.
    takes_basic: bool,
    keys: Arc<Vec<Key>>,
    /// When it is asked for again.
    fresh_until: Instant,
}

/// The provider of one configuration.
pub(super) struct Provider {
    pub(super) config: OidcConfig,
    client: Client,
    known: Arc<Mutex<Known>>,
    /// Held while the provider is asked.
    asking: Arc<tokio::sync::Mutex<()>>,
}

/// What is known of the provider.
#[derive(Default)]
struct Known {
    offer: Option<Offer>,
    last_try: Option<Instant>,
}

/// What a token is checked with.
enum Source {
    /// This is new enough, or was asked for just now.
    Known(Offer),
    /// This counts until the provider has answered.
    Old(Offer),
    /// The provider has to answer first.
    Ask,
    /// Somebody else asks the provider.
    Wait,
}

impl Known {
    /// What counts now. `renew`: a token has a key that is not known.
    fn source(&mut self, renew: bool) -> Source {
        let asked_just_now = self.last_try.is_some_and(|at| at.elapsed() < ASK_AGAIN);
        let source = match &self.offer {
            Some(offer) if asked_just_now || (!renew && Instant::now() < offer.fresh_until) => {
                return Source::Known(offer.clone());
            }
            None if asked_just_now => return Source::Wait,
            // The last keys still tell which tokens are good.
            Some(offer) if !renew => Source::Old(offer.clone()),
            Some(_) | None => Source::Ask,
        };
        self.last_try = Some(Instant::now());
        source
    }
}

impl Provider {
    pub(super) fn new(config: OidcConfig) -> Result<Self, String> {
        let mut builder = Client::builder().timeout(WITHIN).redirect(reqwest::redirect::Policy::none());
        for certificate in pem_blocks(&config.root_ca) {
            let certificate = Certificate::from_pem(certificate.as_bytes());
            builder =
                builder.add_root_certificate(certificate.map_err(|_| "rootCA cannot be read".to_owned())?);
        }
        if config.insecure {
            builder = builder.tls_danger_accept_invalid_certs(true);
        }
        let client = builder.build().map_err(|_| "TLS cannot be set up".to_owned())?;
        Ok(Self { config, client, known: Arc::default(), asking: Arc::default() })
    }

    /// What the provider offers; asked again if it is old, or if `renew` is set and it was not asked just now. A provider
    /// that does not answer delays nobody whose token has a known key.
    async fn offer(&self, renew: bool) -> Result<Offer, String> {
        let source = self.known.lock().source(renew);
        match source {
            Source::Known(offer) => Ok(offer),
            Source::Old(offer) => {
                drop(self.ask());
                Ok(offer)
            }
            Source::Ask => self.ask().await.map_err(|_| "the request was aborted".to_owned())?,
            Source::Wait => {
                drop(self.asking.lock().await);
                let known = self.known.lock().offer.clone();
                known.ok_or_else(|| "the identity provider did not answer; try again".to_owned())
            }
        }
    }

    /// Asks the provider in a task of its own: it ends also if the caller goes away.
    fn ask(&self) -> tokio::task::JoinHandle<Result<Offer, String>> {
        let (client, issuer) = (self.client.clone(), self.config.issuer.clone());
        let (known, asking) = (Arc::clone(&self.known), Arc::clone(&self.asking).try_lock_owned());
        tokio::spawn(async move {
            let _asking = asking;
            let offer = discover(&client, &issuer).await?;
            known.lock().offer = Some(offer.clone());
            Ok(offer)
        })
    }

    /// Where a browser is sent to log in.
    pub(super) async fn authorization(&self) -> Result<String, String> {
        self.offer(false).await.map(|offer| offer.authorization)
    }

    /// The claims of a token. If its key is not known, the provider may have a new one.
    pub(super) async fn verify(
        &self,
        text: &str,
        nonce: Option<&str>,
        now: i64,
    ) -> Result<Map<String, Value>, String> {
        let expected =
            Expected { issuer: &self.config.issuer, audiences: &self.config.audiences, nonce, now };
        let offer = self.offer(false).await?;
        let verified = match token::verify(&offer.keys, text, &expected) {
            Err(IdTokenError::Signature) => {
                let offer = self.offer(true).await?;
                token::verify(&offer.keys, text, &expected)
            }
            verified => verified,
        };
        verified.map_err(|error| error.to_string())
    }

    /// Exchanges the code of a login for tokens: the ID token, and the access token.
    pub(super) async fn exchange(
        &self,
        code: &str,
        verifier: &str,
        redirect: &str,
    ) -> Result<(String, String), String> {
        let offer = self.offer(false).await?;
        let fields = [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", redirect),
            ("client_id", &self.config.client_id),
            ("code_verifier", verifier),
        ];
        let mut body = form(&fields);
        let secret = &self.config.client_secret;
        let mut request = self
            .client
            .post(&offer.token)
            .header("content-type", "application/x-www-form-urlencoded")
            .header("accept", "application/json");
        match (secret.is_empty(), offer.takes_basic) {
            (true, _) => {}
            (false, true) => {
                request = request.basic_auth(escaped(&self.config.client_id), Some(escaped(secret)));
            }
            (false, false) => body = format!("{body}&{}", form(&[("client_secret", secret)])),
        }
        let answer = read(request.body(body)).await?;
        let field = |name: &str| answer[name].as_str().unwrap_or_default().to_owned();
        let (id, access) = (field("id_token"), field("access_token"));
        if id.is_empty() {
            Err("the identity provider sent no ID token".to_owned())
        } else {
            Ok((id, access))
        }
    }

    /// The groups of a user, where the provider tells them only on request.
    pub(super) async fn groups(&self, url: &str, access: &str, subject: &str) -> Result<Vec<String>, String> {
        let info = get(&self.client, url, Some(access)).await?;
        if info["sub"].as_str() != Some(subject) {
            return Err("the identity provider answered about another user".to_owned());
        }
        let groups = info["groups"].as_array().into_iter().flatten();
        Ok(groups.filter_map(|group| group.as_str().map(str::to_owned)).collect())
    }
}

async fn get(client: &Client, url: &str, token: Option<&str>) -> Result<Value, String> {
    let mut request = client.get(url).header("accept", "application/json");
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    read(request).await
}

async fn discover(client: &Client, issuer: &str) -> Result<Offer, String> {
    let url = format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'));
    let offer = get(client, &url, None).await?;
    let field = |name: &str| offer[name].as_str().unwrap_or_default().to_owned();
    // Otherwise a provider could speak for another one.
    if field("issuer") != issuer {
        return Err(format!("the identity provider calls itself {:?}, not {issuer:?}", field("issuer")));
    }
    let types = offer["response_types_supported"].as_array();
    if types.is_some_and(|types| !types.iter().any(|kind| kind == "code")) {
        return Err("the identity provider does not offer the code flow".to_owned());
    }
    let methods = offer["token_endpoint_auth_methods_supported"].as_array();
    let keys = get(client, &field("jwks_uri"), None).await?;
    Ok(Offer {
        authorization: field("authorization_endpoint"),
        token: field("token_endpoint"),
        takes_basic: methods.is_none_or(|methods| methods.iter().any(|name| name == "client_secret_basic")),
        keys: Arc::new(token::keys(&keys)),
        fresh_until: Instant::now() + FRESH,
    })
}

/// The answer of a request as JSON. Errors name the address, never what was sent.
async fn read(request: reqwest::RequestBuilder) -> Result<Value, String> {
    let failed = |error: reqwest::Error| {
        let place = error.url().map(|url| without_logins(url.as_str()).into_owned()).unwrap_or_default();
        format!("cannot ask the identity provider at {place}: {}", error.without_url())
    };
    let mut answer = request.send().await.map_err(failed)?;
    let status = answer.status();
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(failed)? {
        body.extend_from_slice(&chunk);
        if body.len() > LARGEST {
            return Err("the answer of the identity provider is too large".to_owned());
        }
    }
    if !status.is_success() {
        return Err(format!("the identity provider answered {status}"));
    }
    serde_json::from_slice(&body).map_err(|_| "the answer of the identity provider is not JSON".to_owned())
}

fn pem_blocks(text: &str) -> Vec<String> {
    const END: &str = "-----END CERTIFICATE-----";
    let blocks = text.split_inclusive(END).filter(|block| block.contains("-----BEGIN CERTIFICATE-----"));
    blocks.map(|block| block.trim().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn offer(fresh: Duration) -> Offer {
        Offer {
            authorization: String::new(),
            token: String::new(),
            takes_basic: true,
            keys: Arc::default(),
            fresh_until: Instant::now() + fresh,
        }
    }

    #[test]
    fn only_who_has_no_known_key_waits_for_the_provider() {
        let mut known = Known::default();
        assert!(matches!(known.source(false), Source::Ask));
        assert!(matches!(known.source(false), Source::Wait), "one caller asks");
        let mut known = Known { offer: Some(offer(FRESH)), last_try: None };
        assert!(matches!(known.source(false), Source::Known(_)));
        assert!(matches!(known.source(true), Source::Ask));
        assert!(matches!(known.source(true), Source::Known(_)), "asked just now");
        let mut known = Known { offer: Some(offer(Duration::ZERO)), last_try: None };
        assert!(matches!(known.source(false), Source::Old(_)), "the old keys count meanwhile");
        assert!(matches!(known.source(false), Source::Known(_)), "others do not wait either");
    }

    #[tokio::test]
    async fn old_keys_are_served_while_the_provider_is_away() {
        // A server that accepts and never answers.
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let issuer = format!("http://{}", listener.local_addr().unwrap());
        let written = format!("name: x\nissuer: {issuer}\nclientID: plumb\n");
        let settings = BTreeMap::from([("oidc.config".to_owned(), written)]);
        let config = OidcConfig::read(&settings, &BTreeMap::new()).unwrap().unwrap();
        let provider = Provider::new(config).unwrap();
        provider.known.lock().offer = Some(offer(Duration::ZERO));
        let found = tokio::time::timeout(Duration::from_secs(5), provider.offer(false)).await;
        assert!(found.is_ok_and(|offer| offer.is_ok()));
    }
    /// A provider with a certificate that it signed itself; the address, and the certificate in PEM.
    async fn with_own_certificate() -> (String, String) {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let key = rustls::pki_types::PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .unwrap();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let issuer = format!("https://localhost:{}", listener.local_addr().unwrap().port());
        let offer = serde_json::json!({"issuer": issuer, "jwks_uri": format!("{issuer}/keys"), "keys": [],
            "authorization_endpoint": format!("{issuer}/auth"), "token_endpoint": format!("{issuer}/token")});
        let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let Ok(stream) = acceptor.accept(stream).await else { continue };
                let body = offer.to_string();
                let service = hyper::service::service_fn(move |_| {
                    let answer =
                        http::Response::new(http_body_util::Full::new(bytes::Bytes::from(body.clone())));
                    async { Ok::<_, std::convert::Infallible>(answer) }
                });
                let io = hyper_util::rt::TokioIo::new(stream);
                let _ = hyper::server::conn::http1::Builder::new().serve_connection(io, service).await;
            }
        });
        (issuer, made.cert.pem())
    }

    /// The certificate of the provider is verified; `rootCA` adds one, and only the setting of its own turns that off
    /// (CVE-2022-31105).
    #[tokio::test]
    async fn the_certificate_of_the_provider_is_verified() {
        let (issuer, certificate) = with_own_certificate().await;
        let begins = async |more: &str, insecure: bool| {
            let written = format!("name: x\nissuer: {issuer}\nclientID: plumb\n{more}");
            let mut settings = BTreeMap::from([("oidc.config".to_owned(), written)]);
            if insecure {
                settings.insert("oidc.tls.insecure.skip.verify".to_owned(), "true".to_owned());
            }
            let config = OidcConfig::read(&settings, &BTreeMap::new()).unwrap().unwrap();
            Provider::new(config).unwrap().authorization().await
        };
        let root = certificate.lines().fold("rootCA: |\n".to_owned(), |all, line| all + "  " + line + "\n");
        assert!(begins("", false).await.is_err(), "an unknown certificate");
        assert_eq!(begins(&root, false).await, Ok(format!("{issuer}/auth")));
        assert_eq!(begins("", true).await, Ok(format!("{issuer}/auth")));
    }
}
