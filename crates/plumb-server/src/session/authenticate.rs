//! Tokens of requests.

use http::HeaderMap;
use plumb_api::Status;
use plumb_core::rbac::Caller;
use serde_json::{Map, Value, json};

use super::limits::REVOKED;
use crate::backend::Backend;
use crate::call_rates::CallRates;
use crate::jwt::{self, ISSUER};
use crate::oidc::{Sso, unchecked_issuer};
use crate::random::hex;
use crate::role_tokens::tokens_of;
use crate::state::State;

/// The cookie with the token.
pub(crate) const COOKIE: &str = "argocd.token";
/// Most parts of a cookie that is too long for one.
const MOST_COOKIES: usize = 20;

/// The caller of a request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Identity {
    /// As permissions name the caller.
    pub(crate) access: Caller,
    /// As events and operations name the caller; empty if anonymous.
    pub(crate) username: String,
    /// A token for the client to go on with, if the one of the request ends soon.
    pub(crate) renewed: Option<String>,
    /// True for a user with credentials of the cluster: Kubernetes decides what the user may do.
    pub(crate) has_cluster: bool,
}

impl Identity {
    fn anonymous() -> Self {
        Self { access: Caller::Anonymous, username: String::new(), renewed: None, has_cluster: false }
    }

    /// A user who uses the handlers with credentials of the cluster.
    pub(crate) fn with_cluster() -> Self {
        Self { has_cluster: true, ..Self::anonymous() }
    }

    pub(crate) fn is_logged_in(&self) -> bool {
        matches!(self.access, Caller::Claims(_))
    }

    /// A claim of the token.
    pub(crate) fn claim(&self, name: &str) -> Option<&Value> {
        match &self.access {
            Caller::Anonymous => None,
            Caller::Claims(claims) => claims.get(name),
        }
    }

