//! `POST /api/webhook`: a Git server says that somebody pushed.
//!
//! The order matters. Who is it? What does it have to prove, and can that be checked without the body? Only then
//! is the body read, bounded; then its signature is checked; and only then is it looked into.

mod payload;
mod sender;

use http::{Request, StatusCode};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use plumb_engine::Handle;
use std::time::Duration;
use tokio::sync::Semaphore;
use tracing::info;

use crate::routes::{Answer, text};
use payload::Event;
use sender::{Proof, Sender};

/// Bodies that are read at a time. Each may be as large as the settings allow.
const MOST_BODIES: usize = 4;
/// How long a body may take to arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

static BODIES: Semaphore = Semaphore::const_new(MOST_BODIES);

/// What becomes of a request.
enum Outcome {
    /// A push, and how many apps are looked at.
    Taken(usize),
    /// Something that concerns nobody, such as a ping.
    Nothing,
    /// No known sender.
    Unknown,
    /// The sender could not prove who it is.
    Refused(&'static str),
    /// Whether it could prove it cannot be told now.
    NotNow(&'static str),
    /// The body is larger than allowed.
    TooLarge(u64),
    /// The body did not arrive, or is not what the sender's documentation says.
    Unreadable(String),
}

pub(crate) async fn answer(handle: &Handle, request: Request<Incoming>) -> Answer {
    let sender = Sender::of(request.headers());
    let name = sender.map_or("unknown", Sender::name);
    let outcome = match sender {
        Some(sender) => take(handle, sender, request).await,
        None => Outcome::Unknown,
    };
    handle.count_webhook(name, outcome.name());
    match &outcome {
        Outcome::Refused(why) | Outcome::NotNow(why) => info!(sender = name, why, "webhook refused"),
        Outcome::Unreadable(why) => info!(sender = name, why, "webhook cannot be read"),
        Outcome::TooLarge(limit) => info!(sender = name, limit, "webhook too large"),
        Outcome::Taken(_) | Outcome::Nothing | Outcome::Unknown => {}
    }
    outcome.answer()
}

async fn take(handle: &Handle, sender: Sender, request: Request<Incoming>) -> Outcome {
    let Some(secrets) = handle.webhook_secrets().await else {
        return Outcome::NotNow("argocd-secret cannot be read now");
    };
    let signature = match sender.check_head(request.headers(), &secrets) {
        Ok(signature) => signature,
        Err(why) => return Outcome::Refused(why),
    };
    let kind = sender.event(request.headers());
    let limit = handle.webhook_limit();
    let body = match read(request, limit).await {
        Ok(body) => body,
        Err(outcome) => return outcome,
    };
    if let Proof::Signature(signature) = signature
        && !signature.signs(&body)
    {
        return Outcome::Refused("the signature is not that of the body");
    }
    match payload::read(sender, &kind, &body) {
        Ok(Event::Push(push)) => Outcome::Taken(handle.pushed(&push).await),
        Ok(Event::Other) => Outcome::Nothing,
        Err(why) => Outcome::Unreadable(why),
    }
}

async fn read(request: Request<Incoming>, limit: u64) -> Result<bytes::Bytes, Outcome> {
    let announced = hyper::body::Body::size_hint(request.body()).lower();
    if announced > limit {
        return Err(Outcome::TooLarge(limit));
    }
    let late = || Outcome::Unreadable("the body did not arrive in time".to_owned());
    let bounded = Limited::new(request.into_body(), usize::try_from(limit).unwrap_or(usize::MAX));
    let reading = async {
        // Never closed, so there always is a place in the end.
        let _place = BODIES.acquire().await;
        bounded.collect().await
    };
    match tokio::time::timeout(BODY_TIMEOUT, reading).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => Err(Outcome::TooLarge(limit)),
        Ok(Err(error)) => Err(Outcome::Unreadable(error.to_string())),
        Err(_) => Err(late()),
    }
}

impl Outcome {
    fn name(&self) -> &'static str {
        match self {
            Self::Taken(_) => "taken",
            Self::Nothing => "nothing",
            Self::Unknown => "unknown",
            Self::Refused(_) => "refused",
            Self::NotNow(_) => "unavailable",
            Self::TooLarge(_) => "too_large",
            Self::Unreadable(_) => "unreadable",
        }
    }

    fn answer(&self) -> Answer {
        match self {
            Self::Taken(apps) => text(StatusCode::OK, &format!("{apps} apps are looked at")),
            Self::Nothing => text(StatusCode::OK, "nothing to do"),
            Self::Unknown => text(StatusCode::BAD_REQUEST, "Unknown webhook event"),
            // Which secret is missing or wrong is in the log, not in the answer.
            Self::Refused(_) => text(StatusCode::UNAUTHORIZED, "the sender could not be verified"),
            Self::NotNow(_) => text(StatusCode::SERVICE_UNAVAILABLE, "try again later"),
            Self::TooLarge(limit) => {
                text(StatusCode::PAYLOAD_TOO_LARGE, &format!("a body has at most {limit} bytes"))
            }
            Self::Unreadable(why) => text(StatusCode::BAD_REQUEST, why),
        }
    }
}
