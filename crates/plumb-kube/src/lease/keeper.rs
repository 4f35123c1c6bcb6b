//! Competes for the Lease and renews it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::Method;
use jiff::Timestamp;
use parking_lot::Mutex;
use plumb_core::error_chain::error_chain;
use plumb_core::object::GroupVersionKind;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use super::fence::{Fence, Leadership};
use super::wire::Lease;
use crate::backoff::jitter;
use crate::catalog::Resource;
use crate::client::{Call, ClusterClient};
use crate::error::ApiError;
use crate::fault_log::FaultLog;

/// The longest duration that the Lease of another holder is believed to have. plumb writes 15 s. A Lease that was written
/// with a longer one, by mistake or on purpose, must not stop every other process for years.
const LONGEST_BELIEVED: Duration = Duration::from_mins(1);

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

/// Competes for a Lease and keeps it until released or abandoned.
pub struct LeaseKeeper {
    leadership: watch::Receiver<Leadership>,
    terms: Arc<AtomicU64>,
    last_renewed: Arc<Mutex<Option<Timestamp>>>,
    stop: watch::Sender<Stop>,
    ended: oneshot::Receiver<()>,
}

/// How a keeper goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    No,
    /// Release the Lease and end.
    Release,
    /// End as a process that is killed does.
    Abandon,
}

/// Releases a Lease from any thread, for a process that has to end at once.
pub struct LeaseReleaser {
    leadership: watch::Receiver<Leadership>,
    stop: watch::Sender<Stop>,
}

impl LeaseReleaser {
    /// Asks the keeper to release the Lease.
    pub fn release(&self) {
        let _ = self.stop.send(Stop::Release);
    }

    /// True after the keeper has ended.
    pub fn has_ended(&self) -> bool {
        self.leadership.has_changed().is_err()
    }
}

impl LeaseKeeper {
    /// Starts to compete, in a task of this runtime.
    pub fn start(client: ClusterClient, options: LeaseOptions) -> Self {
        let (keeper, parts) = Self::new(client, options, Box::new(|_| false));
        tokio::spawn(parts.run());
        keeper
    }

    /// Starts to compete, on a thread and in a runtime of its own: work that blocks every thread of the caller's runtime
    /// does not stop the renewals. `client` must not be used for anything else, so that its connections belong to that
    /// runtime. `is_gone` returns true for a holder that is *proven* to have ended, so that its Lease need not expire
    /// first; in doubt it returns `false`.
    pub fn start_on_thread(
        client: ClusterClient,
        options: LeaseOptions,
        is_gone: impl Fn(&str) -> bool + Send + Sync + 'static,
    ) -> Result<Self, std::io::Error> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (keeper, parts) = Self::new(client, options, Box::new(is_gone));
        std::thread::Builder::new().name("lease".to_owned()).spawn(move || {
            runtime.block_on(parts.run());
            // A name lookup that does not end must not keep the process.
            runtime.shutdown_background();
        })?;
        Ok(keeper)
    }

    fn new(client: ClusterClient, options: LeaseOptions, is_gone: IsGone) -> (Self, Running) {
        let (sender, leadership) = watch::channel(Leadership::Waiting { holder: None });
        let (stop, stopped) = watch::channel(Stop::No);
        let (done, ended) = oneshot::channel();
        let (last_renewed, terms) = (Arc::new(Mutex::new(None)), Arc::new(AtomicU64::new(0)));
        let keeper = Keeper {
            client,
            options,
            leadership: sender,
            terms: Arc::clone(&terms),
            last_renewed: Arc::clone(&last_renewed),
            seen: None,
            is_gone,
            faults: FaultLog::default(),
        };
        let running = Running { keeper, stopped, done };
        (Self { leadership, terms, last_renewed, stop, ended }, running)
    }

    /// The fence of the present term; of the next one while this process does not hold the Lease.
    pub fn fence(&self) -> Fence {
        let number = match *self.leadership.borrow() {
            Leadership::Leading { term, .. } => term,
            _ => self.terms.load(Ordering::Relaxed) + 1,
        };
        Fence::of_term(self.leadership.clone(), number)
    }

    /// Whether this process holds the Lease, as a channel.
    pub fn leadership(&self) -> watch::Receiver<Leadership> {
        self.leadership.clone()
    }

    /// Waits until this process holds the Lease.
    pub async fn leading(&self) {
        let mut leadership = self.leadership.clone();
        let is_leading = |state: &Leadership| matches!(state, Leadership::Leading { until, .. } if Instant::now() < *until);
        // An error means that the keeper has ended, which only `release` causes.
        let _ = leadership.wait_for(is_leading).await;
    }

    /// When the Lease was last renewed before the present term, by the clock of its holder; `None` if it never was.
    pub fn last_renewed(&self) -> Option<Timestamp> {
        *self.last_renewed.lock()
    }

    /// Releases the Lease from another thread.
    pub fn releaser(&self) -> LeaseReleaser {
        LeaseReleaser { leadership: self.leadership.clone(), stop: self.stop.clone() }
    }

    /// Closes the fence and releases the Lease, so that the next holder need not wait.
    pub async fn release(self) {
        let _ = self.stop.send(Stop::Release);
        let _ = self.ended.await;
    }

    /// Stops without releasing the Lease, as a process that is killed does.
    pub fn abandon(self) {
        let _ = self.stop.send(Stop::Abandon);
    }
}