    pub(crate) fn text(&self, name: &str) -> &str {
        self.claim(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// True if the token is of a local account, not of a project and not of an identity provider.
    pub(crate) fn is_local(&self) -> bool {
        self.text("iss") == ISSUER && !self.text("sub").starts_with("proj:")
    }
}

/// A token that was checked.
struct Checked {
    /// Its claims; the subject is the account alone.
    claims: Map<String, Value>,
    /// True if it comes from a login.
    is_session: bool,
}

impl Checked {
    /// True for a session that goes on only with another token.
    fn ends_soon(&self, now: i64) -> bool {
        let until = self.claims.get("exp").and_then(Value::as_i64);
        self.is_session && until.is_some_and(|until| until - now < RENEW_BEFORE)
    }
}

/// A session that ends within this time (in seconds) is renewed.
const RENEW_BEFORE: i64 = 300;

/// Logins and tokens.
#[derive(Clone)]
pub(crate) struct Sessions {
    pub(super) state: State,
    pub(super) backend: Backend,
    pub(super) logins: std::sync::Arc<tokio::sync::Semaphore>,
    /// The logins of each address.
    pub(super) login_rates: std::sync::Arc<CallRates>,
    pub(super) sso: Sso,
}

/// Most logins at a time: each costs a tenth of a second of a core.
const LOGINS: usize = 8;
/// Logins that one address may try at once, and per second from then on. Users may come through one proxy.
const LOGINS_AT_ONCE: f64 = 20.0;
const LOGINS_PER_SECOND: f64 = 2.0;

impl Sessions {
    pub(crate) fn new(state: State, backend: Backend) -> Self {
        Self {
            sso: Sso::new(state.clone()),
            state,
            backend,
            logins: std::sync::Arc::new(tokio::sync::Semaphore::new(LOGINS)),
            login_rates: std::sync::Arc::new(CallRates::new(LOGINS_AT_ONCE, LOGINS_PER_SECOND)),
        }
    }

    /// The caller of a request, or why the token is refused. A token that fails is never a source of claims, also where
    /// anonymous access is on.
    pub(crate) async fn identify(&self, headers: &HeaderMap) -> Result<Identity, Status> {
        let Some(token) = token_of(headers).filter(|token| !token.is_empty()) else {
            return if self.state.setting("users.anonymous.enabled") == "true" {
                Ok(Identity::anonymous())
            } else {
                Err(Status::unauthenticated("no session information"))
            };
        };
        let now = jiff::Timestamp::now().as_second();
        // Who signs decides who checks: a token of one issuer is never tried with the key of another.
        if unchecked_issuer(&token).is_some_and(|issuer| issuer != ISSUER) {
            let claims = self.check_sso(&token, now).await;
            let claims = claims.map_err(|why| Status::unauthenticated(format!("invalid session: {why}")))?;
            let text = |name: &str| claims.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
            if !is_subject_of_provider(text("sub").unwrap_or_default()) {
                return Err(Status::unauthenticated(
                    "invalid session: the subject is that of a project's role",
                ));
            }
            let username = text("email").or_else(|| text("sub")).unwrap_or_default().to_owned();
            return Ok(Identity {
                username,
                access: Caller::Claims(claims),
                renewed: None,
                has_cluster: false,
            });
        }
        let checked = self.check(&token, now);
        let checked = checked.map_err(|why| Status::unauthenticated(format!("invalid session: {why}")))?;
        let renewed = if checked.ends_soon(now) { self.renew(&checked.claims, now) } else { None };
        let claims = checked.claims;
        let text = |name: &str| claims.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        Ok(Identity { username: text("sub"), access: Caller::Claims(claims), renewed, has_cluster: false })
    }

    async fn check_sso(&self, token: &str, now: i64) -> Result<Map<String, Value>, String> {
        let sessions = self.state.sessions();
        // Versions before 0.3 noted the whole token.
        if [signed_part(token), token].into_iter().any(|text| sessions.contains_key(&revoked_key(text))) {
            return Err("token is revoked, please re-login".to_owned());
        }
        self.sso.verify(token, now).await
    }

    /// Single sign-on.
    pub(crate) fn sso(&self) -> &Sso {
        &self.sso
    }

    fn check(&self, token: &str, now: i64) -> Result<Checked, String> {
        let key = self.state.signing_key().ok_or("the server has no key")?;
        let mut claims = jwt::verify(&key, token, now).map_err(|error| error.to_string())?;
        let subject = claims.get("sub").and_then(Value::as_str).unwrap_or_default().to_owned();
        let id = claims.get("jti").and_then(Value::as_str).unwrap_or_default().to_owned();
        let issued_at = claims.get("iat").and_then(Value::as_i64).unwrap_or_default();
        if id.is_empty() {
            return Err("token has no id".to_owned());
        }
        if self.state.sessions().contains_key(&revoked_id(&subject, &id)) {
            return Err("token is revoked, please re-login".to_owned());
        }
        if let Some((project, role)) = subject.strip_prefix("proj:").and_then(|rest| rest.split_once(':')) {
            self.check_project_token(project, role, &id, issued_at)?;
            return Ok(Checked { claims, is_session: false });
        }
        let (name, capability) = subject.rsplit_once(':').unwrap_or((&subject, "apiKey"));
        self.check_account(name, capability, &id, issued_at)?;
        // Permissions name the account alone.
        let is_session = capability == "login";
        claims.insert("sub".to_owned(), json!(name));
        Ok(Checked { claims, is_session })
    }

    fn check_account(&self, name: &str, capability: &str, id: &str, issued_at: i64) -> Result<(), String> {
        let accounts = self.state.accounts();
        let account = accounts.get(name).ok_or("account does not exist")?;
        if !account.is_enabled {
            return Err(format!("account {name} is disabled"));
        }
        match capability {
            "login" if account.can_login => {}
            "apiKey" if account.can_have_tokens => {
                if !account.tokens.iter().any(|token| token.id == id) {
                    return Err(format!("account {name} does not have token with id {id}"));
                }
            }
            _ => return Err(format!("account {name} does not have {capability} capability")),
        }
        if account.password_changed.is_some_and(|changed| issued_at < changed) {
            return Err("account password has changed since token issued".to_owned());
        }
        Ok(())
    }

    /// Argo CD also accepts a token that was issued in the same second as one that is listed. Here the id decides, and the
    /// time only for entries without one: otherwise a revoked token could live on.
    fn check_project_token(&self, project: &str, role: &str, id: &str, issued_at: i64) -> Result<(), String> {
        let known = self.state.project(project).ok_or("the project of the token does not exist")?;
        let listed = tokens_of(known.value(), role);
        let mut listed = listed.iter().map(|entry| {
            (
                entry.get("id").and_then(Value::as_str).unwrap_or_default(),
                entry.get("iat").and_then(Value::as_i64),
            )
        });
        if listed.any(|(entry, iat)| if entry.is_empty() { iat == Some(issued_at) } else { entry == id }) {
            Ok(())
        } else {
            Err("the token does not exist any more".to_owned())
        }
    }
}

/// Roles of projects have tokens of this server. A provider cannot log in as one of them.
fn is_subject_of_provider(subject: &str) -> bool {
    !subject.starts_with("proj:")
}

/// The key of a revoked token of plumb's own. Whoever creates a token may choose its id, so the id alone does not say which
/// token was revoked: a logout must not end the token of another account.
pub(super) fn revoked_id(subject: &str, id: &str) -> String {
    revoked_key(&format!("{subject}\n{id}"))
}

/// A token without its signature. Some algorithms have several signatures that fit: a token that was ended with one must not
/// go on with another.
pub(super) fn signed_part(token: &str) -> &str {
    token.rsplit_once('.').map_or(token, |(signed, _)| signed)
}

/// The key of a revoked token.
pub(super) fn revoked_key(id: &str) -> String {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, id.as_bytes());
    format!("{REVOKED}{}", hex(digest.as_ref().get(..20).unwrap_or_default()))
}

/// The token of a request. The first source that is there counts, also if it is empty.
fn token_of(headers: &HeaderMap) -> Option<String> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    if let Some(token) = text("token").or_else(|| text("grpc-metadata-token")) {
        return Some(token);
    }
    let bearer = text("authorization").and_then(|value| value.strip_prefix("Bearer ").map(str::to_owned));
    if let Some(token) = bearer.filter(|token| token.split('.').count() == 3) {
        return Some(token);
    }
    cookie_token(headers)
}

