//! Answers of the page's own calls, and its files.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use plumb_api::Status;
use plumb_page::{Asset, asset, index_html};
use serde_json::{Value, json};

use crate::body::AnswerBody;

/// Answers shorter than this are not worth compressing.
const COMPRESSED_FROM: usize = 1400;

/// The page runs its own script and style, talks to its own server, and nothing else.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
                      base-uri 'self'; form-action 'none'; frame-ancestors 'none'; \
                      require-trusted-types-for 'script'; trusted-types 'none'";

/// What plumb says at `/` if it was built without a page.
const NO_PAGE: &str = "plumb serves Argo CD's API here, and was built without its page.\n\
                       Log in with `argocd login`, or build plumb with Go installed to get the page.\n";

fn takes_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
    accepted.is_some_and(|accepted| accepted.split(',').any(|one| one.trim().starts_with("gzip")))
}

fn answer(status: StatusCode, kind: &'static str, body: AnswerBody) -> Response<AnswerBody> {
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    answer.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

/// JSON, compressed if it is long and the client reads that.
pub(super) fn json_answer(status: StatusCode, headers: &HeaderMap, value: &Value) -> Response<AnswerBody> {
    let text = value.to_string();
    if text.len() < COMPRESSED_FROM || !takes_gzip(headers) {
        return answer(status, "application/json", AnswerBody::full(text));
    }
    let mut encoder = GzEncoder::new(Vec::with_capacity(text.len() / 4), Compression::fast());
    let packed = encoder.write_all(text.as_bytes()).and_then(|()| encoder.finish());
    let Ok(packed) = packed else { return answer(status, "application/json", AnswerBody::full(text)) };
    let mut answer = answer(status, "application/json", AnswerBody::full(packed));
    answer.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    answer
}

/// An error, as the page reads it.
pub(super) fn error_answer(headers: &HeaderMap, status: &Status) -> Response<AnswerBody> {
    let http = StatusCode::from_u16(status.code.http()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    json_answer(http, headers, &json!({"error": status.message}))
}

/// Server-sent events.
pub(super) fn events_answer(body: AnswerBody) -> Response<AnswerBody> {
    let mut answer = answer(StatusCode::OK, "text/event-stream", body);
    // A proxy that collects bytes would hold back the beats.
    answer.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    answer
}

/// The document, for a page below this path.
pub(super) fn document(base: &str) -> Response<AnswerBody> {
    let Some(html) = index_html(base) else {
        return answer(StatusCode::OK, "text/plain; charset=utf-8", AnswerBody::full(NO_PAGE));
    };
    let mut answer = answer(StatusCode::OK, "text/html; charset=utf-8", AnswerBody::full(html));
    answer.headers_mut().insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    answer.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    answer
}

/// A file of the bundle. Its name changes with its content, so a browser may keep it.
pub(super) fn file(headers: &HeaderMap, name: &str) -> Response<AnswerBody> {
    let Some(Asset { name, plain, gzip }) = asset(name) else {
        return answer(
            StatusCode::NOT_FOUND,
            "text/plain; charset=utf-8",
            AnswerBody::full("this file is of another version of the page; reload it\n"),
        );
    };
    let kind = if name.rsplit_once('.').is_some_and(|(_, end)| end == "css") {
        "text/css; charset=utf-8"
    } else {
        "text/javascript; charset=utf-8"
    };
    let tag = format!("\"{name}\"");
    let is_known = headers.get(header::IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes());
    let packs = takes_gzip(headers);
    let (status, body) = match (is_known, packs) {
        (true, _) => (StatusCode::NOT_MODIFIED, AnswerBody::default()),
        (false, true) => (StatusCode::OK, AnswerBody::full(*gzip)),
        (false, false) => (StatusCode::OK, AnswerBody::full(*plain)),
    };
    let mut answer = answer(status, kind, body);
    let headers = answer.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable"));
    headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(header::ETAG, tag);
    }
    if packs && !is_known {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compression_is_asked_for_and_worth_it() {
        let long = json!({"text": "x".repeat(COMPRESSED_FROM)});
        let mut headers = HeaderMap::new();
        let packed = |headers: &HeaderMap, value: &Value| {
            json_answer(StatusCode::OK, headers, value).headers().contains_key(header::CONTENT_ENCODING)
        };
        assert!(!packed(&headers, &long));
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("br, gzip;q=0.5"));
        assert!(packed(&headers, &long) && !packed(&headers, &json!({})));
    }

    #[test]
    fn the_policy_permits_no_inline_code_and_no_other_server() {
        assert!(
            !POLICY.contains("unsafe") && !POLICY.contains("http") && POLICY.contains("default-src 'none'")
        );
    }
}
