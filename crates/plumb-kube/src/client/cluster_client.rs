//! Sends requests to one cluster. Functions that send writes are private to the crate: [`Gate`](crate::Gate)
//! is the public way to write.

use std::fmt;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Response, header};
use http_body_util::Full;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tower::ServiceExt;

use super::answer::{Answer, broken, collect, refused};
use super::call::Call;
use crate::backoff::jitter;
use crate::catalog::{Catalog, DiscoveryCache, Resource};
use crate::error::ApiError;
use crate::limit::{Limiter, Outcome, SLOW_AFTER, Slot};
use crate::request_log::{RequestObserver, RequestRecord};
use crate::transport::{AnswerBody, Transport};

/// How often a throttled request (429) is sent.
const THROTTLED_ATTEMPTS: u32 = 6;
/// Upper limit for `Retry-After`, so that a wrong header cannot stop plumb for a day.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// Upper limit for one answer; a page of a list is far smaller.
const ANSWER_LIMIT: usize = 128 * 1024 * 1024;

/// The client of one cluster. Cheap to clone; all clones share connections, limit and catalog.
#[derive(Clone)]
pub struct ClusterClient {
    shared: Arc<Shared>,
    impersonation: Option<Arc<Impersonation>>,
}

struct Shared {
    transport: Transport,
    server: String,
    limiter: Limiter,
    catalog: watch::Sender<Arc<Catalog>>,
    discovery: DiscoveryCache,
    observer: OnceLock<RequestObserver>,
    /// Notified when the server answers again, so that watches in backoff retry at once.
    came_back: Notify,
}

/// The user whose permissions a request uses instead of plumb's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Impersonation {
    /// User name, such as `system:serviceaccount:argocd:deployer`.
    pub user: String,
    /// Groups of that user.
    pub groups: Vec<String>,
}

impl fmt::Debug for ClusterClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterClient")
            .field("server", &self.shared.server)
            .field("impersonation", &self.impersonation)
            .finish_non_exhaustive()
    }
}

impl ClusterClient {
    /// A client over a transport; tests pass a scripted one.
    pub fn over(transport: Transport, server: String) -> Self {
        let (catalog, _) = watch::channel(Arc::new(Catalog::default()));
        let shared = Shared {
            transport,
            server,
            limiter: Limiter::new(),
            catalog,
            discovery: DiscoveryCache::default(),
            observer: OnceLock::new(),
            came_back: Notify::new(),
        };
        Self { shared: Arc::new(shared), impersonation: None }
    }

    /// The API server's address.
    pub fn server(&self) -> &str {
        &self.shared.server
    }

    /// Calls `observer` for every request from now on, whichever clone sends it. Only the first observer is
    /// kept.
    pub fn observe_requests(&self, observer: RequestObserver) {
        let _ = self.shared.observer.set(observer);
    }

    /// The same client with the permissions of another user.
    #[must_use]
    pub fn impersonating(&self, impersonation: Impersonation) -> Self {
        Self { shared: Arc::clone(&self.shared), impersonation: Some(Arc::new(impersonation)) }
    }

    /// The user whose permissions requests use, if not plumb's own.
    pub fn impersonated(&self) -> Option<&Impersonation> {
        self.impersonation.as_deref()
    }

