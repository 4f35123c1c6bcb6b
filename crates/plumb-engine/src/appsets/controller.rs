//! Which sets run when.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use plumb_core::app::AppId;
use plumb_core::object::{GroupVersionKind, Manifest};
use plumb_crd::ApplicationSet;
use plumb_kube::{ObjectEvent, ObjectStream, Selection};
use serde_json::Value;
use tokio::task::JoinSet;
use tracing::{error, info, warn};

use super::run::{OthersNames, REFRESH, Ran, run_set};
use crate::engine::Engine;
use crate::set_signals::{Happened, SetFigures};

/// How many sets run at the same time.
const AT_ONCE: usize = 4;
/// The shortest time between two runs of a set: changes in between are taken together.
const SPACING: Duration = Duration::from_millis(500);
/// A set that aborted a run is left alone for a while.
const AFTER_DEFECT: Duration = Duration::from_mins(3);

/// A set and when it runs.
struct Known {
    set: Arc<ApplicationSet>,
    /// What a change of counts: without the status.
    content: Value,
    due: Option<Instant>,
    /// The next run asks Git, unless that was done since.
    fetch_since: Option<Instant>,
    last_run: Option<Instant>,
    last: Ran,
    is_running: bool,
}

impl Known {
    fn rolls_out(&self) -> bool {
        self.set.spec.strategy.as_ref().is_some_and(|strategy| strategy.strategy_type == "RollingSync")
    }

    fn request(&mut self, at: Instant) {
        let at = self.last_run.map_or(at, |last| at.max(last + SPACING));
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
    }
}

