//! Logins with a password, and logouts.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use plumb_api::{Code, Status};
use plumb_core::object::Manifest;
use serde_json::{Map, Value, json};
use tokio::sync::Semaphore;
use tracing::info;

use super::authenticate::{Sessions, revoked_id, revoked_key, signed_part};
use super::limits::{self, CountersFull};
use crate::accounts::Account;
use crate::backend::Known;
use crate::jwt::{self, ISSUER};
use crate::oidc::unchecked_issuer;
use crate::random;
use crate::state::SESSIONS;

/// Longest name of a user.
const LONGEST_NAME: usize = 32;
/// Longest password: bcrypt reads no more.
const LONGEST_PASSWORD: usize = 72;
/// A login takes this long or a multiple of it, whatever its outcome, so that its time tells nothing.
const AT_LEAST: Duration = Duration::from_millis(500);
/// How long a session lasts unless `users.session.duration` says otherwise.
const SESSION: i64 = 24 * 3600;
/// How often a change of the counters is tried again after another replica was faster.
const ATTEMPTS: usize = 5;
/// The hash that a password is compared with if there is no such user. Nobody knows a password for it.
const NOBODY: &str = "$2a$10$abcdefghijklmnopqrstuu5LoWGF5cz8iYUK3LVvwbZBs7Y0d3CFy";

/// One password is hashed at a time: it takes a tenth of a second of a core.
static HASHING: Semaphore = Semaphore::const_new(1);

impl Sessions {
    /// Checks a password and returns a token. Unknown users, wrong passwords and locked names give the same answer after
    /// the same time.
    pub(crate) async fn login(&self, user: &str, password: &str, from: IpAddr) -> Result<String, Status> {
        if user.is_empty() && password.is_empty() {
            return Err(Status::unauthenticated("no credentials supplied"));
        }
        if password.is_empty() {
            return Err(Status::unauthenticated("Blank passwords are not allowed"));
        }
        if user.len() > LONGEST_NAME {
            return Err(Status::invalid(format!(
                "Username is too long: {LONGEST_NAME} bytes is the maximum"
            )));
        }
        let started = Instant::now();
        if !self.login_rates.take(&from.to_string(), started) {
            let message = "too many logins from this address; try again in a few seconds";
            return Err(Status::new(Code::ResourceExhausted, message));
        }
        let result = self.try_login(user, password).await;
        // A name that no account has may be a password in the wrong field.
        let known = if self.state.accounts().contains_key(user) { user } else { "(unknown)" };
        info!(user = known, %from, succeeded = result.is_ok(), "login");
        let [jitter] = random::bytes::<1>()?;
        let wait = until_multiple(started.elapsed(), AT_LEAST);
        tokio::time::sleep(wait + Duration::from_millis(u64::from(jitter))).await;
        result
    }

    async fn try_login(&self, user: &str, password: &str) -> Result<String, Status> {
        let wrong = || Status::unauthenticated("Invalid username or password");
        let Ok(_place) = self.logins.try_acquire() else { return Err(wrong()) };
        let now = jiff::Timestamp::now().as_second();
        let account = self.account_of(user, password, now).await?.ok_or_else(wrong)?;
        if !account.is_enabled {
            return Err(Status::unauthenticated(format!("Account {user} is disabled")));
        }
        if !account.can_login {
            return Err(Status::unauthenticated(format!("Account {user} does not have login capability")));
        }
        self.session_token(&account, now)
    }

    /// Is this the password of a user who is logged in? Failures count as those of logins do: a stolen token must not try
    /// passwords without limit.
    pub(crate) async fn is_password_of(&self, user: &str, password: &str) -> Result<bool, Status> {
        let busy = || Status::new(Code::ResourceExhausted, "too many passwords are checked now; try again");
        let Ok(_place) = self.logins.try_acquire() else { return Err(busy()) };
        let now = jiff::Timestamp::now().as_second();
        Ok(self.account_of(user, password, now).await?.is_some())
    }

