//! Writes events in a task of its own. It collects events for a moment, counts equal ones instead of
//! repeating them, and limits the number of events of an app.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use plumb_core::object::{Fingerprint, GroupVersionKind, Manifest};
use plumb_core::text::{one_line, without_logins};
use plumb_crd::{Application, ApplicationSet};
use plumb_kube::{Gate, OwnWrite, Patch, PatchOptions, Target};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tracing::debug;

use super::event::{AppEvent, EventFilter, Involved, PendingEvent};
use crate::metrics::counters::Metrics;

/// The component in events. It is Argo CD's name, because scripts select on it.
const COMPONENT: &str = "argocd-application-controller";
/// The component in events of sets.
const SET_COMPONENT: &str = "applicationset-controller";
/// How many events may wait to be written. Further events are dropped, so that no run waits.
const MOST_WAITING: usize = 1024;
/// How long events are collected before they are written. Related events arrive together.
const GATHER: Duration = Duration::from_millis(200);
/// Within this time, a repeated event increases the count of the first one.
const SAME_FOR: Duration = Duration::from_mins(10);
/// How many written events are remembered, to increase their count later.
const MOST_REMEMBERED: usize = 4096;
/// How many events an app may have at once, and the time after which it may have one more.
const BURST: u32 = 25;
const REFILL: Duration = Duration::from_secs(30);
/// The API server rejects longer messages.
const LONGEST_MESSAGE: usize = 1000;

/// The sending side of the event queue. Sending never waits.
#[derive(Clone, Debug)]
pub(crate) struct Outbox {
    sender: mpsc::Sender<PendingEvent>,
    filter: EventFilter,
    metrics: Arc<Metrics>,
}

impl Outbox {
    pub(crate) fn put(&self, pending: PendingEvent) {
        if !self.filter.passes(pending.event.reason) {
            return;
        }
        if self.sender.try_send(pending).is_err() {
            self.metrics.events.increment(["dropped"]);
        }
    }
}

/// Writes events until all outboxes are dropped.
pub(crate) struct Writer {
    inbox: mpsc::Receiver<PendingEvent>,
    metrics: Arc<Metrics>,
    /// Written events by their identity.
    written: HashMap<Fingerprint, Written>,
    budgets: HashMap<String, Budget>,
}

#[derive(Clone, Copy, Debug)]
struct Written {
    /// When it was first written. The name of the event contains this time.
    first: Timestamp,
    count: u32,
    at: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Budget {
    left: u32,
    since: Instant,
}

impl Budget {
    fn new(now: Instant) -> Self {
        Self { left: BURST, since: now }
    }

    /// Uses one event of the budget. Returns false if none is left.
    fn take(&mut self, now: Instant) -> bool {
        let earned = now.duration_since(self.since).as_secs() / REFILL.as_secs();
        if earned > 0 {
            self.left = self.left.saturating_add(u32::try_from(earned).unwrap_or(BURST)).min(BURST);
            self.since = now;
        }
        let has = self.left > 0;
        self.left = self.left.saturating_sub(1);
        has
    }

    fn is_full(&self, now: Instant) -> bool {
        now.duration_since(self.since) > REFILL * BURST
    }
}

impl Writer {
    /// An outbox for events, and the writer that reads from it.
    pub(crate) fn new(filter: EventFilter, metrics: &Arc<Metrics>) -> (Outbox, Self) {
        let (sender, inbox) = mpsc::channel(MOST_WAITING);
        let outbox = Outbox { sender, filter, metrics: Arc::clone(metrics) };
        let writer =
            Self { inbox, metrics: Arc::clone(metrics), written: HashMap::new(), budgets: HashMap::new() };
        (outbox, writer)
    }

    pub(crate) async fn run(mut self, gate: Gate) {
        loop {
            let mut batch = Vec::new();
            match tokio::time::timeout(SAME_FOR, self.inbox.recv_many(&mut batch, MOST_WAITING)).await {
                Ok(0) => return,
                Ok(_) => {}
                // No event arrived for a long time.
                Err(_) => {
                    self.forget_expired();
                    continue;
                }
            }
            tokio::time::sleep(GATHER).await;
            while let Ok(more) = self.inbox.try_recv() {
                batch.push(more);
            }
            for (pending, count) in merged(batch.into_iter()) {
                self.write(&gate, &pending, count).await;
            }
            self.forget_expired();
        }
    }

    async fn write(&mut self, gate: &Gate, pending: &PendingEvent, count: u32) {
        let now = Instant::now();
        let identity = identity_of(pending);
        let earlier = self.written.get(&identity).copied();
        let earlier = earlier.filter(|earlier| now.duration_since(earlier.at) < SAME_FOR);
        let budget = self.budgets.entry(pending.uid.clone()).or_insert_with(|| Budget::new(now));
        if !budget.take(now) {
            self.metrics.events.increment(["limited"]);
            return;
        }
        let time = Timestamp::now();
        let (write, written) = if let Some(earlier) = earlier {
            let count = earlier.count.saturating_add(count);
            let name = event_name(&pending.app.name, earlier.first);
            (update_count(pending, &name, count, time), Written { count, at: now, ..earlier })
        } else {
            let name = event_name(&pending.app.name, time);
            let Some(write) = create(pending, &name, count, time) else { return };
            (write, Written { first: time, count, at: now })
        };
        match gate.write_own(&write).await {
            Ok(_) => {
                self.metrics.events.increment(["written"]);
                self.written.insert(identity, written);
            }
            Err(error) => {
                // The event may have been deleted, so the next one is created.
                self.written.remove(&identity);
                self.metrics.events.increment(["failed"]);
                debug!(app = %pending.app, %error, "cannot write event");
            }
        }
    }

