//! Leader election with a `coordination.k8s.io` Lease and a fence: one process writes at a time.
//!
//! The holder renews the Lease. Every other process waits until it has seen the same state of it for the
//! Lease's whole duration *by its own clock* (the clocks of two machines need not agree). The fence closes at
//! a deadline well before that moment, so a holder that cannot renew stops writing before another process
//! starts.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::Method;
use jiff::Timestamp;
use plumb_core::object::GroupVersionKind;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::backoff::jitter;
use crate::catalog::Resource;
use crate::client::{Call, ClusterClient};
use crate::error::ApiError;

/// Options of a Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseOptions {
    /// Namespace of the Lease.
    pub namespace: String,
    /// Name of the Lease.
    pub name: String,
    /// Identity of this process, unique among the processes that compete for the Lease.
    pub identity: String,
    /// How long other processes wait after the last renewal that they saw.
    pub duration: Duration,
    /// The fence closes this long after the last renewal that the server confirmed. Less than `duration`.
    pub renew_deadline: Duration,
    /// How often the holder renews, and how often the others check whether it does.
    pub renew_every: Duration,
}

impl LeaseOptions {
    /// The usual times: 15 s, 10 s, 3 s.
    pub fn new(namespace: &str, name: &str, identity: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            identity: identity.to_owned(),
            duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            renew_every: Duration::from_secs(3),
        }
    }
}

/// Whether this process holds the Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leadership {
    /// Another process holds the Lease, or the holder is not known.
    Waiting {
        /// The holder, if known.
        holder: Option<String>,
    },
    /// This process holds the Lease; the fence closes at this moment unless the Lease is renewed.
    Leading {
        /// When the fence closes.
        until: Instant,
    },
    /// This process released the Lease.
    Released,
}

/// The Lease is not held, or no longer held: this process must not write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this process does not hold the lease; another one may be writing")]
pub struct FenceLost;

/// The right of this process to write, shared by everything that writes.
#[derive(Clone, Debug)]
pub struct Fence(Option<watch::Receiver<Leadership>>);

impl Fence {
    /// For a command that a user runs once: it competes with no other process.
    pub fn of_command() -> Self {
        Self(None)
    }

    /// An error if the fence is closed at this moment.
    pub fn check(&self) -> Result<(), FenceLost> {
        let Some(leadership) = &self.0 else { return Ok(()) };
        match *leadership.borrow() {
            Leadership::Leading { until } if Instant::now() < until => Ok(()),
            Leadership::Leading { .. } | Leadership::Waiting { .. } | Leadership::Released => Err(FenceLost),
        }
    }

    /// Waits until it closes.
    pub async fn lost(&self) -> FenceLost {
        let Some(leadership) = &self.0 else { return std::future::pending().await };
        let mut leadership = leadership.clone();
        loop {
            let until = match *leadership.borrow_and_update() {
                Leadership::Leading { until } => until,
                Leadership::Waiting { .. } | Leadership::Released => return FenceLost,
            };
            tokio::select! {
                () = tokio::time::sleep_until(until) => {
                    if self.check().is_err() {
                        return FenceLost;
                    }
                }
                changed = leadership.changed() => {
                    // The keeper ended: no renewal will come.
                    if changed.is_err() {
                        tokio::time::sleep_until(until).await;
                        return FenceLost;
                    }
                }
            }
        }
    }
}

