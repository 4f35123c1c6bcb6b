//! Verifies a webhook and passes the push that it reports on to the engine.

use std::time::{Duration, Instant};

use http::{Request, StatusCode};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use plumb_core::peers::{Peer, PeerShare, PeerShares};
use plumb_engine::Handle;
use tracing::info;

use super::log_pace::LogPace;
use super::payload::{self, Event};
use super::sender::{Proof, Sender};
use crate::response::{Answer, text};

/// How many megabytes of bodies are in memory at a time, and how many of them are one client's.
const MEGABYTES: usize = 32;
const MEGABYTES_OF_ONE: usize = 8;
/// Longest time to receive a whole body, including the wait for a place.
const BODY_TIMEOUT: Duration = Duration::from_secs(5);
/// How often a request that waits for a place looks again.
const PLACE_AGAIN: Duration = Duration::from_millis(20);

/// What all webhook requests share.
pub(crate) struct Webhooks {
    bodies: PeerShares,
    pace: LogPace,
}

impl Default for Webhooks {
    fn default() -> Self {
        Self { bodies: PeerShares::new(MEGABYTES, MEGABYTES_OF_ONE), pace: LogPace::default() }
    }
}

/// The result of a request.
enum Outcome {
    /// A push, or a change of pull requests.
    Accepted,
    /// An event that concerns no app, such as a ping.
    Ignored,
    /// The sender is not known.
    Unknown,
    /// The sender could not be verified.
    Refused(&'static str),
    /// The secrets for verification cannot be read now, or too many bodies are being read.
    Unavailable(&'static str),
    /// The body is larger than allowed.
    TooLarge(u64),
    /// The body did not arrive, or does not have the documented form.
    Unreadable(String),
}

pub(crate) async fn answer(
    handle: &Handle,
    webhooks: &Webhooks,
    peer: Peer,
    request: Request<Incoming>,
) -> Answer {
    let sender = Sender::of(request.headers());
    let name = sender.map_or("unknown", Sender::name);
    let outcome = match sender {
        Some(sender) => accept(handle, webhooks, peer, sender, request).await,
        None => Outcome::Unknown,
    };
    handle.count_webhook(name, outcome.name());
    let may_write = || webhooks.pace.may_write(outcome.name(), Instant::now());
    match &outcome {
        Outcome::Refused(why) | Outcome::Unavailable(why) => {
            if let Some(omitted) = may_write() {
                info!(sender = name, why, omitted, "webhook refused");
            }
        }
        Outcome::Unreadable(why) => {
            if let Some(omitted) = may_write() {
                info!(sender = name, why, omitted, "cannot read the webhook");
            }
        }
        Outcome::TooLarge(limit) => {
            if let Some(omitted) = may_write() {
                info!(sender = name, limit, omitted, "webhook too large");
            }
        }
        Outcome::Accepted | Outcome::Ignored | Outcome::Unknown => {}
    }
    outcome.answer()
}

async fn accept(
    handle: &Handle,
    webhooks: &Webhooks,
    peer: Peer,
    sender: Sender,
    request: Request<Incoming>,
) -> Outcome {
    let Some(rules) = handle.webhook_rules().await else {
        return Outcome::Unavailable("cannot read argocd-secret");
    };
    let proof = match sender.check_head(request.headers(), &rules.secrets) {
        Ok(proof) => proof,
        Err(why) => return Outcome::Refused(why),
    };
    let kind = sender.event(request.headers());
    let (body, place) = match read(webhooks, peer, request, rules.max_bytes).await {
        Ok(body) => body,
        Err(outcome) => return outcome,
    };
    // Hashing and parsing take some milliseconds for a large body, which no other request should wait for.
    let parsed = tokio::task::spawn_blocking(move || {
        let is_verified = match proof {
            Proof::NotAsked => false,
            Proof::Given => true,
            Proof::Signature(signature) if signature.signs(&body) => true,
            Proof::Signature(_) => return Err(Outcome::Refused("the signature does not match the body")),
        };
        let event = payload::read(sender, &kind, &body).map_err(Outcome::Unreadable);
        drop(body);
        drop(place);
        event.map(|event| (event, is_verified))
    });
    match parsed.await {
        Ok(Ok((Event::Push(push), is_verified))) => {
            handle.pushed(push, is_verified);
            Outcome::Accepted
        }
        Ok(Ok((Event::Other, _))) => Outcome::Ignored,
        Ok(Err(outcome)) => outcome,
        Err(_) => Outcome::Unreadable("the body could not be parsed".to_owned()),
    }
}

/// Reads a body. The place in memory is held until the body is parsed.
async fn read(
    webhooks: &Webhooks,
    peer: Peer,
    request: Request<Incoming>,
    limit: u64,
) -> Result<(bytes::Bytes, PeerShare), Outcome> {
    let announced = hyper::body::Body::size_hint(request.body());
    if announced.lower() > limit {
        return Err(Outcome::TooLarge(limit));
    }
    let most = announced.upper().unwrap_or(limit).min(limit);
    let megabytes = usize::try_from(most.div_ceil(1 << 20)).unwrap_or(MEGABYTES).clamp(1, MEGABYTES);
    let bounded = Limited::new(request.into_body(), usize::try_from(limit).unwrap_or(usize::MAX));
    let mut waits = true;
    let reading = async {
        let place = loop {
            match webhooks.bodies.take(peer, megabytes) {
                Ok(place) => break place,
                Err(_) => tokio::time::sleep(PLACE_AGAIN).await,
            }
        };
        waits = false;
        bounded.collect().await.map(|body| (body.to_bytes(), place))
    };
    match tokio::time::timeout(BODY_TIMEOUT, reading).await {
        Ok(Ok(body)) => Ok(body),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => Err(Outcome::TooLarge(limit)),
        Ok(Err(_)) => Err(Outcome::Unreadable("the connection broke".to_owned())),
        Err(_) if waits => Err(Outcome::Unavailable("too many bodies are being read")),
        Err(_) => Err(Outcome::Unreadable("the body did not arrive in time".to_owned())),
    }
}

impl Outcome {
    fn name(&self) -> &'static str {
        match self {
            Self::Accepted => "taken",
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
            // How many apps follow the repository is not told: the sender may be any client.
            Self::Accepted => text(StatusCode::OK, "push received"),
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
