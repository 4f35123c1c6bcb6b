//! One answer of the API server.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, header};
use http_body::Body as _;
use http_body_util::BodyExt;
use plumb_core::object::Manifest;
use serde_json::Value;
use tower::BoxError;

use crate::error::{ApiError, Status};
use crate::transport::AnswerBody;

/// One complete answer.
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    /// The object in the body.
    pub(crate) fn manifest(&self, path: &str) -> Result<Manifest, ApiError> {
        let value: Value = serde_json::from_slice(&self.body)
            .map_err(|source| ApiError::unreadable(path, "a Kubernetes object", Some(source)))?;
        Manifest::new(value).map_err(|_| ApiError::unreadable(path, "a Kubernetes object", None))
    }

    /// The texts of the `Warning` headers.
    pub(crate) fn warnings(&self) -> Vec<String> {
        warnings(&self.headers)
    }
}

pub(super) fn refused(request: String, code: u16, headers: &HeaderMap, body: &[u8]) -> ApiError {
    let seconds = headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok());
    let retry_after = seconds.and_then(|text| text.trim().parse().ok()).map(Duration::from_secs);
    ApiError::Refused { request, status: Box::new(Status::from_answer(code, retry_after, body)) }
}

pub(super) async fn collect(mut body: AnswerBody, limit: usize) -> Result<Bytes, BoxError> {
    // A buffer that grows with the body is copied several times, and has half of its size unused in the end.
    let expected = usize::try_from(body.size_hint().lower()).unwrap_or(0);
    let mut whole = BytesMut::with_capacity(expected.min(limit));
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data() {
            if whole.len() + data.len() > limit {
                return Err("the answer is too large".into());
            }
            whole.extend_from_slice(&data);
        }
    }
    Ok(whole.freeze())
}

/// A connection that failed.
pub(crate) fn broken(request: &str, source: BoxError) -> ApiError {
    ApiError::Unreachable { request: request.to_owned(), source }
}

/// The texts of `Warning` headers. One header may hold several: `299 - "text", 299 - "text"`.
fn warnings(headers: &HeaderMap) -> Vec<String> {
    let mut texts = Vec::new();
    for value in headers.get_all(http::header::WARNING) {
        let Ok(value) = value.to_str() else { continue };
        let mut rest = value;
        while let Some((_, quoted)) = rest.split_once('"') {
            let mut text = String::new();
            let mut chars = quoted.char_indices();
            let mut end = quoted.len();
            while let Some((at, c)) = chars.next() {
                match c {
                    '\\' => text.extend(chars.next().map(|(_, escaped)| escaped)),
                    '"' => {
                        end = at + 1;
                        break;
                    }
                    _ => text.push(c),
                }
            }
            texts.push(text);
            rest = &quoted[end..];
        }
    }
    texts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_unquoted() {
        let mut headers = HeaderMap::new();
        headers.append("warning", r#"299 - "unknown field \"spec.x\"", 299 - "second""#.parse().unwrap());
        headers.append("warning", r#"299 - "third"#.parse().unwrap());
        assert_eq!(warnings(&headers), [r#"unknown field "spec.x""#, "second", "third"]);
    }
}
