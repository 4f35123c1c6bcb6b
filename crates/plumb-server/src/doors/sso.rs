//! `/auth/login` and `/auth/callback`: the login of a browser at the identity provider.

use std::net::IpAddr;

use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use plumb_api::query_pairs;
use plumb_core::text::one_line;
use tracing::info;

use super::cookie::CookieRules;
use super::rest::text;
use crate::body::AnswerBody;
use crate::oidc::{Redirect, Sso};

/// What the browser keeps during a login.
const STATE: &str = "argocd.oauthstate";

fn value_of(query: &str, name: &str) -> String {
    query_pairs(query).find(|(key, _)| key == name).map(|(_, value)| value).unwrap_or_default()
}

/// Nothing of the request is part of the answer: it would be shown on this server's page.
fn refused(why: &str, from: IpAddr) -> Response<AnswerBody> {
    info!(reason = why, %from, "login with single sign-on failed");
    text(StatusCode::BAD_REQUEST, "the login failed; the log of the server has the reason")
}

fn to(redirect: &Redirect, rules: &CookieRules, from: IpAddr) -> Response<AnswerBody> {
    let Ok(place) = HeaderValue::from_str(&redirect.to) else {
        return refused("the address is not valid", from);
    };
    let mut answer = Response::new(AnswerBody::default());
    *answer.status_mut() = StatusCode::SEE_OTHER;
    let headers = answer.headers_mut();
    headers.insert(header::LOCATION, place);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let rules = &CookieRules { secure: rules.secure || redirect.is_secure, ..rules.clone() };
    let state = if redirect.state.is_empty() {
        rules.clear(STATE)
    } else {
        rules.set_for_a_while(STATE, &redirect.state)
    };
    for cookie in state.into_iter().chain(redirect.token.iter().flat_map(|token| rules.set(token))) {
        headers.append(header::SET_COOKIE, cookie);
    }
    answer
}

/// Sends the browser to the provider.
pub(crate) async fn begin(sso: &Sso, query: &str, rules: &CookieRules, from: IpAddr) -> Response<AnswerBody> {
    if sso.config().is_none() {
        return text(StatusCode::NOT_FOUND, "Not Found");
    }
    match sso.begin(&value_of(query, "return_url"), jiff::Timestamp::now().as_second()).await {
        Ok(redirect) => to(&redirect, rules, from),
        Err(why) => refused(&why, from),
    }
}

/// Takes the browser back.
pub(crate) async fn end(
    sso: &Sso,
    query: &str,
    headers: &HeaderMap,
    rules: &CookieRules,
    from: IpAddr,
) -> Response<AnswerBody> {
    if sso.config().is_none() {
        return text(StatusCode::NOT_FOUND, "Not Found");
    }
    if !value_of(query, "error").is_empty() {
        return refused("the identity provider refused it", from);
    }
    let values = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = values.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let cookie = pairs.find(|(name, _)| *name == STATE).map(|(_, value)| value).unwrap_or_default();
    let (state, code) = (value_of(query, "state"), value_of(query, "code"));
    match sso.end(&state, &code, cookie, jiff::Timestamp::now().as_second()).await {
        Ok(redirect) => {
            info!(user = one_line(&redirect.user).as_ref(), %from, succeeded = true, "login with single sign-on");
            to(&redirect, rules, from)
        }
        Err(why) => refused(&why, from),
    }
}
