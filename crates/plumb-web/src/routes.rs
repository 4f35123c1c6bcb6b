//! Which path answers what.

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;
use plumb_engine::Handle;

use crate::exposition;
use crate::server::Side;
use crate::webhook;

/// An answer, whole.
pub(crate) type Answer = Response<Full<Bytes>>;

pub(crate) async fn answer(side: Side, handle: &Handle, request: Request<Incoming>) -> Answer {
    let path = request.uri().path().to_owned();
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    match (side, path.as_str()) {
        (_, "/healthz") if is_read => text(StatusCode::OK, "ok"),
        (_, "/readyz") if is_read => {
            let (ready, why) = handle.readiness();
            text(if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }, why)
        }
        (Side::Inside, "/metrics") if is_read => {
            let body = exposition::print(&handle.families());
            with_type(StatusCode::OK, body, exposition::CONTENT_TYPE)
        }
        (Side::Outside, "/api/webhook") if request.method() == Method::POST => {
            webhook::answer(handle, request).await
        }
        (_, "/healthz" | "/readyz") | (Side::Inside, "/metrics") | (Side::Outside, "/api/webhook") => {
            text(StatusCode::METHOD_NOT_ALLOWED, "this path has no answer to that method")
        }
        _ => text(StatusCode::NOT_FOUND, "there is nothing here"),
    }
}

/// A line of text.
pub(crate) fn text(status: StatusCode, body: &str) -> Answer {
    with_type(status, format!("{body}\n"), "text/plain; charset=utf-8")
}

fn with_type(status: StatusCode, body: String, content_type: &'static str) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from(body)));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}
