//! What events and logs say about an object that is not well.
//!
//! They are read from the server only when an object is newly in trouble, once for each trouble, beside the run: a
//! kubelet that does not answer delays nobody. When the words are there, the app is looked at again.

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
use tokio::sync::Semaphore;
use tracing::debug;

use crate::queue::{Queue, Trigger, TriggerReason};

const TIMEOUT: Duration = Duration::from_secs(10);
/// The same trouble is heard anew after this, if something wakes the app anyway.
const OLD: Duration = Duration::from_hours(1);
const MOST_KEPT: usize = 2000;
const AT_ONCE: usize = 4;
const LOG_LINES: u32 = 5;
const LOG_BYTES: u32 = 16 << 10;
const MOST_CONTAINERS: usize = 3;
const MOST_EVENTS: usize = 20;

/// Events and the last lines of logs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Words {
    pub(crate) events: Vec<Event>,
    pub(crate) logs: Vec<LogTail>,
}

/// What was heard, by uid of the object. Cheap to clone; all clones are one.
#[derive(Clone)]
pub(crate) struct Diagnostics(Arc<Inner>);

struct Inner {
    queue: Queue,
    permits: Semaphore,
    heard: Mutex<HashMap<String, Heard>>,
}

struct Heard {
    essence: String,
    at: Instant,
    words: Option<Words>,
}

impl Diagnostics {
    pub(crate) fn new(queue: Queue) -> Self {
        let heard = Mutex::default();
        Self(Arc::new(Inner { queue, permits: Semaphore::new(AT_ONCE), heard }))
    }

    /// What is known about an object in this trouble. What is not known is asked for; the app is looked at again when
    /// it is there.
    pub(crate) fn about(
        &self,
        client: &ClusterClient,
        app: &AppId,
        object: &Arc<Manifest>,
        essence: &str,
    ) -> Option<Words> {
        let uid = object.uid()?.to_owned();
        let mut heard = self.lock();
        let known = heard.get(&uid);
        if let Some(known) = known.filter(|known| known.essence == essence && known.at.elapsed() < OLD) {
            return known.words.clone();
        }
        let words = known.and_then(|known| known.words.clone());
        if heard.len() >= MOST_KEPT {
            heard.retain(|_, known| known.at.elapsed() < OLD);
            if heard.len() >= MOST_KEPT {
                return words;
            }
        }
        let asked = Heard { essence: essence.to_owned(), at: Instant::now(), words: words.clone() };
        heard.insert(uid.clone(), asked);
        drop(heard);
        let (this, client, app, object) = (self.clone(), client.clone(), app.clone(), Arc::clone(object));
        tokio::spawn(async move {
            let Ok(_permit) = this.0.permits.acquire().await else { return };
            let words = listen(&client, &object).await;
            let is_news = {
                let mut heard = this.lock();
                let Some(known) = heard.get_mut(&uid) else { return };
                let is_news = known.words.as_ref() != Some(&words);
                known.words = Some(words);
                is_news
            };
            if is_news {
                this.0.queue.push(app, Trigger::live(TriggerReason::Diagnostics));
            }
        });
        words
    }

    fn lock(&self) -> parking_lot::MutexGuard<'_, HashMap<String, Heard>> {
        self.0.heard.lock()
    }
}

async fn listen(client: &ClusterClient, object: &Manifest) -> Words {
    let (Some(uid), Some(name)) = (object.uid(), object.name()) else { return Words::default() };
    let mut words = Words::default();
    match tokio::time::timeout(TIMEOUT, client.events_of(uid, object.namespace())).await {
        Ok(Ok(events)) => {
            let first = events.len().saturating_sub(MOST_EVENTS);
            words.events = events[first..].iter().map(event).collect();
        }
        Ok(Err(error)) => debug!(name, %error, "events not read"),
        Err(_) => debug!(name, "events not read in time"),
    }
    let Some(namespace) = object.namespace() else { return words };
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
                words.logs.push(LogTail { container, lines });
            }
            Ok(Err(error)) => debug!(name, %error, "log not read"),
            Err(_) => debug!(name, "log not read in time"),
        }
    }
    words
}

/// The containers of a pod that ended or do not get ready, and whether the run before the present one is meant.
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
    crashed.take(MOST_CONTAINERS).collect()
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
