//! Writes events down, beside everything else: gathered for a moment, equal ones counted instead of repeated,
//! and no more than a person could read.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use plumb_core::object::{Fingerprint, GroupVersionKind, Manifest};
use plumb_crd::Application;
use plumb_kube::{Gate, OwnWrite, Patch, PatchOptions, Target};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tracing::debug;

use super::event::{AppEvent, EventFilter, PendingEvent};
use crate::metrics::counters::Metrics;

/// Who writes, as Argo CD calls itself: scripts select on it.
const COMPONENT: &str = "argocd-application-controller";
/// Events that may wait; more are dropped, since nothing may wait for them.
const MOST_WAITING: usize = 1024;
/// Events of one moment come together; this is how long they are gathered.
const GATHER: Duration = Duration::from_millis(200);
/// The same event within this time is counted up instead of written anew.
const SAME_FOR: Duration = Duration::from_mins(10);
/// How many written events are remembered, to be counted up.
const MOST_REMEMBERED: usize = 4096;
/// Events that one app may have at once, and how long until it may have another.
const BURST: u32 = 25;
const REFILL: Duration = Duration::from_secs(30);
/// Kubernetes refuses longer messages.
const LONGEST_MESSAGE: usize = 1000;

/// Where runs leave what happened. Never waits.
#[derive(Clone, Debug)]
pub(crate) struct Outbox {
    sender: mpsc::Sender<PendingEvent>,
    filter: EventFilter,
    metrics: Arc<Metrics>,
}

impl Outbox {
    pub(crate) fn put(&self, notice: PendingEvent) {
        if !self.filter.passes(notice.happening.reason) {
            return;
        }
        if self.sender.try_send(notice).is_err() {
            self.metrics.events.increment(["dropped"]);
        }
    }
}

/// Writes until nobody can leave anything any more.
pub(crate) struct Writer {
    inbox: mpsc::Receiver<PendingEvent>,
    metrics: Arc<Metrics>,
    /// What two events have in common that are the same but for their time, in short.
    written: HashMap<Fingerprint, Written>,
    budgets: HashMap<String, Budget>,
}

#[derive(Clone, Copy, Debug)]
struct Written {
    /// When it was first written: its name follows from that.
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

