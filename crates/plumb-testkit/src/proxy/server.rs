//! Takes requests, makes their faults, passes the rest on.

use std::{convert::Infallible, io, sync::Arc};

use anyhow::{Context as _, anyhow};
use bytes::Bytes;
use futures::{Stream, StreamExt as _, stream};
use http::{
    Request, Response, StatusCode,
    header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, RETRY_AFTER, TRANSFER_ENCODING, USER_AGENT},
};
use http_body_util::{BodyExt as _, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::{
    body::{Frame, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use kube::{Client, client::Body as UpstreamBody};
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::oneshot, task::JoinSet};

use super::rules::{Fault, Recorded, Rules};
use super::watches::{Ending, Watches};

type Body = UnsyncBoxBody<Bytes, io::Error>;

/// What the connections of one proxy share.
pub(super) struct Shared {
    pub(super) upstream: Client,
    pub(super) rules: Rules,
    pub(super) watches: Watches,
}

/// Accepts connections until it is aborted, which ends them all.
pub(super) async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else { continue };
                let _ = stream.set_nodelay(true);
                let shared = Arc::clone(&shared);
                connections.spawn(async move {
                    let service = service_fn(move |request| handle(Arc::clone(&shared), request));
                    // A connection that breaks is what this proxy is for.
                    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
                });
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// An error closes the connection without an answer.
async fn handle(shared: Arc<Shared>, request: Request<Incoming>) -> anyhow::Result<Response<Body>> {
    let recorded = shared.rules.judge(describe(&request));
    match &recorded.fault {
        None => forward(&shared, request, recorded).await,
        Some(Fault::Delay(time)) => {
            tokio::time::sleep(*time).await;
            forward(&shared, request, recorded).await
        }
        Some(Fault::TooManyRequests { retry_after }) => {
            let mut answer = status_answer(StatusCode::TOO_MANY_REQUESTS)?;
            answer.headers_mut().insert(RETRY_AFTER, (*retry_after).into());
            Ok(answer)
        }
        Some(Fault::Error(code)) => status_answer(StatusCode::from_u16(*code).context("not an HTTP status")?),
        Some(Fault::Drop) => Err(anyhow!("dropped as asked")),
        Some(Fault::DropAnswer) => {
            let answer = forward(&shared, request, recorded).await?;
            drop(answer);
            Err(anyhow!("answer dropped as asked"))
        }
        Some(Fault::Answer(text)) => {
            Ok(Response::builder().header(CONTENT_TYPE, "text/plain").body(full(text.clone()))?)
        }
        Some(Fault::Gone) => status_answer(StatusCode::GONE),
        Some(Fault::GoneInStream) => {
            let answer = Response::builder().header(CONTENT_TYPE, "application/json");
            Ok(answer.body(full(gone_event()))?)
        }
    }
}

fn describe(request: &Request<Incoming>) -> Recorded {
    let target = request.uri().path_and_query().map_or("/", |target| target.as_str()).to_owned();
    let query = request.uri().query().unwrap_or_default();
    let watch = query.split('&').any(|pair| matches!(pair, "watch=true" | "watch=1" | "watch"));
    let user_agent =
        request.headers().get(USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    Recorded {
        method: request.method().clone(),
        target,
        watch,
        user_agent: user_agent.to_owned(),
        fault: None,
    }
}

async fn forward(
    shared: &Shared,
    request: Request<Incoming>,
    recorded: Recorded,
) -> anyhow::Result<Response<Body>> {
    let (mut parts, body) = request.into_parts();
    let body = body.collect().await.context("read the request")?.to_bytes();
    // The client for the other side makes these itself.
    for header in [HOST, CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING] {
        parts.headers.remove(header);
    }
    let target = parts.uri.path_and_query().map_or("/", |target| target.as_str()).to_owned();
    parts.uri = target.parse().context("read the target")?;
    parts.version = http::Version::HTTP_11;
    let answer = shared
        .upstream
        .send(Request::from_parts(parts, UpstreamBody::from(body)))
        .await
        .context("ask the API server")?;
    let (mut parts, body) = answer.into_parts();
    for header in [CONNECTION, TRANSFER_ENCODING] {
        parts.headers.remove(header);
    }
    parts.version = http::Version::HTTP_11;
    let body = if recorded.watch && parts.status.is_success() {
        watched(shared, recorded, body)
    } else {
        body.map_err(io::Error::other).boxed_unsync()
    };
    Ok(Response::from_parts(parts, body))
}

/// The body of a watch, which ends when its source does or when the test says so.
fn watched(shared: &Shared, recorded: Recorded, body: UpstreamBody) -> Body {
    let (registered, end) = shared.watches.register(recorded);
    let chunks = body.into_data_stream().map(|chunk| chunk.map_err(io::Error::other));
    let until_told = ended_by(chunks, end);
    let held = until_told.map(move |chunk| {
        let _on_the_list = &registered;
        chunk.map(Frame::data)
    });
    StreamBody::new(held).boxed_unsync()
}

/// The chunks until the end is announced, then the ending.
fn ended_by(
    chunks: impl Stream<Item = io::Result<Bytes>> + Send + Unpin + 'static,
    end: oneshot::Receiver<Ending>,
) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
    stream::unfold(Some((chunks, end)), async |open| {
        let (mut chunks, mut end) = open?;
        tokio::select! {
            biased;
            told = &mut end => match told {
                Ok(Ending::Broken) => Some((Err(io::Error::other("broken as asked")), None)),
                Ok(Ending::Gone) => Some((Ok(Bytes::from(gone_event())), None)),
                Ok(Ending::Clean) | Err(_) => None,
            },
            chunk = chunks.next() => match chunk? {
                Ok(chunk) => Some((Ok(chunk), Some((chunks, end)))),
                Err(error) => Some((Err(error), None)),
            },
        }
    })
}

fn gone_event() -> String {
    let status = status(StatusCode::GONE);
    format!("{}\n", json!({"type": "ERROR", "object": status}))
}

/// An error in the form of the API server.
fn status_answer(code: StatusCode) -> anyhow::Result<Response<Body>> {
    let answer = Response::builder().status(code).header(CONTENT_TYPE, "application/json");
    Ok(answer.body(full(status(code).to_string()))?)
}

fn status(code: StatusCode) -> Value {
    let reason = match code {
        StatusCode::GONE => "Expired",
        StatusCode::TOO_MANY_REQUESTS => "TooManyRequests",
        StatusCode::INTERNAL_SERVER_ERROR => "InternalError",
        StatusCode::SERVICE_UNAVAILABLE => "ServiceUnavailable",
        StatusCode::FORBIDDEN => "Forbidden",
        StatusCode::CONFLICT => "Conflict",
        StatusCode::NOT_FOUND => "NotFound",
        _ => "Unknown",
    };
    json!({
        "apiVersion": "v1",
        "kind": "Status",
        "metadata": {},
        "status": "Failure",
        "message": "a fault made by the test",
        "reason": reason,
        "code": code.as_u16(),
    })
}

fn full(text: String) -> Body {
    Full::new(Bytes::from(text)).map_err(|never: Infallible| match never {}).boxed_unsync()
}