/// Competes for a Lease and keeps it, in a task of its own, until released or abandoned. Dropping it leaves
/// the task running.
pub struct LeaseKeeper {
    leadership: watch::Receiver<Leadership>,
    last_renewed: Arc<OnceLock<Timestamp>>,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl LeaseKeeper {
    /// Starts to compete.
    pub fn start(client: ClusterClient, options: LeaseOptions) -> Self {
        Self::start_with(client, options, |_| false)
    }

    /// Starts to compete. `is_gone` returns true for a holder that is *proven* to have ended, so that its
    /// Lease need not expire first; in doubt it returns `false`.
    pub fn start_with(
        client: ClusterClient,
        options: LeaseOptions,
        is_gone: impl Fn(&str) -> bool + Send + Sync + 'static,
    ) -> Self {
        let (sender, leadership) = watch::channel(Leadership::Waiting { holder: None });
        let (stop, stopped) = watch::channel(false);
        let is_gone = Box::new(is_gone);
        let last_renewed = Arc::new(OnceLock::new());
        let found = Arc::clone(&last_renewed);
        let keeper = Keeper { client, options, leadership: sender, last_renewed: found, seen: None, is_gone };
        let task = tokio::spawn(keeper.run(stopped));
        Self { leadership, last_renewed, stop, task }
    }

    /// The fence that this Lease opens and closes.
    pub fn fence(&self) -> Fence {
        Fence(Some(self.leadership.clone()))
    }

    /// Whether this process holds the Lease, as a channel.
    pub fn leadership(&self) -> watch::Receiver<Leadership> {
        self.leadership.clone()
    }

    /// Waits until this process holds the Lease.
    pub async fn leading(&self) {
        let mut leadership = self.leadership.clone();
        // An error means that the task has ended, which only `release` does.
        let _ = leadership.wait_for(|state| matches!(state, Leadership::Leading { .. })).await;
    }

    /// When another holder last renewed the Lease before this process first held it, by that holder's clock;
    /// `None` if no other holder is known.
    pub fn last_renewed(&self) -> Option<Timestamp> {
        self.last_renewed.get().copied()
    }

    /// Closes the fence and releases the Lease, so that the next holder need not wait.
    pub async fn release(self) {
        let _ = self.stop.send(true);
        let _ = self.task.await;
    }

    /// Stops without releasing the Lease, as a process that is killed does.
    pub fn abandon(self) {
        self.task.abort();
    }
}

struct Keeper {
    client: ClusterClient,
    options: LeaseOptions,
    leadership: watch::Sender<Leadership>,
    /// When the previous holder last renewed.
    last_renewed: Arc<OnceLock<Timestamp>>,
    /// The last seen state of the Lease, and since when it is the same.
    seen: Option<(String, Instant)>,
    /// True for a holder that is proven to have ended.
    is_gone: Box<dyn Fn(&str) -> bool + Send + Sync>,
}

/// The result of one check of the Lease.
enum LeaseCheck {
    /// Held by this process, as of the moment before the request was sent.
    Held { since: Instant },
    /// Held by another process.
    Other { holder: Option<String> },
    /// Not known: another write came first.
    TooLate,
}

const TOO_LATE_PAUSE: Duration = Duration::from_millis(50);

impl Keeper {
    async fn run(mut self, mut stopped: watch::Receiver<bool>) {
        loop {
            match self.check().await {
                Ok(LeaseCheck::Held { since }) => {
                    let until = since + self.options.renew_deadline;
                    self.leadership.send_replace(Leadership::Leading { until });
                }
                Ok(LeaseCheck::Other { holder }) => {
                    self.leadership.send_replace(Leadership::Waiting { holder });
                }
                // Another process wrote the Lease between the read and the write. The next check finds out
                // which.
                Ok(LeaseCheck::TooLate) => {
                    tokio::time::sleep(TOO_LATE_PAUSE).await;
                    self.close_when_due();
                    continue;
                }
                Err(error) => {
                    tracing::warn!(%error, lease = self.options.name, "cannot renew the lease");
                    self.close_when_due();
                }
            }
            let pause = self.options.renew_every + jitter(self.options.renew_every / 10);
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                _ = stopped.wait_for(|stop| *stop) => break,
            }
        }
        let led = matches!(*self.leadership.borrow(), Leadership::Leading { .. });
        self.leadership.send_replace(Leadership::Released);
        if led && let Err(error) = self.give_back().await {
            tracing::debug!(%error, "cannot release the lease; it will expire");
        }
    }

    /// The fence closes at its deadline; publish that.
    fn close_when_due(&self) {
        self.leadership.send_if_modified(|state| match state {
            Leadership::Leading { until } if *until <= Instant::now() => {
                *state = Leadership::Waiting { holder: None };
                true
            }
            Leadership::Leading { .. } | Leadership::Waiting { .. } | Leadership::Released => false,
        });
    }

    /// Takes the Lease if it is free, already held by this process, or expired; else remembers its state.
    async fn check(&mut self) -> Result<LeaseCheck, ApiError> {
        let before = Instant::now();
        let Some(lease) = self.fetch().await? else {
            let fresh = self.next(None);
            return Self::outcome(self.create(&fresh).await, before);
        };
        let holder = lease.spec.holder_identity.clone().filter(|holder| !holder.is_empty());
        let free = match &holder {
            None => true,
            Some(holder) if *holder == self.options.identity => true,
            Some(holder) if (self.is_gone)(holder) => {
                tracing::info!(holder, "the lease holder ended without releasing the lease");
                true
            }
            Some(_) => self.is_expired(&lease, before),
        };
        if !free {
            return Ok(LeaseCheck::Other { holder });
        }
        let renewed = lease.spec.renew_time.as_deref().and_then(|time| time.parse().ok());
        let next = self.next(Some(lease));
        let outcome = Self::outcome(self.replace(&next).await, before);
        if let (Ok(LeaseCheck::Held { .. }), Some(renewed)) = (&outcome, renewed) {
            // Only the first value counts: later ones are renewals by this process.
            let _ = self.last_renewed.set(renewed);
        }
        outcome
    }

