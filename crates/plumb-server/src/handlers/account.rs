//! Local accounts.

use std::sync::Arc;

use plumb_api::{Code, Status};
use plumb_core::object::Manifest;
use plumb_core::rbac::Caller;
use serde_json::{Value, json};

use crate::accounts::{self, Account, ApiToken, tokens_text};
use crate::backend::Known;
use crate::call::{Answer, Call};
use crate::random;
use crate::session::hash;
use crate::state::{SECRET, secret_texts};

/// What `can-i` knows.
const RESOURCES: [&str; 12] = [
    "accounts",
    "applications",
    "applicationsets",
    "certificates",
    "clusters",
    "exec",
    "extensions",
    "gpgkeys",
    "logs",
    "projects",
    "repositories",
    "write-repositories",
];
const ACTIONS: [&str; 9] =
    ["get", "create", "update", "delete", "sync", "rollback", "override", "action", "invoke"];
/// A caller of an identity provider may change a password only so long after the login.
const FRESH_LOGIN: i64 = 300;
/// How often a change of tokens is tried again after another writer was faster.
const ATTEMPTS: usize = 5;

/// Callers of this replica change tokens one after the other: many at once would run out of attempts.
static CHANGING: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// May the caller do it?
pub(super) async fn can_i(call: Arc<Call>) -> Result<Answer, Status> {
    let (resource, action) = (call.text("resource"), call.text("action"));
    if !RESOURCES.contains(&resource) {
        return Err(Status::invalid(format!("{resource} does not exist in [{}]", RESOURCES.join(" "))));
    }
    if !ACTIONS.contains(&action) {
        return Err(Status::invalid(format!("{action} does not exist in [{}]", ACTIONS.join(" "))));
    }
    let action = call.needed_action(action);
    let object = call.text("subresource").to_owned();
    let parts: Vec<&str> = object.split('/').collect();
    let object = match parts.as_slice() {
        [project, namespace, name] if *namespace == call.namespace() => format!("{project}/{name}"),
        _ => object,
    };
    let answer = if call.allows(resource, action, &object) { "yes" } else { "no" };
    Ok(Answer::One(json!({"value": answer})))
}

pub(super) async fn list(call: Arc<Call>) -> Result<Answer, Status> {
    let accounts = call.shared.state.accounts();
    let shown = accounts.values().filter(|account| may_see(&call, &account.name));
    Ok(Answer::One(json!({"items": shown.map(Account::shown).collect::<Vec<Value>>()})))
}

pub(super) async fn get(call: Arc<Call>) -> Result<Answer, Status> {
    let name = call.text("name");
    if !may_see(&call, name) {
        return Err(Status::denied());
    }
    Ok(Answer::One(find(&call, name)?.shown()))
}

fn is_self(call: &Call, name: &str) -> bool {
    call.identity.as_ref().is_some_and(|identity| identity.is_local() && identity.username == name)
}

fn may_see(call: &Call, name: &str) -> bool {
    call.allows("accounts", "get", name) || is_self(call, name)
}

fn require_update(call: &Call, name: &str) -> Result<(), Status> {
    if call.allows("accounts", "update", name) || is_self(call, name) {
        Ok(())
    } else {
        Err(Status::denied())
    }
}

fn find(call: &Call, name: &str) -> Result<Account, Status> {
    let accounts = call.shared.state.accounts();
    accounts.get(name).cloned().ok_or_else(|| missing(name))
}

fn missing(name: &str) -> Status {
    Status::not_found(format!("account '{name}' does not exist"))
}

pub(super) async fn create_token(call: Arc<Call>) -> Result<Answer, Status> {
    let name = call.text("name");
    require_update(&call, name)?;
    let id = match call.text("id") {
        "" => random::uuid()?,
        id => id.to_owned(),
    };
    let now = jiff::Timestamp::now().as_second();
    let seconds = call.number("expiresIn").unwrap_or_default().max(0);
    let expires_at = if seconds > 0 { now.saturating_add(seconds) } else { 0 };
    change_tokens(&call, name, |account| {
        if !account.can_have_tokens {
            return Err(Status::new(
                Code::Unknown,
                format!("account '{name}' does not have apiKey capability"),
            ));
        }
        let mut tokens = account.tokens;
        if tokens.iter().any(|token| token.id == id) {
            return Err(Status::new(
                Code::Unknown,
                format!("failed to update account with new token: account already has token with id '{id}'"),
            ));
        }
        tokens.push(ApiToken { id: id.clone(), issued_at: now, expires_at });
        Ok(tokens)
    })
    .await?;
    let token = call.shared.sessions.issue(&format!("{name}:apiKey"), &id, now, seconds)?;
    Ok(Answer::One(json!({"token": token})))
}

