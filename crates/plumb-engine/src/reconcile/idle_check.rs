//! Whether a run can be skipped. This is what an idle app costs, so nothing is decompressed for it.

use jiff::Timestamp;

use crate::engine::Engine;
use crate::queue::{Job, RefreshDepth, Trigger};
use crate::sources::gather::FetchPolicy;
use crate::state::app_state::AppState;

/// True if this run can be skipped: the last one left nothing to do, nothing changed since, and Git is at the same commits.
/// Everything else that could change the verdict on an app requests a run with news.
pub(super) async fn is_unchanged(engine: &Engine, job: &Job, state: &mut AppState) -> bool {
    let Trigger { depth, is_news, .. } = job.trigger;
    let was_settled = std::mem::take(&mut state.is_settled);
    let is_due = is_news || depth > RefreshDepth::Git || state.health.is_due(Timestamp::now());
    let Some(stored) = state.git.current().filter(|_| was_settled && !is_due) else { return false };
    if depth == RefreshDepth::Live {
        // A run was requested for this time, and the reason is gone by now.
        state.is_settled = true;
        return true;
    }
    let Some(summary) = engine.registry.summary(&job.app) else { return false };
    let (Ok(application), Ok(app)) = (&summary.head, &summary.app) else { return false };
    if summary.requested_refresh().is_some() || application.is_terminating() || app.skip_reconcile {
        return false;
    }
    let Ok(context) = engine.context(app) else { return false };
    let policy = FetchPolicy::of(&job.trigger);
    match engine.sources.is_current(&application.spec, app, &context, policy, stored).await {
        Ok(is_current) => state.is_settled = is_current,
        Err(answered) => {
            engine.run_when_answered(answered, &job.app, job.trigger);
            state.is_settled = true;
        }
    }
    state.is_settled
}