    /// The kinds that the cluster served at the last [`discover`](Self::discover).
    pub fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.shared.catalog.borrow())
    }

    /// Changes whenever the catalog does: a kind appears or disappears, a schema changes.
    pub fn catalog_changes(&self) -> watch::Receiver<Arc<Catalog>> {
        self.shared.catalog.subscribe()
    }

    /// How many requests may be in flight now.
    pub fn concurrency(&self) -> usize {
        self.shared.limiter.limit()
    }

    /// Adds these kinds to the catalog without discovery, for a command that makes one request and knows
    /// which. A request for a kind that is not served answers `404`.
    pub fn assume_kinds(&self, kinds: &[Resource]) {
        self.publish_catalog(|present| {
            let mut catalog = present.clone();
            for kind in kinds {
                catalog.assume(kind);
            }
            catalog
        });
    }

    /// Makes watches that wait in backoff retry now.
    pub fn retry_watches(&self) {
        self.shared.came_back.notify_waiters();
    }

    /// Waits in backoff, or until [`retry_watches`](Self::retry_watches) is called.
    pub(crate) async fn rest(&self, wait: Duration) {
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = self.shared.came_back.notified() => {}
        }
    }

    pub(crate) fn publish_catalog(&self, next: impl FnOnce(&Catalog) -> Catalog) -> Arc<Catalog> {
        self.shared.catalog.send_if_modified(|present| {
            let next = next(present);
            let changed = next != **present;
            if changed {
                *present = Arc::new(next);
            }
            changed
        });
        self.catalog()
    }

    pub(crate) fn discovery(&self) -> &DiscoveryCache {
        &self.shared.discovery
    }

    /// Sends a request and reads its answer. A throttled request (429) is sent again after the time that the
    /// server names; other errors are returned.
    pub(crate) async fn call(&self, call: Call) -> Result<Answer, ApiError> {
        let mut attempt = 0;
        loop {
            attempt += 1;
            let (result, wait) = self.attempt(&call).await;
            match (result, wait) {
                (Err(error), Some(wait)) if attempt < THROTTLED_ATTEMPTS => {
                    tracing::debug!(%error, ?wait, "the API server throttles requests");
                    tokio::time::sleep(wait + jitter(wait / 4)).await;
                }
                (result, _) => return result,
            }
        }
    }

    /// One attempt, and how long to wait before the next one if the server throttled it.
    async fn attempt(&self, call: &Call) -> (Result<Answer, ApiError>, Option<Duration>) {
        let place = RequestRecord::place(&call.method, &call.path);
        let mut slot = if call.urgent { None } else { Some(self.shared.limiter.slot(place).await) };
        let started = Instant::now();
        let result = self.answer_in_time(call, slot.as_mut()).await;
        let throttled = match &result {
            Err(ApiError::Refused { status, .. }) if status.code == 429 => {
                let wait = status.retry_after.unwrap_or(Duration::from_secs(1)).min(LONGEST_WAIT);
                Some(wait)
            }
            Ok(_) | Err(_) => None,
        };
        let code = match &result {
            Ok(answer) => Some(answer.code),
            Err(error) => error.code(),
        };
        let record = RequestRecord::of(&call.method, &call.path, &call.query, code, started.elapsed());
        let outcome = match (&result, throttled) {
            (_, Some(wait)) => Outcome::Overloaded { wait: Some(wait) },
            (Err(ApiError::TimedOut { .. }), None) => Outcome::Lost,
            (Err(error), None) if error.is_unavailable() => Outcome::Overloaded { wait: None },
            (Err(_), None) => Outcome::Refused { after: record.took },
            (Ok(_), None) => Outcome::Done { sort: record.sort(), after: record.took },
        };
        if let Some(slot) = slot {
            slot.done(outcome);
        }
        if let Some(observer) = self.shared.observer.get() {
            observer(&record);
        }
        (result, throttled)
    }

    /// The answer, within the time that the call has. A request that takes long leaves its slot to others.
    async fn answer_in_time(&self, call: &Call, slot: Option<&mut Slot<'_>>) -> Result<Answer, ApiError> {
        let mut answer = pin!(tokio::time::timeout(call.timeout, self.exchange(call)));
        let result = if let Ok(result) = tokio::time::timeout(SLOW_AFTER, &mut answer).await {
            result
        } else {
            if let Some(slot) = slot {
                slot.turn_slow();
            }
            answer.await
        };
        result.unwrap_or_else(|_| Err(ApiError::TimedOut { request: call.name(), after: call.timeout }))
    }

    async fn exchange(&self, call: &Call) -> Result<Answer, ApiError> {
        let request = self.request(call)?;
        let answer = self
            .shared
            .transport
            .requests
            .clone()
            .oneshot(request)
            .await
            .map_err(|source| ApiError::Unreachable { request: call.name(), source })?;
        let (parts, body) = answer.into_parts();
        let body = collect(body, ANSWER_LIMIT).await.map_err(|source| broken(&call.name(), source))?;
        if parts.status.is_success() || parts.status == http::StatusCode::NOT_MODIFIED {
            return Ok(Answer { code: parts.status.as_u16(), headers: parts.headers, body });
        }
        Err(refused(call.name(), parts.status.as_u16(), &parts.headers, &body))
    }

    /// Opens a streaming answer: a watch, or the log of a running container. It takes no slot of the limiter.
    pub(crate) async fn open(&self, call: &Call) -> Result<AnswerBody, ApiError> {
        const REFUSAL_LIMIT: usize = 1024 * 1024;
        let request = self.request(call)?;
        let opened = self.shared.transport.watches.clone().oneshot(request);
        let answer: Response<AnswerBody> = match tokio::time::timeout(call.timeout, opened).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(source)) => return Err(ApiError::Unreachable { request: call.name(), source }),
            Err(_) => return Err(ApiError::TimedOut { request: call.name(), after: call.timeout }),
        };
        let (parts, body) = answer.into_parts();
        if parts.status.is_success() {
            return Ok(body);
        }
        let body = collect(body, REFUSAL_LIMIT).await;
        Err(refused(call.name(), parts.status.as_u16(), &parts.headers, &body.unwrap_or_default()))
    }

    fn request(&self, call: &Call) -> Result<Request<Full<Bytes>>, ApiError> {
        let malformed = |why| ApiError::Malformed { what: call.name(), why };
        let mut request = Request::builder()
            .method(call.method.clone())
            .uri(call.uri())
            .body(Full::new(call.body.clone()))
            .map_err(|_| malformed("its path is not a valid URI"))?;
        *request.headers_mut() = call.headers.clone();
        request.headers_mut().insert(header::USER_AGENT, HeaderValue::from_static(USER_AGENT));
        if let Some(impersonation) = &self.impersonation {
            let value = |text: &str| {
                HeaderValue::from_str(text)
                    .map_err(|_| malformed("the user or group to impersonate is not a valid header"))
            };
            let headers = request.headers_mut();
            headers.insert(HeaderName::from_static("impersonate-user"), value(&impersonation.user)?);
            for group in &impersonation.groups {
                headers.append(HeaderName::from_static("impersonate-group"), value(group)?);
            }
        }
        Ok(request)
    }
}

const USER_AGENT: &str = concat!("plumb/", env!("CARGO_PKG_VERSION"));
