//! Keeps the view of all apps up to date while pages are open.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use parking_lot::{Mutex, RwLock, RwLockReadGuard};
use plumb_api::Status;
use plumb_core::app::{AppId, ClusterRef};
use plumb_core::object::GroupVersionKind;
use plumb_crd::{Application, DriftReport};
use plumb_engine::{KnownApp, Leader};
use plumb_kube::{ObjectEvent, Resource, Selection};
use plumb_page::View;
use serde_json::{Value, json};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch;
use tracing::warn;

use crate::call::Shared;
use crate::random;

/// How long the first lists may take.
const LISTED_WITHIN: Duration = Duration::from_secs(10);
/// The view is dropped when no page has asked for so long.
const UNUSED: Duration = Duration::from_mins(10);
/// A watch that fails is tried again more often than this. One that says nothing for longer works again.
const TROUBLE_LASTS: Duration = Duration::from_mins(3);
/// How often that is checked.
const CHECK: Duration = Duration::from_mins(1);

/// The view, and whoever waits for its changes.
pub(super) struct PageFeed {
    shared: Arc<Shared>,
    view: RwLock<View>,
    /// Changes with every change of the view.
    changed: watch::Sender<u64>,
    stage: watch::Sender<Stage>,
    used: Mutex<Instant>,
    trouble: Mutex<WatchTrouble>,
}

/// Whether the reports can be read. The watch says so at each attempt that fails, and says nothing while it works.
#[derive(Debug, Default)]
struct WatchTrouble {
    since: Option<Timestamp>,
    latest: Option<Instant>,
    text: String,
}

impl WatchTrouble {
    fn fails(&mut self, text: &str, now: Instant) {
        if self.shown(now).is_null() {
            self.since = Some(Timestamp::now());
        }
        self.latest = Some(now);
        text.clone_into(&mut self.text);
    }

    /// As the page reads it; null if the watch works.
    fn shown(&self, now: Instant) -> Value {
        let is_over = self.latest.is_none_or(|at| now.saturating_duration_since(at) > TROUBLE_LASTS);
        let Some(since) = self.since.filter(|_| !is_over) else { return Value::Null };
        let text = format!("plumb cannot read DriftReports: {}.", self.text.trim_end_matches('.'));
        json!({"since": since.as_second(), "text": text})
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Off,
    Starting,
    Ready,
}

/// The name or the address of an app's cluster.
pub(super) fn cluster_of(app: &Application) -> String {
    let destination = &app.spec.destination;
    if !destination.name.is_empty() {
        return destination.name.clone();
    }
    if destination.server == ClusterRef::IN_CLUSTER_SERVER {
        "in-cluster".to_owned()
    } else {
        destination.server.clone()
    }
}

/// An Application as the view starts with it: without its lists, unless a deletion waits for a confirmation in them.
fn first_state(leader: &Leader, known: &KnownApp) -> Option<(Application, String)> {
    let head = known.head()?;
    let waits = leader.resources(known).is_some_and(|text| text.contains("requiresDeletionConfirmation"));
    let whole = if waits { leader.app(&head.metadata.namespace, &head.metadata.name) } else { None };
    let whole = whole.and_then(|value| Application::from_json(&value).ok());
    Some((whole.unwrap_or_else(|| head.clone()), cluster_of(head)))
}

/// A number that no other view has.
fn epoch() -> u64 {
    // Without random numbers, the clock still tells two views apart.
    let now = || Timestamp::now().as_millisecond().to_be_bytes();
    let bytes = random::bytes::<8>().unwrap_or_else(|_| now());
    bytes.iter().take(6).fold(0, |all, byte| (all << 8) | u64::from(*byte))
}

impl PageFeed {
    pub(super) fn new(shared: Arc<Shared>) -> Arc<Self> {
        Arc::new(Self {
            shared,
            view: RwLock::new(View::new(epoch())),
            changed: watch::channel(0).0,
            stage: watch::channel(Stage::Off).0,
            used: Mutex::new(Instant::now()),
            trouble: Mutex::default(),
        })
    }

    /// The view. It is complete after [`PageFeed::ready`].
    pub(super) fn view(&self) -> RwLockReadGuard<'_, View> {
        self.view.read()
    }

    /// Why the view may be old, and since when; null if it is not.
    pub(super) fn trouble(&self) -> Value {
        self.trouble.lock().shown(Instant::now())
    }

