//! The login of a browser: to the provider and back, with PKCE and a nonce.

use std::collections::HashMap;

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use super::form::form;
use super::provider::Provider;
use super::sealed_state::{LOGIN_WITHIN, LoginState};
use crate::random;

/// Most users whose groups are kept.
const MOST_USERS: usize = 10_000;

/// Where a browser is sent.
#[derive(Debug)]
pub(crate) struct Redirect {
    pub(crate) to: String,
    /// True if the browser reaches this server over TLS.
    pub(crate) is_secure: bool,
    /// The state of the login, for a cookie; empty after it ended.
    pub(crate) state: String,
    /// The token, after a login.
    pub(crate) token: Option<String>,
    /// As permissions name the user who has logged in; empty before.
    pub(crate) user: String,
}

/// Logins of browsers, and the groups that the provider told on request.
#[derive(Default)]
pub(super) struct Flow {
    /// Groups and the end of the token they were asked with, by subject.
    groups: Mutex<HashMap<String, (Vec<String>, i64)>>,
}

/// The address that `url` is part of: one of `url` and `additionalUrls`. Anything else would lead a browser, and the
/// code in its address, elsewhere.
fn base_of<'b>(bases: &'b [String], url: &str) -> Option<&'b str> {
    if url.contains(['\r', '\n', '\\']) || url.chars().any(char::is_control) {
        return None;
    }
    let parsed = reqwest::Url::parse(url).ok()?;
    let is_below = |base: &&String| {
        let Ok(base) = reqwest::Url::parse(base) else { return false };
        let root = base.path().trim_end_matches('/');
        let below = parsed.path().strip_prefix(root);
        parsed.origin() == base.origin()
            && parsed.username().is_empty()
            && parsed.password().is_none()
            && below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    bases.iter().find(is_below).map(String::as_str)
}

/// A proxy in front of the server may have the certificate.
fn is_secure(base: &str) -> bool {
    base.starts_with("https://")
}

fn callback(base: &str) -> String {
    format!("{}/auth/callback", base.trim_end_matches('/'))
}

fn secret() -> Option<String> {
    random::bytes::<32>().ok().map(|bytes| URL_SAFE_NO_PAD.encode(bytes))
}

/// Begins a login. `bases` are the addresses of this server.
pub(super) async fn begin(
    provider: &Provider,
    bases: &[String],
    return_url: &str,
    signing_key: &[u8],
    now: i64,
) -> Result<Redirect, String> {
    let first = bases.first().ok_or("the setting `url` of argocd-cm is missing")?;
    let return_url = if return_url.is_empty() { first.clone() } else { return_url.to_owned() };
    let base = base_of(bases, &return_url).ok_or("the return address is not one of this server")?;
    let failed = "no random numbers";
    let (state, nonce, verifier) =
        (secret().ok_or(failed)?, secret().ok_or(failed)?, secret().ok_or(failed)?);
    let challenge = URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier.as_bytes()));
    let place = provider.authorization().await?;
    let config = &provider.config;
    let scopes = config.scopes.join(" ");
    let redirect = callback(base);
    let mut fields = vec![
        ("response_type", "code"),
        ("client_id", config.client_id.as_str()),
        ("redirect_uri", &redirect),
        ("scope", &scopes),
        ("state", &state),
        ("nonce", &nonce),
        ("code_challenge", &challenge),
        ("code_challenge_method", "S256"),
    ];
    let claims = json!({"id_token": config.claims}).to_string();
    if config.claims.is_object() {
        fields.push(("claims", &claims));
    }
    let separator = if place.contains('?') { '&' } else { '?' };
    let to = format!("{place}{separator}{}", form(&fields));
    let login = LoginState { state, nonce, verifier, return_url, until: now + LOGIN_WITHIN };
    let state = login.seal(signing_key).ok_or("the login cannot be kept")?;
    Ok(Redirect { to, is_secure: is_secure(base), state, token: None, user: String::new() })
}