type IsGone = Box<dyn Fn(&str) -> bool + Send + Sync>;

/// A keeper with the channels that end it.
struct Running {
    keeper: Keeper,
    stopped: watch::Receiver<Stop>,
    done: oneshot::Sender<()>,
}

impl Running {
    async fn run(self) {
        self.keeper.run(self.stopped).await;
        let _ = self.done.send(());
    }
}

struct Keeper {
    client: ClusterClient,
    options: LeaseOptions,
    leadership: watch::Sender<Leadership>,
    /// How many terms have begun.
    terms: Arc<AtomicU64>,
    last_renewed: Arc<Mutex<Option<Timestamp>>>,
    /// The holder and time of the last renewal that was seen, and since when they are the same.
    seen: Option<(Renewal, Instant)>,
    /// True for a holder that is proven to have ended.
    is_gone: IsGone,
    faults: FaultLog,
}

/// What changes with every renewal: the holder, and the time by its clock. Another change of the Lease, such as a label,
/// is not a renewal.
type Renewal = (Option<String>, Option<String>);

/// The result of one check of the Lease.
enum LeaseCheck {
    /// Held by this process, as of the moment before the request was sent.
    Held {
        since: Instant,
        /// When the Lease was renewed before, by the clock of its holder.
        renewed_before: Option<Timestamp>,
    },
    /// Held by another process.
    Other { holder: Option<String> },
    /// Not known: another write came first.
    TooLate,
}

const TOO_LATE_PAUSE: Duration = Duration::from_millis(50);

