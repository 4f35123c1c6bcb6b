//! Maps paths to answers.

use http::{Method, Request, StatusCode};
use hyper::body::Incoming;
use plumb_core::peers::Peer;
use plumb_engine::Handle;

use plumb_server::{AnswerBody, Api};

use crate::exposition;
use crate::response::{Answer, boxed, text, with_type};
use crate::webhook::{self, Webhooks};

/// Who uses a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The cluster: probes and Prometheus.
    Inside,
    /// Users and Git servers: the API and webhooks.
    Outside,
}

/// Answers a request. With TLS, a request that came without it reaches only health and webhooks; other requests are sent
/// to the address with TLS, so that no token travels in the clear.
pub(crate) async fn answer(
    side: Side,
    handle: &Handle,
    webhooks: &Webhooks,
    api: Option<(&Api, Security)>,
    peer: Peer,
    request: Request<Incoming>,
) -> http::Response<AnswerBody> {
    let path = request.uri().path().to_owned();
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    let below = api.map_or(Some(path.as_str()), |(api, _)| api.path(&path));
    match (side, below.unwrap_or(&path)) {
        (_, "/healthz") if is_read => boxed(text(StatusCode::OK, "ok")),
        (_, "/readyz") if is_read => {
            let (ready, why) = handle.readiness();
            boxed(text(if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }, why))
        }
        (Side::Inside, "/metrics") if is_read => boxed(metrics(handle).await),
        (Side::Outside, "/api/webhook") if request.method() == Method::POST => {
            boxed(webhook::answer(handle, webhooks, peer, request).await)
        }
        (_, "/healthz" | "/readyz") | (Side::Inside, "/metrics") | (Side::Outside, "/api/webhook") => {
            boxed(text(StatusCode::METHOD_NOT_ALLOWED, "method not allowed"))
        }
        (_, _) => match (api, below) {
            (Some((_, Security::Missing)), _) => to_tls(&request),
            (Some((api, Security::Fine)), Some(below)) => api.answer(peer.address(), below, request).await,
            _ => boxed(text(StatusCode::NOT_FOUND, "not found")),
        },
    }
}

/// Whether a connection is as safe as the API asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Security {
    /// It has TLS, or the API asks for none.
    Fine,
    /// It lacks TLS.
    Missing,
}

fn to_tls(request: &Request<Incoming>) -> http::Response<AnswerBody> {
    let host = request.headers().get(http::header::HOST).and_then(|host| host.to_str().ok());
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    let place = host.and_then(|host| http::HeaderValue::from_str(&format!("https://{host}{path}")).ok());
    let Some(place) = place else { return boxed(text(StatusCode::BAD_REQUEST, "this port needs TLS")) };
    let mut answer = boxed(text(StatusCode::TEMPORARY_REDIRECT, "this port needs TLS"));
    answer.headers_mut().insert(http::header::LOCATION, place);
    answer
}

/// Reading the numbers of thousands of apps takes locks and time, which the health endpoints must not wait for.
async fn metrics(handle: &Handle) -> Answer {
    let handle = handle.clone();
    match tokio::task::spawn_blocking(move || exposition::print(&handle.families())).await {
        Ok(body) => with_type(StatusCode::OK, body, exposition::CONTENT_TYPE),
        Err(_) => text(StatusCode::INTERNAL_SERVER_ERROR, "cannot read the metrics"),
    }
}
