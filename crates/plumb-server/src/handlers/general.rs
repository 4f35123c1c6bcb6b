//! Version, settings, logins.

use std::sync::Arc;

use plumb_api::Status;
use serde_json::{Value, json};

use crate::call::{Answer, Call};

/// The version. Only a caller with a login learns more than the number.
pub(super) async fn version(call: Arc<Call>) -> Result<Answer, Status> {
    let version = &call.shared.version;
    if !call.identity.as_ref().is_some_and(crate::session::Identity::is_logged_in) {
        return Ok(Answer::One(json!({"Version": version})));
    }
    Ok(Answer::One(json!({
        "Version": version,
        "GitTreeState": "clean",
        "Compiler": "rustc",
        "Platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    })))
}

/// The settings that clients need. Without a login only the reduced set of Argo CD.
pub(super) async fn settings(call: Arc<Call>) -> Result<Answer, Status> {
    let state = &call.shared.state;
    let text = |key: &str| state.setting(key);
    let method = match text("application.resourceTrackingMethod").as_str() {
        "" => "annotation".to_owned(),
        method => method.to_owned(),
    };
    let label = match text("application.instanceLabelKey").as_str() {
        "" => "app.kubernetes.io/instance".to_owned(),
        label => label.to_owned(),
    };
    let config = state.config();
    let any_login =
        call.shared.state.accounts().values().any(|account| account.is_enabled && account.can_login);
    let mut settings = json!({
        "url": text("url"),
        "appLabelKey": label,
        "trackingMethod": method,
        "installationID": text("installationID"),
        "statusBadgeEnabled": text("statusbadge.enabled") == "true",
        "userLoginsDisabled": !any_login,
        "execEnabled": false,
        "help": {"chatUrl": text("help.chatUrl"), "chatText": text("help.chatText")},
        "googleAnalytics": {},
        "kustomizeOptions": {"BuildOptions": text("kustomize.buildOptions")},
        "appsInAnyNamespaceEnabled": config.contains_key("application.namespaces"),
    });
    if let Some(oidc) = call.shared.sessions.sso().config() {
        settings["oidcConfig"] = json!({
            "name": oidc.name, "issuer": oidc.issuer, "clientID": oidc.client_id, "cliClientID": oidc.cli_client_id,
            "scopes": oidc.scopes, "enablePKCEAuthentication": true,
        });
    }
    if call.identity.as_ref().is_some_and(crate::session::Identity::is_logged_in) {
        settings["controllerNamespace"] = json!(call.namespace());
        settings["passwordPattern"] = json!(super::account::password_pattern(&text("passwordPattern")));
        settings["uiBannerContent"] = json!(text("ui.bannercontent"));
    }
    Ok(Answer::One(settings))
}

/// The names of the configuration management plugins. plumb finds them by itself, so a client need not know them.
pub(super) async fn plugins(_: Arc<Call>) -> Result<Answer, Status> {
    Ok(Answer::One(json!({"plugins": []})))
}

/// Logs in with a password.
pub(super) async fn login(call: Arc<Call>) -> Result<Answer, Status> {
    if !call.text("token").is_empty() {
        return Err(Status::unauthenticated(
            "token-based session creation no longer supported. please upgrade argocd cli to v0.7+",
        ));
    }
    let token = call.shared.sessions.login(call.text("username"), call.text("password"), call.peer).await?;
    Ok(Answer::One(json!({"token": token})))
}

/// Does nothing, as in Argo CD: `/auth/logout` revokes the token.
pub(super) async fn logout(_: Arc<Call>) -> Result<Answer, Status> {
    Ok(Answer::One(json!({})))
}

/// Who the caller is. Never an error: without a login all fields are empty.
pub(super) async fn user_info(call: Arc<Call>) -> Result<Answer, Status> {
    let Some(identity) = call.identity.as_ref().filter(|identity| identity.is_logged_in()) else {
        return Ok(Answer::One(json!({})));
    };
    let groups: Vec<Value> = match identity.claim("groups") {
        Some(Value::Array(groups)) => groups.iter().filter(|group| group.is_string()).cloned().collect(),
        Some(Value::String(group)) => vec![json!(group)],
        _ => Vec::new(),
    };
    Ok(Answer::One(json!({
        "loggedIn": true,
        "username": identity.username,
        "iss": identity.text("iss"),
        "groups": groups,
    })))
}