/// The token of the cookie, which may be in several parts: the first starts with their number.
pub(crate) fn cookie_token(headers: &HeaderMap) -> Option<String> {
    let values = headers.get_all("cookie").iter().filter_map(|value| value.to_str().ok());
    let pairs: Vec<(&str, &str)> =
        values.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('=')).collect();
    let find = |name: &str| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
    let first = find(COOKIE)?;
    let Some((count, start)) = first.split_once(':') else { return Some(first.to_owned()) };
    let count: usize = count.parse().ok().filter(|count| *count <= MOST_COOKIES)?;
    let mut token = start.to_owned();
    for n in 1..count {
        token.push_str(find(&format!("{COOKIE}-{n}"))?);
    }
    Some(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (http::HeaderName::from_static(name), value.parse().unwrap()))
            .collect()
    }

    #[test]
    fn only_sessions_that_end_soon_are_renewed() {
        let check = |is_session: bool, until: Option<i64>, expected: bool| {
            let mut claims = Map::new();
            claims.extend(until.map(|until| ("exp".to_owned(), json!(until))));
            assert_eq!(Checked { claims, is_session }.ends_soon(1_000), expected, "{until:?}");
        };
        check(true, Some(1_100), true);
        check(true, Some(1_300), false);
        check(false, Some(1_100), false);
        check(true, None, false);
    }

    #[test]
    fn the_first_source_counts() {
        let check = |pairs: &[(&'static str, &'static str)], expected: Option<&str>| {
            assert_eq!(token_of(&headers(pairs)).as_deref(), expected, "{pairs:?}");
        };
        check(&[], None);
        check(&[("token", ""), ("cookie", "argocd.token=c")], Some(""));
        check(&[("grpc-metadata-token", "g"), ("authorization", "Bearer a.b.c")], Some("g"));
        check(&[("authorization", "Bearer a.b.c"), ("cookie", "argocd.token=c")], Some("a.b.c"));
        check(&[("authorization", "Bearer opaque"), ("cookie", "x=y; argocd.token=c")], Some("c"));
        check(&[("cookie", "argocd.token=2:ab; argocd.token-1=cd")], Some("abcd"));
        check(&[("cookie", "argocd.token=3:ab; argocd.token-1=cd")], None);
        check(&[("cookie", "argocd.token=99:ab")], None);
    }

    #[test]
    fn a_chosen_id_revokes_no_token_of_another_account() {
        let key = revoked_id("robot:apiKey", "ci");
        assert_eq!(key, revoked_id("robot:apiKey", "ci"));
        for other in [revoked_id("proj:team:dev", "ci"), revoked_id("robot", "apiKey\nci"), revoked_key("ci")]
        {
            assert_ne!(key, other);
        }
    }

    #[test]
    fn another_signature_is_no_other_token() {
        assert_eq!(revoked_key(signed_part("a.b.c")), revoked_key(signed_part("a.b.d")));
        assert_ne!(revoked_key(signed_part("a.b.c")), revoked_key(signed_part("a.c.c")));
    }

    #[test]
    fn a_provider_logs_nobody_in_as_a_role_of_a_project() {
        assert!(!is_subject_of_provider("proj:team:dev"));
        assert!(is_subject_of_provider("CiQwOGE4Njg0Yi1kYjg4"));
    }
}
