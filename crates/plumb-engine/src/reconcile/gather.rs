//! What Git asks for in this run, and what happens where that cannot be found out.

use std::sync::Arc;

use super::app::RunEnd;
use super::unavailable::fail_operation;
use crate::app_run::gather::gather;
use crate::app_run::{AppInputs, AppRun};
use crate::queue::{RefreshDepth, Trigger, TriggerReason};
use crate::sources::gathered::Gathered;
use crate::sources::slow_servers::NotGathered;
use crate::state::app_state::AppState;
use crate::status::unknown::write_unknown;

/// What this run compares the cluster with.
pub(super) struct Desired {
    pub(super) gathered: Arc<Gathered>,
    /// True if Git could not be read: an operation under way goes on with what it gathered before, and the app is neither in
    /// sync nor out of it.
    pub(super) is_outdated: bool,
}

/// Gathers what Git asks for. While an operation is under way, it goes on with what is known.
pub(super) async fn gather_or_keep(
    run: &mut AppRun<'_>,
    inputs: AppInputs<'_>,
    state: &mut AppState,
) -> Result<Desired, RunEnd> {
    let mut gathered = gather(run, inputs, &mut state.git).await;
    if let Err(NotGathered::Waiting(answered)) = gathered {
        run.engine.run_when_answered(answered, run.id(), run.trigger);
        if state.operation.active.is_none() {
            return Err(RunEnd::WaitingForSources);
        }
        run.refresh = None;
        run.policy.depth = RefreshDepth::Live;
        gathered = gather(run, inputs, &mut state.git).await;
    }
    match gathered {
        Ok(gathered) => {
            note_gathered(run, inputs, &gathered);
            Ok(Desired { gathered, is_outdated: false })
        }
        Err(why) => {
            if let NotGathered::Failed(error) = &why {
                let is_transient = if error.is_transient() { "true" } else { "false" };
                run.engine.metrics.source_failures.increment([error.category(), is_transient]);
            }
            let (condition, message) = why.condition();
            run.conditions.add(condition, message);
            let active = state.operation.active.as_ref();
            if let Some(gathered) = active.and_then(|active| active.gathered.clone()) {
                return Ok(Desired { gathered, is_outdated: true });
            }
            fail_operation(run, inputs.application, &mut state.operation).await;
            write_unknown(run, inputs.application, state).await;
            Err(RunEnd::Unknown)
        }
    }
}

/// Tells the rest of the engine what the app renders now.
fn note_gathered(run: &mut AppRun<'_>, inputs: AppInputs<'_>, gathered: &Arc<Gathered>) {
    let (engine, context) = (run.engine, inputs.context);
    let server = &context.cluster.server;
    run.gathered = Some(Arc::clone(gathered));
    engine.records.set_tracked(run.id(), gathered.tracked(server));
    let others = engine.claims.set(run.id(), server, &context.instance, &gathered.set);
    engine.request_runs(others, Trigger::live(TriggerReason::Claim));
}
