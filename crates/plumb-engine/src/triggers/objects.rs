//! Requests runs when live objects change.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use plumb_core::app::AppId;
use plumb_core::writes::{FinishedJob, finished};
use plumb_crd::Application;
use plumb_kube::{Change, Changes, Origin, Role};

use crate::cluster::destination::Cluster;
use crate::engine::Engine;
use crate::queue::{Trigger, TriggerReason};
use crate::state::app_state::AppState;

/// Events of one change arrive together. They are gathered for this long.
const BATCH: Duration = Duration::from_millis(2);
/// Untracked objects change often, and their number is not urgent.
const ORPHANS_BATCH: Duration = Duration::from_secs(1);

/// Watches the live objects of one cluster, and requests runs of the apps that a change concerns.
pub(crate) async fn watch_objects(engine: Arc<Engine>, cluster: Arc<Cluster>, mut changes: Changes) {
    let mut batch = Vec::new();
    while changes.recv_many(&mut batch, 1024).await > 0 {
        let (began, n_changes) = (Instant::now(), batch.len());
        let mut apps = BTreeSet::new();
        let mut counting = BTreeSet::new();
        let settings = engine.config.settings();
        for change in batch.drain(..) {
            if change.origin == Origin::Watched {
                let labels = [&*cluster.server, &change.key.group, &change.key.kind];
                engine.metrics.cluster_events.increment(labels);
            }
            if engine.ignored_updates.may_ignore(&cluster.server, &cluster.store, &settings, &change) {
                engine.metrics.unchanged.increment([&*cluster.server]);
                continue;
            }
            apps.extend(concerned(&engine, &cluster, &change));
            if change.touched.is_empty()
                && let Some(namespace) = &change.key.namespace
            {
                counting.extend(engine.orphans.counting_in(&cluster.server, namespace));
            }
        }
        for app in counting.difference(&apps) {
            engine.queue.push_within(app.clone(), Trigger::live(TriggerReason::Orphans), ORPHANS_BATCH);
        }
        for app in apps {
            engine.queue.push_within(app, Trigger::live(TriggerReason::Live), BATCH);
        }
        engine.metrics.event_batch(&cluster.server, n_changes, began.elapsed());
    }
}

fn concerned(engine: &Engine, cluster: &Cluster, change: &Change) -> Vec<AppId> {
    let mut apps = Vec::new();
    for touched in &change.touched {
        // The run that wrote an object compares it by itself. An Application is written by its own runs, and the app that
        // tracks it waits for the result.
        let is_app = change.key.kind == Application::KIND && change.key.group == "argoproj.io";
        if change.origin == Origin::Written && touched.role == Role::Tracked && !is_app {
            continue;
        }
        let Some(id) = engine.registry.by_instance(&touched.instance, &engine.options.namespace) else {
            continue;
        };
        if change.key.kind == "Job" && touched.role != Role::Child {
            note_finished(engine, cluster, &id, change);
        }
        apps.push(id);
    }
    apps
}

/// Records that a Job finished: the TTL controller may delete it before the app runs.
fn note_finished(engine: &Engine, cluster: &Cluster, app: &AppId, change: &Change) {
    let Some(job) = change.last.as_deref().cloned().or_else(|| cluster.store.get_kept(&change.key)) else {
        return;
    };
    let Some((succeeded, at)) = finished(&job) else { return };
    let at = Some(at.unwrap_or_else(Timestamp::now));
    let state = engine.records.state(app);
    let key = change.key.clone();
    let note = move |state: &mut AppState| {
        let desired = state.git.current().and_then(|stored| stored.set.fingerprint(&key));
        state.judge.writes.record_finished(key, FinishedJob { at, succeeded, desired });
    };
    if let Ok(mut free) = state.try_lock() {
        return note(&mut free);
    }
    // The app runs just now, which may take long. Events of other apps do not wait for it. The lock is fair, so the note
    // is there before the next run.
    tokio::spawn(async move { note(&mut *state.lock().await) });
}
