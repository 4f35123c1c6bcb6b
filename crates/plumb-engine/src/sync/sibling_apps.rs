//! Before a sync prunes, the other apps of the same repository are gathered: one of them may ask for the object now.

use std::time::{Duration, Instant};

use tracing::info;

use crate::app_run::AppRun;
use crate::apps::followed_commits::follows;
use crate::compare::run::Compared;
use crate::operation::active::ActiveOperation;
use crate::queue::{RefreshDepth, Trigger, TriggerReason};

/// How long a prune waits for the others: one of them may not be able to render.
const OTHERS_WITHIN: Duration = Duration::from_secs(5);
/// How often the prune checks whether they are done.
const CHECK_AGAIN: Duration = Duration::from_millis(100);

/// True if a sync that prunes must wait for other apps to be gathered. Requests their runs, and another run of this app.
pub(super) fn waits_for_others(run: &AppRun<'_>, compared: &Compared, active: &mut ActiveOperation) -> bool {
    let prunes = active.asked.prune
        && active.state.is_none()
        && compared.verdicts.values().any(|verdict| verdict.requires_pruning);
    if !prunes {
        return false;
    }
    let (engine, app) = (run.engine, run.id());
    let summaries = engine.registry.all();
    let others = summaries.iter().filter(|other| other.id != *app).filter_map(|other| {
        Some((other.id.clone(), follows(other, |cluster| engine.clusters.address(cluster))?))
    });
    let mut others = engine.records.behind(app, others);
    // An app that its project refuses is not gathered, so it cannot ask for the object.
    others.retain(|other| {
        let summary = engine.registry.summary(other);
        summary.is_some_and(|other| other.app.as_ref().is_ok_and(|other| engine.context(other).is_ok()))
    });
    if others.is_empty() {
        return false;
    }
    let is_first = active.waits_for_others.is_none();
    let since = *active.waits_for_others.get_or_insert_with(Instant::now);
    if since.elapsed() > OTHERS_WITHIN {
        info!(
            others = others.len(),
            "apps of the same repository were not gathered in time; pruning goes on"
        );
        // An app that cannot be gathered delays one prune per commit, and not every prune.
        engine.records.waited_in_vain(app, &others);
        return false;
    }
    if is_first {
        info!(others = others.len(), "apps of the same repository are gathered before pruning");
        engine.request_runs(others, Trigger::new(RefreshDepth::GitNow, TriggerReason::Move));
    }
    "waiting for the other apps of the repository, which may ask for what left this one"
        .clone_into(&mut active.record.message);
    engine.queue.push_after(app.clone(), Trigger::live(TriggerReason::Move), CHECK_AGAIN);
    true
}