    /// Takes one, if there is one.
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
    /// A place to leave events, and who writes them.
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
                // Nothing happened for long: nothing has to be remembered.
                Err(_) => {
                    self.tidy();
                    continue;
                }
            }
            tokio::time::sleep(GATHER).await;
            while let Ok(more) = self.inbox.try_recv() {
                batch.push(more);
            }
            for (notice, count) in merged(batch.into_iter()) {
                self.write(&gate, &notice, count).await;
            }
            self.tidy();
        }
    }

    async fn write(&mut self, gate: &Gate, notice: &PendingEvent, count: u32) {
        let now = Instant::now();
        let same = gist(notice);
        let earlier = self.written.get(&same).copied();
        let earlier = earlier.filter(|earlier| now.duration_since(earlier.at) < SAME_FOR);
        let budget = self.budgets.entry(notice.uid.clone()).or_insert_with(|| Budget::new(now));
        if !budget.take(now) {
            self.metrics.events.increment(["limited"]);
            return;
        }
        let time = Timestamp::now();
        let (write, written) = if let Some(earlier) = earlier {
            let count = earlier.count.saturating_add(count);
            let name = event_name(&notice.app.name, earlier.first);
            (recount(notice, &name, count, time), Written { count, at: now, ..earlier })
        } else {
            let name = event_name(&notice.app.name, time);
            let Some(write) = create(notice, &name, count, time) else { return };
            (write, Written { first: time, count, at: now })
        };
        match gate.write_own(&write).await {
            Ok(_) => {
                self.metrics.events.increment(["written"]);
                self.written.insert(same, written);
            }
            Err(error) => {
                // Somebody may have deleted it: the next one is a new one.
                self.written.remove(&same);
                self.metrics.events.increment(["failed"]);
                debug!(app = %notice.app, %error, "event not written");
            }
        }
    }

    /// Forgets what is not needed any more.
    fn tidy(&mut self) {
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

/// What an event says and of whom, in short.
fn gist(notice: &PendingEvent) -> Fingerprint {
    let AppEvent { reason, is_warning, message, user } = &notice.happening;
    Fingerprint::of_value(&json!([notice.uid, reason.name(), is_warning, message, user]))
}

/// Equal events become one with a count; the order of their first appearance stays.
fn merged(batch: impl Iterator<Item = PendingEvent>) -> Vec<(PendingEvent, u32)> {
    let mut merged: Vec<(PendingEvent, u32)> = Vec::new();
    for notice in batch {
        let same = merged
            .iter_mut()
            .find(|(known, _)| known.uid == notice.uid && known.happening == notice.happening);
        match same {
            Some((_, count)) => *count += 1,
            None => merged.push((notice, 1)),
        }
    }
    merged
}

/// `web.18a3f…`, as client-go names them.
fn event_name(app: &str, time: Timestamp) -> String {
    let app: String = app.chars().take(200).collect();
    format!("{app}.{:x}", time.as_nanosecond())
}

fn create(notice: &PendingEvent, name: &str, count: u32, time: Timestamp) -> Option<OwnWrite> {
    let time = plumb_crd::wire::whole_seconds(time).to_string();
    let happening = &notice.happening;
    let message: String = happening.message.chars().take(LONGEST_MESSAGE).collect();
    let labels: &BTreeMap<String, String> = &notice.labels;
    let manifest = Manifest::new(json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": name,
            "namespace": notice.app.namespace,
            "labels": labels,
            "annotations": notice.annotations,
        },
        "involvedObject": {
            "apiVersion": Application::API_VERSION,
            "kind": Application::KIND,
            "namespace": notice.app.namespace,
            "name": notice.app.name,
            "uid": notice.uid,
            "resourceVersion": notice.resource_version,
        },
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "type": if happening.is_warning { "Warning" } else { "Normal" },
        "reason": happening.reason.name(),
        "message": message,
        "firstTimestamp": time,
        "lastTimestamp": time,
        "count": count,
    }));
    Some(OwnWrite::Create { manifest: manifest.ok()?, field_manager: COMPONENT.to_owned() })
}

fn recount(notice: &PendingEvent, name: &str, count: u32, time: Timestamp) -> OwnWrite {
    OwnWrite::Patch {
        target: Target {
            gvk: GroupVersionKind::from_api_version("v1", "Event"),
            namespace: Some(notice.app.namespace.clone()),
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

    fn notice(uid: &str, message: &str) -> PendingEvent {
        PendingEvent {
            app: AppId { namespace: "argocd".to_owned(), name: "web".to_owned() },
            uid: uid.to_owned(),
            resource_version: "1".to_owned(),
            happening: AppEvent {
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
        let batch = [notice("u", "a"), notice("u", "b"), notice("u", "a"), notice("v", "a")];
        let counts: Vec<u32> = merged(batch.into_iter()).into_iter().map(|(_, count)| count).collect();
        assert_eq!(counts, [2, 1, 1]);
    }

    #[test]
    fn the_gist_tells_events_apart() {
        let mut asked = notice("u", "a");
        asked.happening.user = Some("ada".to_owned());
        let all = [notice("u", "a"), notice("u", "b"), notice("v", "a"), asked];
        for (at, one) in all.iter().enumerate() {
            for (other_at, other) in all.iter().enumerate() {
                assert_eq!(gist(one) == gist(other), at == other_at);
            }
        }
    }

    #[test]
    fn an_app_has_a_budget_that_fills_up_again() {
        let start = Instant::now();
        let mut budget = Budget::new(start);
        assert_eq!((0..100).filter(|_| budget.take(start)).count(), 25);
        assert!(!budget.take(start + REFILL / 2));
        assert!(budget.take(start + REFILL) && !budget.take(start + REFILL));
    }

    #[tokio::test]
    async fn a_full_outbox_drops_and_waits_for_nobody() {
        let metrics = Arc::<Metrics>::default();
        let (outbox, _writer) = Writer::new(EventFilter::All, &metrics);
        for n in 0..2000 {
            outbox.put(notice("u", &n.to_string()));
        }
        let dropped = metrics.events.family().samples.iter().map(|sample| sample.value).sum::<f64>();
        assert!((dropped - 976.0).abs() < f64::EPSILON, "{dropped}");
    }
}