    /// The account with this name and password. A failure is counted, and a locked name has no right password.
    async fn account_of(&self, user: &str, password: &str, now: i64) -> Result<Option<Account>, Status> {
        let key = limits::key(user);
        // Read now: another replica may have counted failures that the watch has not brought yet.
        let (data, _) = self.read_counters().await?;
        // A full object could note no failure: then nobody may try.
        limits::check_room(&data).map_err(full)?;
        let is_locked = limits::is_locked(&data, &key, now);
        let account = self.state.accounts().get(user).cloned();
        let hash = account.as_ref().map(|account| account.password_hash.clone());
        // A locked name and one that does not exist take as long as a wrong password.
        let hash = hash.filter(|hash| !hash.is_empty() && !is_locked);
        let is_right = matches(password, hash).await;
        if is_locked {
            info!(user, "password refused: too many failures");
            return Ok(None);
        }
        // Names that do not exist are not counted: anybody can make up as many as fit into the object.
        let Some(account) = account else { return Ok(None) };
        if !is_right {
            self.change_counters(|data| Ok(limits::failed(data, &key, now))).await?;
            return Ok(None);
        }
        if data.contains_key(&key) {
            self.change_counters(|_| Ok(BTreeMap::from([(key.clone(), None)]))).await?;
        }
        Ok(Some(account))
    }

    fn session_token(&self, account: &Account, now: i64) -> Result<String, Status> {
        let subject = format!("{}:login", account.name);
        self.issue(&subject, &random::uuid()?, now, self.session_seconds())
    }

    /// Another token for a session, of the same length.
    pub(super) fn renew(&self, claims: &Map<String, Value>, now: i64) -> Option<String> {
        let name = claims.get("sub").and_then(Value::as_str)?;
        let time = |claim: &str| claims.get(claim).and_then(Value::as_i64);
        let seconds = (time("exp")? - time("iat")?).clamp(1, self.session_seconds());
        self.issue(&format!("{name}:login"), &random::uuid().ok()?, now, seconds).ok()
    }

    fn session_seconds(&self) -> i64 {
        let text = self.state.setting("users.session.duration");
        let span: Option<jiff::SignedDuration> = text.parse().ok();
        span.map(|span| span.as_secs()).filter(|seconds| *seconds > 0).unwrap_or(SESSION)
    }

    /// A signed token; it never ends if `seconds` is 0.
    pub(crate) fn issue(&self, subject: &str, id: &str, now: i64, seconds: i64) -> Result<String, Status> {
        let key = self.state.signing_key().ok_or_else(|| Status::unavailable("the server has no key yet"))?;
        let mut claims = Map::new();
        for (name, value) in [("iss", json!(ISSUER)), ("sub", json!(subject)), ("jti", json!(id))] {
            claims.insert(name.to_owned(), value);
        }
        for name in ["iat", "nbf"] {
            claims.insert(name.to_owned(), json!(now));
        }
        if seconds > 0 {
            claims.insert("exp".to_owned(), json!(now.saturating_add(seconds)));
        }
        Ok(jwt::sign(&key, &claims))
    }

    /// Revokes a token until it ends. What cannot be verified needs no revocation.
    pub(crate) async fn revoke(&self, token: &str) -> Result<(), Status> {
        let now = jiff::Timestamp::now().as_second();
        if unchecked_issuer(token).is_some_and(|issuer| issuer != ISSUER) {
            let Ok(claims) = self.sso.verify(token, now).await else { return Ok(()) };
            let until = claims.get("exp").and_then(Value::as_i64).unwrap_or_default();
            return self.note_revoked(&revoked_key(signed_part(token)), until, now).await;
        }
        let Some(key) = self.state.signing_key() else { return Ok(()) };
        let Ok(claims) = jwt::verify(&key, token, now) else { return Ok(()) };
        let Some(id) = claims.get("jti").and_then(Value::as_str) else { return Ok(()) };
        let until = claims.get("exp").and_then(Value::as_i64).unwrap_or_default();
        let subject = claims.get("sub").and_then(Value::as_str).unwrap_or_default();
        self.note_revoked(&revoked_id(subject, id), until, now).await
    }

    async fn note_revoked(&self, key: &str, until: i64, now: i64) -> Result<(), Status> {
        self.change_counters(|data| limits::revoked(data, key, until, now)).await
    }

    async fn read_counters(&self) -> Result<(BTreeMap<String, String>, Option<Manifest>), Status> {
        let found = self.backend.get(Known::ConfigMap, self.state.namespace(), SESSIONS).await;
        // Without the counters nobody may try: otherwise an attacker would only have to disturb the API server.
        let found = found.map_err(|_| Status::unavailable("logins cannot be checked now; try again"))?;
        let data = found.as_ref().and_then(|object| object.value().get("data")?.as_object());
        let pairs = data.into_iter().flatten();
        let data = pairs.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect();
        Ok((data, found))
    }

