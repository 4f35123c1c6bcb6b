//! Events and logs of an unhealthy object.
//!
//! They are read from the API server once for each new problem. A background task reads them, so that a kubelet that
//! does not answer delays no run. When they have arrived, the app is reconciled again.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use parking_lot::Mutex;
use plumb_core::app::AppId;
use plumb_core::health::{Event, LogTail};
use plumb_core::object::Manifest;
use plumb_kube::{ClusterClient, LogOptions};
use serde_json::Value;
use tokio::sync::{Semaphore, watch};
use tracing::debug;

use crate::queue::{Queue, Trigger, TriggerReason};

const TIMEOUT: Duration = Duration::from_secs(10);
/// After this, the next run of the app reads events and logs again, even if the problem is the same.
const MAX_AGE: Duration = Duration::from_hours(1);
const MAX_ENTRIES: usize = 2000;
const MAX_CONCURRENT: usize = 4;
const LOG_LINES: u32 = 5;
const LOG_BYTES: u32 = 16 << 10;
const MAX_CONTAINERS: usize = 3;
const MAX_EVENTS: usize = 20;

/// Events of an object and the last lines of its logs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EventsAndLogs {
    pub(crate) events: Vec<Event>,
    pub(super) logs: Vec<LogTail>,
}

/// The clients that read events and logs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Readers<'a> {
    /// `None` if events are not read.
    pub(super) events: Option<&'a ClusterClient>,
    /// `None` if logs are not quoted.
    pub(super) logs: Option<&'a ClusterClient>,
}

/// Events and logs by uid of the object. Cheap to clone; all clones share the same data.
#[derive(Clone)]
pub(crate) struct Diagnostics(Arc<Inner>);

struct Inner {
    queue: Queue,
    /// A command that reads many objects reads no events: that would be one list for each of them.
    reads_events: bool,
    permits: Semaphore,
    /// How many objects are being read about.
    under_way: watch::Sender<usize>,
    entries: Mutex<HashMap<String, DiagnosticsEntry>>,
}

struct DiagnosticsEntry {
    essence: String,
    at: Instant,
    found: Option<EventsAndLogs>,
}

impl Diagnostics {
    pub(crate) fn new(queue: Queue) -> Self {
        Self::reading(queue, true)
    }

    /// For one look at many objects: only logs are read.
    pub(crate) fn of_logs() -> Self {
        Self::reading(Queue::default(), false)
    }

    fn reading(queue: Queue, reads_events: bool) -> Self {
        let (entries, permits) = (Mutex::default(), Semaphore::new(MAX_CONCURRENT));
        Self(Arc::new(Inner { queue, reads_events, permits, under_way: watch::Sender::new(0), entries }))
    }

    /// Waits until everything that was asked for is there, but not longer than this.
    pub(crate) async fn settled_within(&self, time: Duration) {
        let mut under_way = self.0.under_way.subscribe();
        // The sender lives as long as `self`. What is missing then is left out.
        let _ = tokio::time::timeout(time, under_way.wait_for(|n_objects| *n_objects == 0)).await;
    }

    /// The events and logs of an object with this problem. If they were not read yet, a background task reads them and
    /// requests a run of the app; until then, those of the previous problem are returned.
    pub(super) fn about(
        &self,
        readers: Readers<'_>,
        app: &AppId,
        object: &Arc<Manifest>,
        essence: &str,
    ) -> Option<EventsAndLogs> {
        let mut found = self.known_about(readers, app, object, essence);
        if let (Some(found), None) = (&mut found, readers.logs) {
            // Read before the settings said otherwise.
            found.logs.clear();
        }
        found
    }

    fn known_about(
        &self,
        readers: Readers<'_>,
        app: &AppId,
        object: &Arc<Manifest>,
        essence: &str,
    ) -> Option<EventsAndLogs> {
        let uid = object.uid()?.to_owned();
        let mut entries = self.lock();
        let entry = entries.get(&uid);
        if let Some(entry) = entry.filter(|entry| entry.essence == essence && entry.at.elapsed() < MAX_AGE) {
            return entry.found.clone();
        }
        let previous = entry.and_then(|entry| entry.found.clone());
        if entries.len() >= MAX_ENTRIES {
            entries.retain(|_, entry| entry.at.elapsed() < MAX_AGE);
            if entries.len() >= MAX_ENTRIES {
                return previous;
            }
        }
        let pending =
            DiagnosticsEntry { essence: essence.to_owned(), at: Instant::now(), found: previous.clone() };
        entries.insert(uid.clone(), pending);
        drop(entries);
        let (this, app, object) = (self.clone(), app.clone(), Arc::clone(object));
        let events = readers.events.filter(|_| self.0.reads_events).cloned();
        let logs = readers.logs.cloned();
        let under_way = UnderWay::begin(self);
        tokio::spawn(async move {
            let _under_way = under_way;
            let Ok(_permit) = this.0.permits.acquire().await else { return };
            let readers = Readers { events: events.as_ref(), logs: logs.as_ref() };
            let found = read_events_and_logs(readers, &object).await;
            let is_new = {
                let mut entries = this.lock();
                let Some(entry) = entries.get_mut(&uid) else { return };
                let is_new = entry.found.as_ref() != Some(&found);
                entry.found = Some(found);
                is_new
            };
            if is_new {
                this.0.queue.push(app, Trigger::live(TriggerReason::Diagnostics));
            }
        });
        previous
    }

