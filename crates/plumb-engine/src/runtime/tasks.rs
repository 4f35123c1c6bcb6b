//! The tasks of a running engine: watches, timers and workers.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use jiff::Timestamp;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tracing::{error, warn};

use super::memory_trim::give_memory_back;
use super::worker::serve;
use crate::appsets::run_app_sets;
use crate::deletion::project::release_projects;
use crate::engine::Engine;
use crate::queue::Job;
use crate::reconcile::reconcile;
use crate::state::retries::Subject;
use crate::sync::tombstones;
use crate::triggers::applications::{load_reports, watch_applications};
use crate::triggers::config_maps::watch_config_maps;
use crate::triggers::initial_lists::watch_lists;
use crate::triggers::objects::watch_objects;
use crate::triggers::poll::poll;
use crate::triggers::projects::watch_projects;
use crate::triggers::reports::watch_report_kind;
use crate::triggers::schemas::watch_schemas;
use crate::triggers::secrets::watch_secrets;
use crate::triggers::sync_windows::watch_sync_windows;
use crate::triggers::time_travel::watch_home_time;

/// How long the watches may take for their first lists before apps run all the same.
const FIRST_LISTS: Duration = Duration::from_secs(20);
/// How often old tombstones are deleted.
const SWEEP_EVERY: Duration = Duration::from_hours(24);

/// The workers that run apps.
#[derive(Default)]
pub(super) struct Workers(JoinSet<()>);

impl Workers {
    /// Waits for the runs under way, for a while.
    pub(super) async fn end_within(&mut self, limit: Duration) {
        let all = async { while self.0.join_next().await.is_some() {} };
        if tokio::time::timeout(limit, all).await.is_err() {
            warn!(
                runs = self.0.len(),
                "runs take too long to end and are aborted; the next process goes on with them"
            );
        }
    }

    /// Aborts the runs under way.
    pub(super) async fn abort(&mut self) {
        self.0.shutdown().await;
    }
}

/// Starts the watches in the order in which they need each other, then the workers.
pub(super) async fn start(engine: &Arc<Engine>, tasks: &mut JoinSet<()>, workers: &mut Workers) {
    let store = &engine.home.store;
    let changes = store.subscribe();
    if tokio::time::timeout(FIRST_LISTS, store.wait_complete()).await.is_err() {
        for (kind, trouble) in store.unlisted() {
            warn!(%kind, ?trouble, "initial list incomplete; objects of this kind will not be treated as missing");
        }
    }
    load_reports(engine).await;
    // Without projects and clusters every app would be refused for a moment.
    let (projects_listed, projects) = oneshot::channel();
    let (secrets_listed, secrets) = oneshot::channel();
    tasks.spawn(watch_projects(Arc::clone(engine), projects_listed));
    tasks.spawn(watch_secrets(Arc::clone(engine), secrets_listed));
    let _ = tokio::time::timeout(FIRST_LISTS, async { tokio::join!(projects, secrets) }).await;
    tasks.spawn(watch_objects(Arc::clone(engine), Arc::clone(&engine.home), changes));
    tasks.spawn(watch_schemas(Arc::clone(engine), Arc::clone(&engine.home)));
    tasks.spawn(watch_lists(Arc::clone(engine), Arc::clone(&engine.home)));
    tasks.spawn(watch_home_time(Arc::clone(engine)));
    tasks.spawn(watch_report_kind(Arc::clone(engine)));
    tasks.spawn(watch_config_maps(Arc::clone(engine)));
    tasks.spawn(watch_applications(Arc::clone(engine)));
    tasks.spawn(poll(Arc::clone(engine)));
    tasks.spawn(run_app_sets(Arc::clone(engine)));
    tasks.spawn(watch_sync_windows(Arc::clone(engine)));
    tasks.spawn(release_projects(Arc::clone(engine)));
    tasks.spawn(sweep_tombstones(Arc::clone(engine)));
    tasks.spawn(give_memory_back(Arc::clone(engine)));
    for _ in 0..engine.n_workers {
        workers.0.spawn(work(Arc::clone(engine)));
    }
}

/// Runs one app after the other, and others beside one that takes long.
async fn work(engine: Arc<Engine>) {
    serve(|| engine.queue.next(), |job| run_app(Arc::clone(&engine), job)).await;
}

/// Runs one app. Boxed: a run holds a lot, and there are many workers.
fn run_app(engine: Arc<Engine>, job: Job) -> BoxFuture<'static, ()> {
    let run = async move {
        let _measured = engine.metrics.job(job.waited);
        // A run that panics affects one app: the worker goes on.
        let run = AssertUnwindSafe(Box::pin(reconcile(&engine, &job)));
        if run.catch_unwind().await.is_err()
            && let Some(times) = engine.retries.told(&job.app, Subject::Run, Instant::now())
        {
            let app = &job.app;
            error!(%app, times, "a defect of plumb aborted the run; the app runs again with the next event or poll");
        }
        engine.bursts.note_run();
    };
    run.boxed()
}

/// Deletes tombstones that have been kept long enough, once a day.
async fn sweep_tombstones(engine: Arc<Engine>) {
    loop {
        let settings = engine.config.settings();
        let (home, namespace) = (&engine.home, &engine.options.namespace);
        let bounds = (&engine.tombstones, &settings.tombstone_limits);
        let access = (&home.client, &home.gate);
        tombstones::sweep(access, namespace, settings.keep_tombstones, bounds, Timestamp::now()).await;
        tokio::time::sleep(SWEEP_EVERY).await;
    }
}
