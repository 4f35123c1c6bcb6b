//! The identity provider: what it offers, its keys, and the requests to it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use plumb_core::text::without_logins;
use reqwest::{Certificate, Client};
use serde_json::{Map, Value};
use tokio::sync::Mutex;

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
    read: Instant,
}

/// The provider of one configuration.
pub(super) struct Provider {
    pub(super) config: OidcConfig,
    client: Client,
    offer: Mutex<Option<Offer>>,
    last_try: Mutex<Option<Instant>>,
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
        Ok(Self { config, client, offer: Mutex::default(), last_try: Mutex::default() })
    }

    async fn get(&self, url: &str, token: Option<&str>) -> Result<Value, String> {
        let mut request = self.client.get(url).header("accept", "application/json");
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        read(request).await
    }

    /// What the provider offers; asked again if it is old, or if `renew` is set and it was not asked just now.
    async fn offer(&self, renew: bool) -> Result<Offer, String> {
        let mut known = self.offer.lock().await;
        let mut last_try = self.last_try.lock().await;
        let is_fresh = |offer: &&Offer| offer.read.elapsed() < FRESH;
        let asked_just_now = last_try.is_some_and(|at| at.elapsed() < ASK_AGAIN);
        match known.as_ref() {
            Some(offer) if asked_just_now || (!renew && is_fresh(&offer)) => return Ok(offer.clone()),
            None if asked_just_now => {
                return Err("the identity provider did not answer; try again".to_owned());
            }
            _ => {}
        }
        *last_try = Some(Instant::now());
        let read = self.discover().await;
        match (read, known.as_ref()) {
            (Ok(offer), _) => {
                *known = Some(offer.clone());
                Ok(offer)
            }
            // The last keys still tell which tokens are good.
            (Err(_), Some(offer)) if !renew => Ok(offer.clone()),
            (Err(why), _) => Err(why),
        }
    }

    async fn discover(&self) -> Result<Offer, String> {
        let issuer = &self.config.issuer;
        let url = format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'));
        let offer = self.get(&url, None).await?;
        let field = |name: &str| offer[name].as_str().unwrap_or_default().to_owned();
        // Otherwise a provider could speak for another one.
        if field("issuer") != *issuer {
            return Err(format!("the identity provider calls itself {:?}, not {issuer:?}", field("issuer")));
        }
        let types = offer["response_types_supported"].as_array();
        if types.is_some_and(|types| !types.iter().any(|kind| kind == "code")) {
            return Err("the identity provider does not offer the code flow".to_owned());
        }
        let methods = offer["token_endpoint_auth_methods_supported"].as_array();
        let keys = self.get(&field("jwks_uri"), None).await?;
        Ok(Offer {
            authorization: field("authorization_endpoint"),
            token: field("token_endpoint"),
            takes_basic: methods
                .is_none_or(|methods| methods.iter().any(|name| name == "client_secret_basic")),
            keys: Arc::new(token::keys(&keys)),
            read: Instant::now(),
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
        let info = self.get(url, Some(access)).await?;
        if info["sub"].as_str() != Some(subject) {
            return Err("the identity provider answered about another user".to_owned());
        }
        let groups = info["groups"].as_array().into_iter().flatten();
        Ok(groups.filter_map(|group| group.as_str().map(str::to_owned)).collect())
    }
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