    fn lock(&self) -> parking_lot::MutexGuard<'_, HashMap<String, DiagnosticsEntry>> {
        self.0.entries.lock()
    }
}

/// Counts one object that is being read about, until it is dropped.
struct UnderWay(Diagnostics);

impl UnderWay {
    fn begin(diagnostics: &Diagnostics) -> Self {
        diagnostics.0.under_way.send_modify(|n_objects| *n_objects += 1);
        Self(diagnostics.clone())
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.0.under_way.send_modify(|n_objects| *n_objects = n_objects.saturating_sub(1));
    }
}

async fn read_events_and_logs(readers: Readers<'_>, object: &Manifest) -> EventsAndLogs {
    let (Some(uid), Some(name)) = (object.uid(), object.name()) else { return EventsAndLogs::default() };
    let mut found = EventsAndLogs::default();
    if let Some(client) = readers.events {
        match tokio::time::timeout(TIMEOUT, client.events_of(uid, object.namespace())).await {
            Ok(Ok(events)) => {
                let first = events.len().saturating_sub(MAX_EVENTS);
                found.events = events[first..].iter().map(event).collect();
            }
            Ok(Err(error)) => debug!(name, %error, "cannot read events"),
            Err(_) => debug!(name, "timed out reading events"),
        }
    }
    let (Some(namespace), Some(client)) = (object.namespace(), readers.logs) else { return found };
    for (container, previous) in crashed(object) {
        let options = LogOptions {
            container: Some(container.clone()),
            tail_lines: Some(LOG_LINES),
            limit_bytes: Some(LOG_BYTES),
            previous,
            ..LogOptions::default()
        };
        match tokio::time::timeout(TIMEOUT, client.logs(namespace, name, &options)).await {
            Ok(Ok(text)) => {
                let lines: Vec<String> =
                    text.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect();
                found.logs.push(LogTail { container, lines });
            }
            Ok(Err(error)) => debug!(name, %error, "cannot read the log"),
            Err(_) => debug!(name, "timed out reading the log"),
        }
    }
    found
}

/// The containers of a pod that failed or are not ready. True: the log of the previous run is of interest.
fn crashed(pod: &Manifest) -> Vec<(String, bool)> {
    if !(pod.group().is_empty() && pod.kind() == "Pod") {
        return Vec::new();
    }
    let statuses = ["initContainerStatuses", "containerStatuses"]
        .into_iter()
        .filter_map(|list| pod.value().get("status")?.get(list)?.as_array())
        .flatten();
    let crashed = statuses.filter_map(|status| {
        let name = status.get("name")?.as_str()?.to_owned();
        let code = |path: &str| status.pointer(path).and_then(Value::as_i64);
        let is_ready = status.get("ready") == Some(&Value::Bool(true));
        let ended_before = status.pointer("/lastState/terminated").is_some();
        if code("/state/terminated/exitCode").is_some_and(|code| code != 0) {
            return Some((name, false));
        }
        if ended_before && !is_ready {
            return Some((name, true));
        }
        (status.pointer("/state/running").is_some() && !is_ready).then_some((name, false))
    });
    crashed.take(MAX_CONTAINERS).collect()
}

fn event(event: &Manifest) -> Event {
    let value = event.value();
    let text = |field: &str| value.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let count = value.get("count").or_else(|| value.pointer("/series/count")).and_then(Value::as_u64);
    let time = |field: &str| value.get(field).and_then(Value::as_str)?.parse::<Timestamp>().ok();
    Event {
        is_warning: value.get("type").and_then(Value::as_str) == Some("Warning"),
        reason: text("reason"),
        message: text("message"),
        count: count.and_then(|count| u32::try_from(count).ok()).unwrap_or(1),
        first: time("firstTimestamp").or_else(|| time("eventTime")),
    }
}