/// Watches the sets and runs them, forever.
pub(crate) async fn run_app_sets(engine: Arc<Engine>) {
    let mut stream = stream(&engine).await;
    let mut sets =
        Sets { engine: Arc::clone(&engine), known: BTreeMap::new(), is_listed: false, is_ready: false };
    let mut runs: JoinSet<(AppId, Option<Ran>)> = JoinSet::new();
    loop {
        sets.start_due(&mut runs);
        let next = sets.next_due(runs.len());
        let sleep = async {
            match next {
                Some(at) => tokio::time::sleep_until(at.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            event = stream.next() => match event {
                Some(event) => sets.note(event),
                None => stream = self::stream(&engine).await,
            },
            () = engine.set_signals.wait() => {
                if let Some(happened) = engine.set_signals.take() {
                    sets.is_ready = true;
                    sets.happened(&happened);
                }
            }
            Some(ended) = runs.join_next() => {
                if let Ok((id, ran)) = ended {
                    sets.ended(&id, ran);
                }
            }
            () = sleep => {}
        }
    }
}

/// The watch of sets. Without their kind there are none: plumb works without it.
async fn stream(engine: &Engine) -> ObjectStream {
    let gvk = GroupVersionKind::from_api_version(ApplicationSet::API_VERSION, ApplicationSet::KIND);
    let namespaces = &engine.config.settings().app_sets.namespaces;
    let namespace = namespaces.is_empty().then(|| engine.options.namespace.clone());
    let client = &engine.home.client;
    let mut changes = client.catalog_changes();
    loop {
        changes.mark_unchanged();
        let selection = Selection { namespace: namespace.clone(), ..Selection::default() };
        if let Ok(stream) = client.watch_objects(&gvk, selection) {
            return stream;
        }
        if changes.changed().await.is_err() {
            return std::future::pending().await;
        }
    }
}

/// True if sets of this namespace run.
pub(crate) fn permits(engine: &Engine, namespace: &str) -> bool {
    let settings = engine.config.settings();
    namespace == engine.options.namespace
        || (settings.app_sets.namespaces.iter().any(|pattern| pattern.matches(namespace))
            && engine.app_namespaces.permit(namespace))
}

struct Sets {
    engine: Arc<Engine>,
    known: BTreeMap<AppId, Known>,
    is_listed: bool,
    /// Clusters and Applications are known.
    is_ready: bool,
}

impl Sets {
    fn permits(&self, namespace: &str) -> bool {
        permits(&self.engine, namespace)
    }

    fn note(&mut self, event: ObjectEvent) {
        match event {
            ObjectEvent::Seen(manifest) => self.seen(&manifest),
            ObjectEvent::Gone { key, .. } => {
                let id = AppId { namespace: key.namespace_or_empty().to_owned(), name: key.name.clone() };
                self.forget(&id);
            }
            ObjectEvent::Listed => {
                self.is_listed = true;
                info!(sets = self.known.len(), "ApplicationSets known");
            }
            ObjectEvent::Trouble(_) => {}
        }
    }

    fn seen(&mut self, manifest: &Manifest) {
        let (Some(namespace), Some(name)) = (manifest.namespace(), manifest.name()) else { return };
        if !self.permits(namespace) {
            return;
        }
        let id = AppId { namespace: namespace.to_owned(), name: name.to_owned() };
        let set = match ApplicationSet::from_json(manifest.value()) {
            Ok(set) => Arc::new(set),
            Err(error) => {
                warn!(set = %id, %error, "cannot read an ApplicationSet; its Applications stay as they are");
                self.forget(&id);
                return;
            }
        };
        self.engine.set_signals.set(&id, Some(figures(&set)));
        let now = Instant::now();
        let refreshes = set.metadata.annotations.contains_key(REFRESH);
        let content = content(manifest.value());
        let Some(known) = self.known.get_mut(&id) else {
            let known = Known {
                set,
                content,
                due: Some(now),
                fetch_since: Some(now),
                last_run: None,
                last: Ran::default(),
                is_running: false,
            };
            self.known.insert(id, known);
            return;
        };
        let rollout_moved = known.set.status.application_status != set.status.application_status;
        let asked = |set: &ApplicationSet| set.metadata.annotations.get(REFRESH).cloned();
        let refreshes = refreshes && asked(&known.set) != asked(&set);
        known.set = set;
        if refreshes {
            known.fetch_since = Some(now);
        }
        let changed = known.content != content;
        known.content = content;
        // Only rollouts write their state, and each state may be followed by another.
        if changed || refreshes || rollout_moved {
            known.request(now);
        }
    }

    fn forget(&mut self, id: &AppId) {
        self.known.remove(id);
        self.engine.set_signals.set(id, None);
        self.engine.metrics.forget_set(id);
    }

    /// Requests runs of the sets that something concerns.
    fn happened(&mut self, happened: &Happened) {
        let now = Instant::now();
        for (id, known) in &mut self.known {
            let follows = &known.last.follows;
            // What a run asks for is known when it ends: it may have read before this happened.
            let is_unknown = known.is_running;
            let pushed = happened.any_push
                || happened.pushes.iter().any(|push| is_unknown || push.concerns_set(follows));
            if pushed {
                known.fetch_since = Some(now);
            }
            let concerned = pushed
                || happened.settings
                || (happened.clusters && (is_unknown || known.last.asked_clusters || known.last.failed))
                || (happened.projects && (is_unknown || known.last.failed))
                || happened.changed.contains(id)
                || (known.rolls_out() && happened.progressed.contains(id));
            if concerned {
                known.request(now);
            }
        }
    }

    fn next_due(&self, n_running: usize) -> Option<Instant> {
        if !self.is_listed || !self.is_ready || n_running >= AT_ONCE {
            return None;
        }
        self.known.values().filter(|known| !known.is_running).filter_map(|known| known.due).min()
    }

    fn start_due(&mut self, runs: &mut JoinSet<(AppId, Option<Ran>)>) {
        if !self.is_listed || !self.is_ready {
            return;
        }
        let now = Instant::now();
        let due = self
            .known
            .iter()
            .filter(|(_, known)| !known.is_running && known.due.is_some_and(|due| due <= now));
        let due: Vec<AppId> = due.map(|(id, _)| id.clone()).collect();
        for id in due.into_iter().take(AT_ONCE.saturating_sub(runs.len())) {
            let others = self.others(&id);
            let Some(known) = self.known.get_mut(&id) else { continue };
            known.is_running = true;
            known.due = None;
            known.last_run = Some(now);
            let fetch_since = known.fetch_since.take();
            let (engine, set) = (Arc::clone(&self.engine), Arc::clone(&known.set));
            runs.spawn(async move {
                let run = AssertUnwindSafe(Box::pin(run_set(&engine, set, fetch_since, &others)));
                let ran = run.catch_unwind().await.ok();
                engine.metrics.set_reconciles.observe([&id.namespace, &id.name], now.elapsed());
                (id, ran)
            });
        }
    }

    /// Which other sets of the same namespace generate which names.
    fn others(&self, id: &AppId) -> OthersNames {
        let mut others = OthersNames::new();
        let same_namespace =
            self.known.iter().filter(|(other, _)| other.namespace == id.namespace && other.name != id.name);
        for (other, known) in same_namespace {
            for name in known.last.names.iter().flatten() {
                others.entry(name.clone()).or_default().insert(other.name.clone());
            }
        }
        others
    }

    fn ended(&mut self, id: &AppId, ran: Option<Ran>) {
        let now = Instant::now();
        let Some(known) = self.known.get_mut(id) else { return };
        known.is_running = false;
        let Some(ran) = ran else {
            error!(set = %id, "a defect of plumb aborted the run of an ApplicationSet; its Applications stay as they are");
            known.request(now + AFTER_DEFECT);
            return;
        };
        if let Some(after) = ran.again_after {
            if ran.polls && known.fetch_since.is_none() {
                // Sets that are due at about the same time share one request.
                known.fetch_since = Some(now + after * 9 / 10);
            }
            known.request(now + after);
        }
        let names_changed = known.last.names != ran.names;
        known.last = ran;
        if names_changed {
            self.tell_others(id);
        }
    }

    /// A set whose names another set generates now, too, says so.
    fn tell_others(&mut self, id: &AppId) {
        let Some(names) = self.known.get(id).and_then(|known| known.last.names.clone()) else { return };
        let now = Instant::now();
        let others = self
            .known
            .iter_mut()
            .filter(|(other, _)| other.namespace == id.namespace && other.name != id.name);
        for (_, known) in others {
            if known.last.names.as_ref().is_some_and(|theirs| !theirs.is_disjoint(&names)) {
                known.request(now);
            }
        }
    }
}

/// What metrics tell about a set.
fn figures(set: &ApplicationSet) -> SetFigures {
    let mut conditions = set.status.conditions.iter();
    let told = conditions.find(|condition| condition.condition_type == "ResourcesUpToDate");
    let update_status = told.map_or_else(|| "Unknown".to_owned(), |condition| condition.reason.clone());
    SetFigures { update_status, n_owned: set.status.resources.len() }
}

/// What a change of a set counts by: everything but its status and the request for a look at Git.
fn content(object: &Value) -> Value {
    let metadata = &object["metadata"];
    let mut annotations = metadata["annotations"].clone();
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.retain(|key, _| key != REFRESH);
    }
    serde_json::json!({
        "spec": object["spec"],
        "labels": metadata["labels"],
        "finalizers": metadata["finalizers"],
        "deletionTimestamp": metadata["deletionTimestamp"],
        "annotations": annotations,
    })
}
