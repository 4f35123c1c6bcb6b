//! Verifies a webhook and refreshes the apps that it concerns.

use std::time::Duration;

use http::{Request, StatusCode};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use plumb_engine::Handle;
use tokio::sync::Semaphore;
use tracing::info;

use super::payload::{self, Event};
use super::sender::{Proof, Sender};
use crate::response::{Answer, text};

/// Most bodies that are read at a time. Each may be as large as the settings allow.
const MAX_BODIES: usize = 4;
/// Longest time to receive a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

static BODIES: Semaphore = Semaphore::const_new(MAX_BODIES);

/// The result of a request.
enum Outcome {
    /// A push, and how many apps it refreshes.
    Accepted(usize),
    /// An event that concerns no app, such as a ping.
    Ignored,
    /// The sender is not known.
    Unknown,
    /// The sender could not be verified.
    Refused(&'static str),
    /// The secrets for verification cannot be read now.
    Unavailable(&'static str),
    /// The body is larger than allowed.
    TooLarge(u64),
    /// The body did not arrive, or does not have the documented form.
    Unreadable(String),
}

pub(crate) async fn answer(handle: &Handle, request: Request<Incoming>) -> Answer {
    let sender = Sender::of(request.headers());
    let name = sender.map_or("unknown", Sender::name);
    let outcome = match sender {
        Some(sender) => accept(handle, sender, request).await,
        None => Outcome::Unknown,
    };
    handle.count_webhook(name, outcome.name());
    match &outcome {
        Outcome::Refused(why) | Outcome::Unavailable(why) => info!(sender = name, why, "webhook refused"),
        Outcome::Unreadable(why) => info!(sender = name, why, "cannot read the webhook"),
        Outcome::TooLarge(limit) => info!(sender = name, limit, "webhook too large"),
        Outcome::Accepted(_) | Outcome::Ignored | Outcome::Unknown => {}
    }
    outcome.answer()
}

async fn accept(handle: &Handle, sender: Sender, request: Request<Incoming>) -> Outcome {
    let Some(secrets) = handle.webhook_secrets().await else {
        return Outcome::Unavailable("cannot read argocd-secret");
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
        return Outcome::Refused("the signature does not match the body");
    }
    match payload::read(sender, &kind, &body) {
        Ok(Event::Push(push)) => Outcome::Accepted(handle.pushed(&push).await),
        Ok(Event::Other) => Outcome::Ignored,
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
        // The semaphore is never closed, so this ends.
        let _permit = BODIES.acquire().await;
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
            Self::Accepted(_) => "taken",
            Self::Ignored => "nothing",
            Self::Unknown => "unknown",
            Self::Refused(_) => "refused",
            Self::Unavailable(_) => "unavailable",
            Self::TooLarge(_) => "too_large",
            Self::Unreadable(_) => "unreadable",
        }
    }

    fn answer(&self) -> Answer {
        match self {
            Self::Accepted(apps) => text(StatusCode::OK, &format!("refreshing {apps} apps")),
            Self::Ignored => text(StatusCode::OK, "nothing to do"),
            Self::Unknown => text(StatusCode::BAD_REQUEST, "Unknown webhook event"),
            // The log says which secret is missing or wrong; the response does not.
            Self::Refused(_) => text(StatusCode::UNAUTHORIZED, "the sender could not be verified"),
            Self::Unavailable(_) => text(StatusCode::SERVICE_UNAVAILABLE, "try again later"),
            Self::TooLarge(limit) => {
                text(StatusCode::PAYLOAD_TOO_LARGE, &format!("the body is larger than {limit} bytes"))
            }
            Self::Unreadable(why) => text(StatusCode::BAD_REQUEST, why),
        }
    }
}