impl Keeper {
    async fn run(mut self, mut stopped: watch::Receiver<Stop>) {
        let stop = loop {
            match self.check_in_time().await {
                Ok(LeaseCheck::Held { since, renewed_before }) => self.hold(since, renewed_before),
                Ok(LeaseCheck::Other { holder }) => {
                    self.over();
                    self.leadership.send_replace(Leadership::Waiting { holder });
                }
                // Another process wrote the Lease between the read and the write. The next check finds out
                // which.
                Ok(LeaseCheck::TooLate) => {
                    tokio::time::sleep(TOO_LATE_PAUSE).await;
                    fail_when_due(&self.leadership, "other processes write it at the same time");
                    continue;
                }
                Err(error) => self.failed(&error),
            }
            let pause = self.options.renew_every + jitter(self.options.renew_every / 10);
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                stop = stopped.wait_for(|stop| *stop != Stop::No) => {
                    break stop.map_or(Stop::Release, |stop| *stop);
                }
            }
        };
        if stop == Stop::Abandon {
            return;
        }
        let led = matches!(*self.leadership.borrow(), Leadership::Leading { .. });
        self.leadership.send_replace(Leadership::Released);
        if led && let Err(error) = self.give_back().await {
            tracing::debug!(%error, "cannot release the lease; it will expire");
        }
    }

    /// Checks the Lease, and publishes that it is lost if the deadline passes before there is an answer.
    async fn check_in_time(&mut self) -> Result<LeaseCheck, ApiError> {
        let leadership = self.leadership.clone();
        // A deadline that has passed already was missed by this process and not by the API server: it was stopped. The
        // check tells what happened meanwhile.
        let deadline = match *leadership.borrow() {
            Leadership::Leading { until, .. } if Instant::now() < until => Some(until),
            _ => None,
        };
        let check = self.check();
        tokio::pin!(check);
        if let Some(deadline) = deadline {
            tokio::select! {
                checked = &mut check => return checked,
                () = tokio::time::sleep_until(deadline) => {
                    fail_when_due(&leadership, "the API server did not answer in time");
                }
            }
        }
        check.await
    }

    /// The server confirmed that this process holds the Lease since then.
    fn hold(&mut self, since: Instant, renewed_before: Option<Timestamp>) {
        self.over();
        let until = since + self.options.renew_deadline;
        let (terms, last_renewed) = (&self.terms, &self.last_renewed);
        self.leadership.send_modify(|state| {
            let term = match state {
                Leadership::Leading { until, term } if Instant::now() < *until => *term,
                _ => {
                    // The fence was closed: other processes may have led and written in between.
                    *last_renewed.lock() = renewed_before;
                    terms.fetch_add(1, Ordering::Relaxed) + 1
                }
            };
            *state = Leadership::Leading { until, term };
        });
    }

    fn failed(&mut self, error: &ApiError) {
        let cause = error_chain(error);
        if let Some(times) = self.faults.fault(Instant::now().into_std()) {
            tracing::warn!(cause, times, lease = self.options.name, "cannot renew the lease; trying again");
        }
        fail_when_due(&self.leadership, &cause);
    }

    fn over(&mut self) {
        if let Some(times) = self.faults.over() {
            tracing::info!(times, lease = self.options.name, "the API server answers for the lease again");
        }
    }

    /// Takes the Lease if it is free, already held by this process, or expired; else remembers its state.
    async fn check(&mut self) -> Result<LeaseCheck, ApiError> {
        let before = Instant::now();
        let Some(lease) = self.fetch().await? else {
            let fresh = self.next(None);
            return Self::outcome(self.create(&fresh).await, before, None);
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
        let renewed_before = lease.spec.renew_time.as_deref().and_then(|time| time.parse().ok());
        let next = self.next(Some(lease));
        Self::outcome(self.replace(&next).await, before, renewed_before)
    }

    /// A conflict is not an error: another process wrote first.
    fn outcome(
        written: Result<(), ApiError>,
        before: Instant,
        renewed_before: Option<Timestamp>,
    ) -> Result<LeaseCheck, ApiError> {
        match written {
            Ok(()) => Ok(LeaseCheck::Held { since: before, renewed_before }),
            Err(error) if error.code() == Some(409) => Ok(LeaseCheck::TooLate),
            Err(error) => Err(error),
        }
    }

    /// True if the Lease has not been renewed for its whole duration, by the clock of this process. The holder's
    /// statements about times are not believed.
    fn is_expired(&mut self, lease: &Lease, now: Instant) -> bool {
        let renewal = (lease.spec.holder_identity.clone(), lease.spec.renew_time.clone());
        match &self.seen {
            Some((seen, since)) if *seen == renewal => {
                let seconds = lease.spec.lease_duration_seconds.and_then(|s| u64::try_from(s).ok());
                let stated = seconds.map_or(self.options.duration, Duration::from_secs);
                // Not shorter than plumb's own: the holder may write until its own deadline.
                let most = LONGEST_BELIEVED.max(self.options.duration);
                now.duration_since(*since) >= stated.clamp(self.options.duration, most)
            }
            Some(_) | None => {
                self.seen = Some((renewal, now));
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

/// The fence closes at its deadline; publish that, and why.
fn fail_when_due(leadership: &watch::Sender<Leadership>, cause: &str) {
    leadership.send_if_modified(|state| match state {
        Leadership::Leading { until, .. } if *until <= Instant::now() => {
            *state = Leadership::Failing { cause: cause.to_owned() };
            true
        }
        Leadership::Waiting { .. } => {
            *state = Leadership::Failing { cause: cause.to_owned() };
            true
        }
        Leadership::Failing { cause: known } if known != cause => {
            cause.clone_into(known);
            true
        }
        Leadership::Failing { .. } | Leadership::Leading { .. } | Leadership::Released => false,
    });
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
