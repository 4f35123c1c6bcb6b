//! HTTP responses.

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use plumb_server::AnswerBody;

/// A complete response.
pub(crate) type Answer = Response<Bytes>;

/// A line of text.
pub(crate) fn text(status: StatusCode, body: &str) -> Answer {
    with_type(status, format!("{body}\n"), "text/plain; charset=utf-8")
}

pub(crate) fn with_type(status: StatusCode, body: String, content_type: &'static str) -> Answer {
    let mut answer = Response::new(Bytes::from(body));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

/// The same as the connection sends it.
pub(crate) fn boxed(answer: Answer) -> Response<AnswerBody> {
    answer.map(AnswerBody::full)
}