    /// Drops expired events and full budgets.
    fn forget_expired(&mut self) {
        let now = Instant::now();
        self.written.retain(|_, written| now.duration_since(written.at) < SAME_FOR);
        if self.written.len() > MOST_REMEMBERED {
            self.written.clear();
        }
        self.budgets.retain(|_, budget| !budget.is_full(now));
        self.written.shrink_to_fit();
        self.budgets.shrink_to_fit();
    }
}

/// Equal for two events that differ only in their time.
fn identity_of(pending: &PendingEvent) -> Fingerprint {
    let AppEvent { reason, is_warning, message, user } = &pending.event;
    Fingerprint::of_value(&json!([pending.uid, reason.name(), is_warning, message, user]))
}

/// Merges equal events into one with a count. The order of their first appearance stays.
fn merged(batch: impl Iterator<Item = PendingEvent>) -> Vec<(PendingEvent, u32)> {
    let mut merged: Vec<(PendingEvent, u32)> = Vec::new();
    for pending in batch {
        let same =
            merged.iter_mut().find(|(other, _)| other.uid == pending.uid && other.event == pending.event);
        match same {
            Some((_, count)) => *count += 1,
            None => merged.push((pending, 1)),
        }
    }
    merged
}

/// `web.18a3f…`, as client-go names them.
fn event_name(app: &str, time: Timestamp) -> String {
    let app: String = app.chars().take(200).collect();
    format!("{app}.{:x}", time.as_nanosecond())
}

fn create(pending: &PendingEvent, name: &str, count: u32, time: Timestamp) -> Option<OwnWrite> {
    let time = plumb_crd::wire::whole_seconds(time).to_string();
    let event = &pending.event;
    let message = one_line(&without_logins(&event.message)).chars().take(LONGEST_MESSAGE).collect::<String>();
    let labels: &BTreeMap<String, String> = &pending.labels;
    let (kind, component) = match pending.involved {
        Involved::Application => (Application::KIND, COMPONENT),
        Involved::ApplicationSet => (ApplicationSet::KIND, SET_COMPONENT),
    };
    let manifest = Manifest::new(json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": name,
            "namespace": pending.app.namespace,
            "labels": labels,
            "annotations": pending.annotations,
        },
        "involvedObject": {
            "apiVersion": Application::API_VERSION,
            "kind": kind,
            "namespace": pending.app.namespace,
            "name": pending.app.name,
            "uid": pending.uid,
            "resourceVersion": pending.resource_version,
        },
        "source": {"component": component},
        "reportingComponent": component,
        "type": if event.is_warning { "Warning" } else { "Normal" },
        "reason": event.reason.name(),
        "message": message,
        "firstTimestamp": time,
        "lastTimestamp": time,
        "count": count,
    }));
    Some(OwnWrite::Create { manifest: manifest.ok()?, field_manager: COMPONENT.to_owned() })
}

fn update_count(pending: &PendingEvent, name: &str, count: u32, time: Timestamp) -> OwnWrite {
    OwnWrite::Patch {
        target: Target {
            gvk: GroupVersionKind::from_api_version("v1", "Event"),
            namespace: Some(pending.app.namespace.clone()),
            name: name.to_owned(),
        },
        patch: Patch::Merge(
            json!({"count": count, "lastTimestamp": plumb_crd::wire::whole_seconds(time).to_string()}),
        ),
        options: PatchOptions { field_manager: Some(COMPONENT.to_owned()), subresource: None },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::event::Reason;
    use plumb_core::app::AppId;

    fn pending(uid: &str, message: &str) -> PendingEvent {
        PendingEvent {
            involved: Involved::Application,
            app: AppId { namespace: "argocd".to_owned(), name: "web".to_owned() },
            uid: uid.to_owned(),
            resource_version: "1".to_owned(),
            event: AppEvent {
                reason: Reason::ResourceUpdated,
                is_warning: false,
                message: message.to_owned(),
                user: None,
            },
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
        }
    }

    #[test]
    fn equal_events_are_counted() {
        let batch = [pending("u", "a"), pending("u", "b"), pending("u", "a"), pending("v", "a")];
        let counts: Vec<u32> = merged(batch.into_iter()).into_iter().map(|(_, count)| count).collect();
        assert_eq!(counts, [2, 1, 1]);
    }

    #[test]
    fn different_events_have_different_identities() {
        let mut by_user = pending("u", "a");
        by_user.event.user = Some("ada".to_owned());
        let all = [pending("u", "a"), pending("u", "b"), pending("v", "a"), by_user];
        for (at, one) in all.iter().enumerate() {
            for (other_at, other) in all.iter().enumerate() {
                assert_eq!(identity_of(one) == identity_of(other), at == other_at);
            }
        }
    }

    #[test]
    fn the_budget_of_an_app_refills() {
        let start = Instant::now();
        let mut budget = Budget::new(start);
        assert_eq!((0..100).filter(|_| budget.take(start)).count(), 25);
        assert!(!budget.take(start + REFILL / 2));
        assert!(budget.take(start + REFILL) && !budget.take(start + REFILL));
    }

    #[tokio::test]
    async fn a_full_outbox_drops_events_without_waiting() {
        let metrics = Arc::<Metrics>::default();
        let (outbox, _writer) = Writer::new(EventFilter::All, &metrics);
        for n in 0..2000 {
            outbox.put(pending("u", &n.to_string()));
        }
        let dropped = metrics.events.family().samples.iter().map(|sample| sample.value).sum::<f64>();
        assert!((dropped - 976.0).abs() < f64::EPSILON, "{dropped}");
    }
}