pub(super) async fn delete_token(call: Arc<Call>) -> Result<Answer, Status> {
    let (name, id) = (call.text("name"), call.text("id"));
    require_update(&call, name)?;
    change_tokens(&call, name, |account| {
        let mut tokens = account.tokens;
        let before = tokens.len();
        tokens.retain(|token| token.id != id);
        if tokens.len() == before {
            return Err(Status::not_found(format!("token with id '{id}' does not exist")));
        }
        Ok(tokens)
    })
    .await?;
    Ok(Answer::One(json!({})))
}

/// Changes the tokens of an account as they are stored now; again if another writer was faster. The watch may be behind, and a
/// change of an older list would undo that of another caller.
async fn change_tokens(
    call: &Call,
    name: &str,
    change: impl Fn(Account) -> Result<Vec<ApiToken>, Status>,
) -> Result<(), Status> {
    let _turn = CHANGING.lock().await;
    for _ in 0..ATTEMPTS {
        let stored = call.shared.backend.get(Known::Secret, call.namespace(), SECRET).await?;
        let mut known = accounts::read(&call.shared.state.config(), &secret_texts(stored.as_ref()));
        let tokens = change(known.remove(name).ok_or_else(|| missing(name))?)?;
        let values = json!({format!("{}.tokens", Account::secret_prefix(name)): tokens_text(&tokens)});
        let version = stored.as_ref().and_then(Manifest::resource_version);
        match write_secret(call, values, version).await {
            Err(status) if status.code == Code::Aborted => {}
            written => return written,
        }
    }
    Err(Status::new(Code::Aborted, "argocd-secret keeps changing; try again"))
}

pub(super) async fn update_password(call: Arc<Call>) -> Result<Answer, Status> {
    let identity = call.identity.as_ref().ok_or_else(Status::denied)?;
    let is_project_token = identity.text("sub").starts_with("proj:");
    if is_project_token || matches!(identity.access, Caller::Anonymous) {
        return Err(Status::invalid("password can only be changed for local users"));
    }
    let name = match call.text("name") {
        "" => identity.username.clone(),
        name => name.to_owned(),
    };
    require_update(&call, &name)?;
    let now = jiff::Timestamp::now().as_second();
    if identity.is_local() {
        let current = call.text("currentPassword");
        if !call.shared.sessions.is_password_of(&identity.username, current).await? {
            return Err(Status::invalid("current password does not match"));
        }
    } else if identity.claim("iat").and_then(Value::as_i64).is_none_or(|at| now - at > FRESH_LOGIN) {
        return Err(Status::new(
            Code::PermissionDenied,
            "SSO token is too old. Please use 'argocd relogin' to get a new token.",
        ));
    }
    let pattern = password_pattern(&call.shared.state.setting("passwordPattern"));
    let new = call.text("newPassword");
    // A pattern that cannot be read permits no password.
    let permitted = regex::Regex::new(&pattern).is_ok_and(|pattern| pattern.is_match(new));
    if !permitted {
        let why = format!("new password does not match the following expression: {pattern}.");
        return Err(Status::new(Code::Unknown, why));
    }
    find(&call, &name)?;
    let prefix = Account::secret_prefix(&name);
    let time = jiff::Timestamp::from_second(now).unwrap_or_default().to_string();
    let values =
        json!({format!("{prefix}.password"): hash(new).await?, format!("{prefix}.passwordMtime"): time});
    write_secret(&call, values, None).await?;
    Ok(Answer::One(json!({})))
}

const DEFAULT_PATTERN: &str = "^.{8,32}$";

/// The pattern of new passwords.
pub(super) fn password_pattern(setting: &str) -> String {
    if setting.is_empty() { DEFAULT_PATTERN.to_owned() } else { setting.to_owned() }
}

/// Writes values of `argocd-secret`; with a version only if it is still the stored one.
async fn write_secret(call: &Call, values: Value, version: Option<&str>) -> Result<(), Status> {
    let mut patch = json!({"stringData": values});
    if let Some(version) = version {
        patch["metadata"]["resourceVersion"] = json!(version);
    }
    let written = call.shared.backend.patch(Known::Secret, call.namespace(), SECRET, patch).await;
    // The error of a Secret may quote its values.
    let written = written.map_err(|status| Status::new(status.code, "cannot change argocd-secret"))?;
    call.shared.state.note_written(SECRET, &written);
    Ok(())
}