impl Flow {
    /// Ends a login. `cookie` is what the browser kept of it.
    pub(super) async fn end(
        &self,
        provider: &Provider,
        bases: &[String],
        (state, code): (&str, &str),
        cookie: &str,
        (signing_key, now): (&[u8], i64),
    ) -> Result<Redirect, String> {
        let login =
            LoginState::open(cookie, signing_key, now).ok_or("the login took too long; begin again")?;
        if state.is_empty() || state != login.state || code.is_empty() {
            return Err("the answer belongs to another login; begin again".to_owned());
        }
        // Checked again: the settings may have changed since.
        let base = base_of(bases, &login.return_url).ok_or("the return address is not one of this server")?;
        let (token, access) = provider.exchange(code, &login.verifier, &callback(base)).await?;
        let claims = provider.verify(&token, Some(&login.nonce), now).await?;
        if let Some(url) = &provider.config.user_info {
            let subject = claims.get("sub").and_then(Value::as_str).unwrap_or_default();
            let groups = provider.groups(url, &access, subject).await?;
            let until = claims.get("exp").and_then(Value::as_i64).unwrap_or_default();
            self.keep(subject, groups, until, now);
        }
        let user = claims.get("sub").and_then(Value::as_str).unwrap_or_default().to_owned();
        let (is_secure, state) = (is_secure(base), String::new());
        Ok(Redirect { to: login.return_url, is_secure, state, token: Some(token), user })
    }

    fn keep(&self, subject: &str, groups: Vec<String>, until: i64, now: i64) {
        let mut known = self.groups.lock();
        if known.len() >= MOST_USERS {
            known.retain(|_, (_, until)| *until > now);
        }
        if known.len() < MOST_USERS {
            known.insert(subject.to_owned(), (groups, until));
        }
    }

    fn groups_of(&self, subject: &str, now: i64) -> Option<Vec<String>> {
        let known = self.groups.lock();
        known.get(subject).filter(|(_, until)| *until > now).map(|(groups, _)| groups.clone())
    }

    /// Adds the groups that were asked for at the login. Without them, permissions could not be told.
    pub(super) fn add_groups(
        &self,
        provider: &Provider,
        claims: &mut Map<String, Value>,
        now: i64,
    ) -> Result<(), String> {
        if provider.config.user_info.is_none() {
            return Ok(());
        }
        let subject = claims.get("sub").and_then(Value::as_str).unwrap_or_default();
        let groups = self
            .groups_of(subject, now)
            .ok_or("the groups of the user are not known; log in again with a browser")?;
        claims.insert("groups".to_owned(), json!(groups));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_is_only_sent_to_this_server() {
        let bases = ["https://argo.example.com/base".to_owned(), "https://other.example.com".to_owned()];
        for fine in [
            "https://argo.example.com/base",
            "https://argo.example.com/base/applications?x=1",
            "https://other.example.com/anything",
        ] {
            assert!(base_of(&bases, fine).is_some(), "{fine}");
        }
        for wrong in [
            "http://argo.example.com/base",
            "https://argo.example.com/baseless",
            "https://argo.example.com/base/../admin",
            "https://argo.example.com.evil.com/base",
            "https://argo.example.com@evil.com/base",
            "https://evil.com@argo.example.com/base",
            "https://argo.example.com:8443/base",
            "//evil.com/base",
            "javascript:alert(1)",
            "https://argo.example.com/base\r\nset-cookie: x",
            "https:\\\\evil.com",
            "",
        ] {
            assert!(base_of(&bases, wrong).is_none(), "{wrong}");
        }
    }

    /// State, nonce and verifier of a login are of the system's randomness, with 256 bits each (CVE-2022-31034).
    #[test]
    fn a_login_cannot_be_guessed() {
        let drawn: std::collections::BTreeSet<String> = (0..100).filter_map(|_| secret()).collect();
        assert_eq!(drawn.len(), 100);
        assert!(drawn.iter().all(|text| text.len() == 43), "{drawn:?}");
    }

    #[test]
    fn groups_end_with_the_token() {
        let flow = Flow::default();
        flow.keep("ann", vec!["team".to_owned()], 100, 0);
        assert_eq!(flow.groups_of("ann", 99), Some(vec!["team".to_owned()]));
        assert_eq!(flow.groups_of("ann", 100), None);
        assert_eq!(flow.groups_of("bob", 50), None);
    }
}
