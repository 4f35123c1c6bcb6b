//! Keeps the view of all apps up to date while pages are open.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock, RwLockReadGuard};
use plumb_api::Status;
use plumb_core::app::{AppId, ClusterRef};
use plumb_core::object::GroupVersionKind;
use plumb_crd::{Application, DriftReport};
use plumb_engine::KnownApp;
use plumb_kube::{ObjectEvent, Resource, Selection};
use plumb_page::View;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch;
use tracing::warn;

use crate::call::Shared;
use crate::random;

/// How long the first lists may take.
const LISTED_WITHIN: Duration = Duration::from_secs(10);
/// The view is dropped when no page has asked for so long.
const UNUSED: Duration = Duration::from_mins(10);
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

/// A number that no other view has.
fn epoch() -> u64 {
    // Without random numbers, the clock still tells two views apart.
    let now = || jiff::Timestamp::now().as_millisecond().to_be_bytes();
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
        })
    }

    /// The view. It is complete after [`PageFeed::ready`].
    pub(super) fn view(&self) -> RwLockReadGuard<'_, View> {
        self.view.read()
    }

    /// The changes of the view from now on.
    pub(super) fn follow(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Starts the feed if it does not run, and waits until it has seen everything once.
    pub(super) async fn ready(self: &Arc<Self>) -> Result<(), Status> {
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
        let away = || Status::unavailable("this replica does not lead yet; try again");
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
        let known = leader.apps();
        drop(leader);
        {
            let mut view = self.view.write();
            for app in known.iter().filter_map(KnownApp::head) {
                view.note_app(app.clone(), &cluster_of(app));
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
                    Ok(event) => self.note_app(event.item.value.get("type").and_then(serde_json::Value::as_str), event.application()),
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

    fn note_app(&self, kind: Option<&str>, value: &serde_json::Value) {
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
                if let Ok(report) = DriftReport::from_json(object.value()) {
                    self.view.write().note_report(report);
                }
            }
            ObjectEvent::Gone { key, .. } => {
                let id = AppId { namespace: key.namespace_or_empty().to_owned(), name: key.name.clone() };
                self.view.write().note_report_gone(&id);
            }
            // Without reports the apps still have their status. The watch goes on, and its log says what is wrong.
            ObjectEvent::Listed | ObjectEvent::Trouble(_) => {
                self.stage.send_replace(Stage::Ready);
            }
        }
    }
}