    /// A conflict is not an error: another process wrote first.
    fn outcome(written: Result<(), ApiError>, before: Instant) -> Result<LeaseCheck, ApiError> {
        match written {
            Ok(()) => Ok(LeaseCheck::Held { since: before }),
            Err(error) if error.code() == Some(409) => Ok(LeaseCheck::TooLate),
            Err(error) => Err(error),
        }
    }

    fn is_expired(&mut self, lease: &Lease, now: Instant) -> bool {
        let state = lease.metadata.resource_version.clone().unwrap_or_default();
        match &self.seen {
            Some((seen, since)) if *seen == state => {
                let seconds = lease.spec.lease_duration_seconds.and_then(|s| u64::try_from(s).ok());
                let duration = seconds.map_or(self.options.duration, Duration::from_secs);
                now.duration_since(*since) >= duration
            }
            Some(_) | None => {
                self.seen = Some((state, now));
                false
            }
        }
    }

    /// The next state of the Lease.
    fn next(&self, present: Option<Lease>) -> Lease {
        let now = format!("{:.6}", Timestamp::now());
        let mut lease = present.unwrap_or_default();
        "coordination.k8s.io/v1".clone_into(&mut lease.api_version);
        "Lease".clone_into(&mut lease.kind);
        lease.metadata.name.clone_from(&self.options.name);
        lease.metadata.namespace.clone_from(&self.options.namespace);
        if lease.spec.holder_identity.as_deref() != Some(&self.options.identity) {
            lease.spec.holder_identity = Some(self.options.identity.clone());
            lease.spec.acquire_time = Some(now.clone());
            lease.spec.lease_transitions =
                Some(lease.spec.lease_transitions.map_or(0, |n| n.saturating_add(1)));
        }
        lease.spec.renew_time = Some(now);
        let seconds = self.options.duration.as_secs().max(1);
        lease.spec.lease_duration_seconds = Some(i32::try_from(seconds).unwrap_or(i32::MAX));
        lease
    }

    async fn give_back(&self) -> Result<(), ApiError> {
        let Some(mut lease) = self.fetch().await? else { return Ok(()) };
        if lease.spec.holder_identity.as_deref() != Some(&self.options.identity) {
            return Ok(());
        }
        lease.spec.holder_identity = Some(String::new());
        // Zero is not valid; with one second the next holder need not wait.
        lease.spec.lease_duration_seconds = Some(1);
        self.replace(&lease).await
    }

    fn call(&self, method: Method, path: String) -> Call {
        Call::new(method, path).urgent(self.options.renew_deadline / 2)
    }

    async fn fetch(&self) -> Result<Option<Lease>, ApiError> {
        let path = leases().object_path(Some(&self.options.namespace), &self.options.name, None)?;
        match self.client.call(self.call(Method::GET, path.clone())).await {
            Ok(answer) => serde_json::from_slice(&answer.body)
                .map(Some)
                .map_err(|source| ApiError::unreadable(&path, "a Lease", Some(source))),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn create(&self, lease: &Lease) -> Result<(), ApiError> {
        let path = leases().collection_path(Some(&self.options.namespace))?;
        self.client.call(self.call(Method::POST, path).body("application/json", body(lease)?)).await?;
        Ok(())
    }

    async fn replace(&self, lease: &Lease) -> Result<(), ApiError> {
        let path = leases().object_path(Some(&self.options.namespace), &self.options.name, None)?;
        self.client.call(self.call(Method::PUT, path).body("application/json", body(lease)?)).await?;
        Ok(())
    }
}

fn leases() -> Resource {
    Resource {
        gvk: GroupVersionKind::from_api_version("coordination.k8s.io/v1", "Lease"),
        plural: "leases".to_owned(),
        namespaced: true,
    }
}

fn body(lease: &Lease) -> Result<Vec<u8>, ApiError> {
    serde_json::to_vec(lease).map_err(|_| ApiError::Malformed {
        what: "the lease".to_owned(),
        why: "it cannot be written as JSON",
    })
}

/// A Lease, with the parts that we do not know kept as they are.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Lease {
    api_version: String,
    kind: String,
    metadata: LeaseMeta,
    spec: LeaseSpec,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct LeaseMeta {
    name: String,
    namespace: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_version: Option<String>,
    #[serde(flatten)]
    rest: serde_json::Map<String, serde_json::Value>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct LeaseSpec {
    #[serde(skip_serializing_if = "Option::is_none")]
    holder_identity: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lease_duration_seconds: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    acquire_time: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    renew_time: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lease_transitions: Option<i32>,
    #[serde(flatten)]
    rest: serde_json::Map<String, serde_json::Value>,
}
