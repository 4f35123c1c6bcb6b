//! `/auth/logout`: revokes the token and removes the cookie.

use http::{HeaderMap, HeaderValue, Response, StatusCode, header};

use super::cookie::CookieRules;
use super::rest::text;
use crate::body::AnswerBody;
use crate::oidc::unchecked_issuer;
use crate::session::{COOKIE, Sessions, cookie_token};

pub(crate) async fn answer(
    sessions: &Sessions,
    headers: &HeaderMap,
    url: &str,
    rules: &CookieRules,
) -> Response<AnswerBody> {
    let Some(token) = cookie_token(headers) else {
        return text(StatusCode::BAD_REQUEST, "Failed to retrieve ArgoCD auth token");
    };
    if let Err(status) = sessions.revoke(&token).await {
        // A session that cannot be revoked must not look as if it was.
        return text(StatusCode::SERVICE_UNAVAILABLE, &status.message);
    }
    let mut answer = Response::new(AnswerBody::default());
    *answer.status_mut() = StatusCode::SEE_OTHER;
    let home = if url.is_empty() { format!("/{}", rules.path.trim_matches('/')) } else { url.to_owned() };
    // A session of the identity provider ends there, too.
    let provider = sessions.sso().config().map(|config| (config.issuer, config.logout_url));
    let place = match provider {
        Some((issuer, logout))
            if !logout.is_empty() && unchecked_issuer(&token).as_ref() == Some(&issuer) =>
        {
            logout.replace("{{token}}", &token).replace("{{logoutRedirectURL}}", &home)
        }
        _ => home,
    };
    let location = HeaderValue::from_str(&place).unwrap_or(HeaderValue::from_static("/"));
    answer.headers_mut().insert(header::LOCATION, location);
    for name in std::iter::once(COOKIE.to_owned()).chain((1..20).map(|n| format!("{COOKIE}-{n}"))) {
        if let Some(value) = rules.clear(&name) {
            answer.headers_mut().append(header::SET_COOKIE, value);
        }
    }
    answer
}