    /// The changes of the view from now on.
    pub(super) fn follow(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Starts the feed if it does not run, and waits until it has seen everything once.
    pub(super) async fn ready(self: &Arc<Self>) -> Result<(), Status> {
        let away = || Status::unavailable("this replica does not lead yet; try again");
        // The view of a replica that lost the lease is old. It is dropped a while later.
        if self.shared.handle.leader().is_none() {
            return Err(away());
        }
        *self.used.lock() = Instant::now();
        let mut stage = self.stage.subscribe();
        let starts = self.stage.send_if_modified(|stage| {
            let is_off = *stage == Stage::Off;
            if is_off {
                *stage = Stage::Starting;
            }
            is_off
        });
        if starts {
            let feed = Arc::clone(self);
            tokio::spawn(async move {
                feed.run().await;
                *feed.view.write() = View::new(epoch());
                feed.stage.send_replace(Stage::Off);
                feed.changed.send_modify(|number| *number += 1);
            });
        }
        let ready =
            tokio::time::timeout(LISTED_WITHIN, stage.wait_for(|stage| *stage != Stage::Starting)).await;
        match ready {
            Ok(Ok(stage)) if *stage == Stage::Ready => Ok(()),
            _ => Err(away()),
        }
    }

    /// Follows Applications and reports until the engine stops, or until nobody asks any more.
    async fn run(self: &Arc<Self>) {
        let Some(mut apps) = self.shared.feed.subscribe() else { return };
        let Some(leader) = self.shared.handle.leader() else { return };
        let read = tokio::task::spawn_blocking(move || {
            leader.apps().iter().filter_map(|app| first_state(&leader, app)).collect::<Vec<_>>()
        });
        let Ok(known) = read.await else { return };
        *self.trouble.lock() = WatchTrouble::default();
        {
            let mut view = self.view.write();
            for (app, cluster) in known {
                view.note_app(app, &cluster);
            }
        }
        let gvk = GroupVersionKind::from_api_version(DriftReport::API_VERSION, DriftReport::KIND);
        let client = &self.shared.backend.client;
        client.assume_kinds(&[Resource {
            gvk: gvk.clone(),
            plural: "driftreports".to_owned(),
            namespaced: true,
        }]);
        let mut reports = match client.watch_objects(&gvk, Selection::default()) {
            Ok(reports) => reports,
            Err(why) => {
                warn!(error = %why, "cannot watch DriftReports; the page cannot be shown");
                return;
            }
        };
        let mut check = tokio::time::interval(CHECK);
        loop {
            tokio::select! {
                event = apps.recv() => match event {
                    Ok(event) => self.note_app(event.item.value.get("type").and_then(Value::as_str), event.application()),
                    Err(RecvError::Lagged(_) | RecvError::Closed) => return,
                },
                event = reports.next() => match event {
                    Some(event) => self.note_report(event),
                    None => return,
                },
                _ = check.tick() => {
                    if self.changed.receiver_count() == 0 && self.used.lock().elapsed() > UNUSED {
                        return;
                    }
                    if self.shared.handle.leader().is_none() {
                        return;
                    }
                    continue;
                }
            }
            self.changed.send_modify(|number| *number += 1);
        }
    }

    fn note_app(&self, kind: Option<&str>, value: &Value) {
        if kind == Some("DELETED") {
            if let Some(id) = Application::id_of(value) {
                self.view.write().note_app_gone(&id);
            }
            return;
        }
        if let Ok(app) = Application::from_json(value) {
            let cluster = cluster_of(&app);
            self.view.write().note_app(app, &cluster);
        }
    }

    fn note_report(&self, event: ObjectEvent) {
        match event {
            ObjectEvent::Seen(object) => {
                *self.trouble.lock() = WatchTrouble::default();
                if let Ok(report) = DriftReport::from_json(object.value()) {
                    self.view.write().note_report(report);
                }
            }
            ObjectEvent::Gone { key, .. } => {
                let id = AppId { namespace: key.namespace_or_empty().to_owned(), name: key.name.clone() };
                self.view.write().note_report_gone(&id);
            }
            ObjectEvent::Listed => {
                *self.trouble.lock() = WatchTrouble::default();
                self.stage.send_replace(Stage::Ready);
            }
            // Without reports the apps still have their status. The watch goes on; the page says that they are missing.
            ObjectEvent::Trouble(why) => {
                self.trouble.lock().fails(&why, Instant::now());
                self.stage.send_replace(Stage::Ready);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_that_fails_is_trouble_until_it_works() {
        let start = Instant::now();
        let after = |seconds: u64| start + Duration::from_secs(seconds);
        let mut trouble = WatchTrouble::default();
        assert_eq!(trouble.shown(start), Value::Null);
        trouble.fails("403 Forbidden.", start);
        let since = trouble.since;
        trouble.fails("503", after(100));
        assert_eq!(trouble.since, since, "it is the same trouble");
        assert_eq!(trouble.shown(after(200))["text"], "plumb cannot read DriftReports: 503.");
        assert_eq!(trouble.shown(after(100) + TROUBLE_LASTS + Duration::from_secs(1)), Value::Null);
    }
}
