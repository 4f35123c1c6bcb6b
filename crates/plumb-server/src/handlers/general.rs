//! Version, settings, logins.

use std::sync::Arc;

use plumb_api::Status;
use serde_json::json;

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
    let groups = call.shared.state.groups(&identity.access);
    Ok(Answer::One(json!({
        "loggedIn": true,
        "username": identity.username,
        "iss": identity.text("iss"),
        "groups": groups,
    })))
}
