//! Maps paths to answers.

use http::{Method, Request, StatusCode};
use hyper::body::Incoming;
use plumb_core::peers::Peer;
use plumb_engine::Handle;

use crate::exposition;
use crate::response::{Answer, text, with_type};
use crate::webhook::{self, Webhooks};

/// Who uses a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The cluster: probes and Prometheus.
    Inside,
    /// Git servers: webhooks.
    Outside,
}

pub(crate) async fn answer(
    side: Side,
    handle: &Handle,
    webhooks: &Webhooks,
    peer: Peer,
    request: Request<Incoming>,
) -> Answer {
    let path = request.uri().path().to_owned();
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    match (side, path.as_str()) {
        (_, "/healthz") if is_read => text(StatusCode::OK, "ok"),
        (_, "/readyz") if is_read => {
            let (ready, why) = handle.readiness();
            text(if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }, why)
        }
        (Side::Inside, "/metrics") if is_read => metrics(handle).await,
        (Side::Outside, "/api/webhook") if request.method() == Method::POST => {
            webhook::answer(handle, webhooks, peer, request).await
        }
        (_, "/healthz" | "/readyz") | (Side::Inside, "/metrics") | (Side::Outside, "/api/webhook") => {
            text(StatusCode::METHOD_NOT_ALLOWED, "method not allowed")
        }
        _ => text(StatusCode::NOT_FOUND, "not found"),
    }
}

/// Reading the numbers of thousands of apps takes locks and time, which the health endpoints must not wait for.
async fn metrics(handle: &Handle) -> Answer {
    let handle = handle.clone();
    match tokio::task::spawn_blocking(move || exposition::print(&handle.families())).await {
        Ok(body) => with_type(StatusCode::OK, body, exposition::CONTENT_TYPE),
        Err(_) => text(StatusCode::INTERNAL_SERVER_ERROR, "cannot read the metrics"),
    }
}
