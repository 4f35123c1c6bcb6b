//! Reconciles apps when a sync window opens or closes: no watch event reports that.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use plumb_core::app::App;
use plumb_core::project::WindowSubject;

use crate::engine::Engine;
use crate::queue::{Trigger, TriggerReason};

/// Projects and apps may change during the wait, so the next change is computed again after this time at the latest.
const LONGEST_WAIT: Duration = Duration::from_mins(1);

/// Requests runs of the apps whose sync windows open or close, forever.
pub(crate) async fn watch_sync_windows(engine: Arc<Engine>) {
    let mut checked_at = Timestamp::now();
    loop {
        let next = engine.registry.all().iter().filter_map(|app| next_change(&engine, app, checked_at)).min();
        let wait = next.and_then(|next| Duration::try_from(next.duration_since(Timestamp::now())).ok());
        // A change that has passed since the last check is due now.
        let wait = if next.is_some() { wait.unwrap_or_default() } else { LONGEST_WAIT };
        tokio::time::sleep(wait.min(LONGEST_WAIT)).await;
        let now = Timestamp::now();
        let apps = engine.registry.all();
        let changed = apps
            .iter()
            .filter(|app| next_change(&engine, app, checked_at).is_some_and(|change| change <= now))
            .map(|app| app.id.clone());
        engine.request_runs(changed.collect(), Trigger::live(TriggerReason::Window));
        checked_at = now;
    }
}

fn next_change(
    engine: &Engine,
    summary: &crate::apps::snapshot::AppSummary,
    after: Timestamp,
) -> Option<Timestamp> {
    let app: &App = summary.app.as_ref().ok()?;
    let project = engine.config.project(&app.project).ok()?;
    if project.windows().is_empty() {
        return None;
    }
    let (server, cluster) = engine.clusters.named(&app.destination.cluster)?;
    let subject = WindowSubject {
        app: &app.id.name,
        namespace: app.destination.namespace.as_deref().unwrap_or_default(),
        server: &server,
        cluster: &cluster,
    };
    project.next_window_change(&subject, after)
}