    /// Changes the counters; again if another replica was faster.
    async fn change_counters(
        &self,
        change: impl Fn(&BTreeMap<String, String>) -> Result<BTreeMap<String, Option<String>>, CountersFull>,
    ) -> Result<(), Status> {
        let namespace = self.state.namespace();
        for _ in 0..ATTEMPTS {
            let (data, found) = self.read_counters().await?;
            let changes = change(&data).map_err(full)?;
            let written = match found {
                None => {
                    let added: BTreeMap<String, String> =
                        changes.into_iter().filter_map(|(key, value)| Some((key, value?))).collect();
                    let object = json!({
                        "apiVersion": "v1", "kind": "ConfigMap", "data": added,
                        "metadata": {"name": SESSIONS, "namespace": namespace,
                            "labels": {"app.kubernetes.io/part-of": "argocd", "app.kubernetes.io/name": SESSIONS}},
                    });
                    self.backend.create(object).await
                }
                Some(found) => {
                    let patch = json!({
                        "metadata": {"resourceVersion": found.resource_version()}, "data": changes,
                    });
                    self.backend.patch(Known::ConfigMap, namespace, SESSIONS, patch).await
                }
            };
            match written {
                Ok(object) => {
                    self.state.note_written(SESSIONS, &object);
                    return Ok(());
                }
                Err(status) if matches!(status.code, Code::Aborted | Code::AlreadyExists) => {}
                Err(status) => {
                    return Err(Status::unavailable(format!("cannot note the login: {}", status.message)));
                }
            }
        }
        Err(Status::unavailable("cannot note the login: other replicas keep changing it; try again"))
    }
}

fn full(_: CountersFull) -> Status {
    Status::unavailable(format!(
        "the ConfigMap {SESSIONS} is full, so logins and logouts cannot be noted; try again later"
    ))
}

/// How long it takes from now until the time that has passed is a multiple of a step.
fn until_multiple(passed: Duration, step: Duration) -> Duration {
    let (passed, step) = (passed.as_millis(), step.as_millis());
    let over = passed % step;
    let left = if over == 0 && passed > 0 { 0 } else { step - over };
    Duration::from_millis(u64::try_from(left).unwrap_or_default())
}

/// Compares a password with a hash, on a thread where it delays nobody. Without a hash it takes the same time.
async fn matches(password: &str, hash: Option<String>) -> bool {
    let (exists, hash) = (hash.is_some(), hash.unwrap_or_else(|| NOBODY.to_owned()));
    let password = password.to_owned();
    let _turn = HASHING.acquire().await;
    let compared = tokio::task::spawn_blocking(move || {
        password.len() <= LONGEST_PASSWORD && bcrypt::verify(&password, &hash).unwrap_or(false)
    });
    compared.await.unwrap_or(false) && exists
}

/// The hash of a new password.
pub(crate) async fn hash(password: &str) -> Result<String, Status> {
    if password.len() > LONGEST_PASSWORD {
        return Err(Status::invalid(format!("the password is longer than {LONGEST_PASSWORD} bytes")));
    }
    let password = password.to_owned();
    let _turn = HASHING.acquire().await;
    let hashed = tokio::task::spawn_blocking(move || bcrypt::hash(password, 10)).await;
    match hashed {
        Ok(Ok(hash)) => Ok(hash),
        _ => Err(Status::new(Code::Internal, "cannot hash the password")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_takes_a_multiple_of_half_a_second() {
        let check = |passed: u64, expected: u64| {
            let left = until_multiple(Duration::from_millis(passed), AT_LEAST);
            assert_eq!(left, Duration::from_millis(expected), "{passed}");
        };
        for (passed, expected) in [(0, 500), (1, 499), (120, 380), (500, 0), (501, 499), (1_300, 200)] {
            check(passed, expected);
        }
    }

    #[tokio::test]
    async fn one_password_is_hashed_at_a_time() {
        let started = Instant::now();
        assert!(!matches("x", None).await);
        let alone = started.elapsed();
        let started = Instant::now();
        let many = futures::future::join_all((0..4).map(|_| matches("x", None))).await;
        assert_eq!(many, [false; 4]);
        assert!(started.elapsed() > alone * 2, "{:?} after {alone:?}", started.elapsed());
    }
}
