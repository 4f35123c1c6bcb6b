//! What Git asks for in this run, and what happens where that cannot be found out.

use std::sync::Arc;
use std::time::Instant;

use plumb_core::sync::SiblingEnd;

use super::app::RunEnd;
use super::unavailable::fail_operation;
use crate::app_run::gather::gather;
use crate::app_run::{AppInputs, AppRun};
use crate::operation::active::ActiveOperation;
use crate::queue::{RefreshDepth, Trigger, TriggerReason};
use crate::sources::error::SourceError;
use crate::sources::gathered::Gathered;
use crate::sources::slow_servers::NotGathered;
use crate::sources::state::LastFailure;
use crate::state::app_state::AppState;
use crate::status::unknown::write_unknown;

/// What this run compares the cluster with.
pub(super) struct Desired {
    pub(super) gathered: Arc<Gathered>,
    pub(super) age: DesiredAge,
}

/// Whether what is known is what Git asks for now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DesiredAge {
    Current,
    /// Git could not be read at the last try, so the app is neither in sync nor out of it.
    Outdated {
        /// True if the automation may still bring the cluster to what was gathered before. A server that does not answer is no
        /// reason to leave an edit alone; a commit that cannot be rendered is.
        is_healed: bool,
    },
}

impl DesiredAge {
    /// True if the app is shown as neither in sync nor out of it.
    pub(super) fn is_outdated(self) -> bool {
        self != Self::Current
    }

    /// True if nothing may be decided from a comparison with it.
    pub(super) fn decides_nothing(self) -> bool {
        matches!(self, Self::Outdated { is_healed: false })
    }
}

/// Gathers what Git asks for. While an operation is under way, it goes on with what is known.
pub(super) async fn gather_or_keep(
    run: &mut AppRun<'_>,
    inputs: AppInputs<'_>,
    state: &mut AppState,
) -> Result<Desired, RunEnd> {
    let mut gathered = gather(run, inputs, &mut state.git).await;
    let parked = &state.git.parked;
    if parked.is_outdated {
        // The request is older than what this run asks for, so another run answers it.
        run.refresh = None;
        run.engine.queue.push(run.id().clone(), run.trigger);
    }
    let asked_at = parked.taken;
    run.engine.records.set_restarts(run.id(), parked.restarts);
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
            note_end(run, asked_at, SiblingEnd::Gathered);
            let age = age(run, state.git.failure.as_ref());
            Ok(Desired { gathered, age })
        }
        Err(why) => {
            if let NotGathered::Failed(error) = &why {
                let is_transient = if error.is_transient() { "true" } else { "false" };
                run.engine.metrics.source_failures.increment([error.category(), is_transient]);
                note_end(run, asked_at, end_of(error));
                state.git.failure = Some(LastFailure::new(error));
            }
            let active = state.operation.active.as_ref();
            let kept = active.and_then(ActiveOperation::load);
            if kept.is_none() && matches!(why, NotGathered::Waiting(_)) {
                return Err(RunEnd::WaitingForSources);
            }
            let (condition, messages) = why.conditions();
            for message in messages {
                run.conditions.add(condition, message);
            }
            if let Some(gathered) = kept {
                return Ok(Desired { gathered, age: DesiredAge::Outdated { is_healed: false } });
            }
            fail_operation(run, inputs.application, &mut state.operation).await;
            write_unknown(run, inputs.application, state).await;
            Err(RunEnd::Unknown)
        }
    }
}

/// Whether what is known is what Git asks for now. A failure of the last try stays told.
fn age(run: &mut AppRun<'_>, failure: Option<&LastFailure>) -> DesiredAge {
    let Some(failure) = failure else { return DesiredAge::Current };
    for message in &failure.messages {
        run.conditions.add(failure.condition, message.clone());
    }
    DesiredAge::Outdated { is_healed: failure.is_transient }
}

/// Tells the apps whose prunes wait for this one how its look at Git ended. Comes after its claims are known.
fn note_end(run: &AppRun<'_>, asked_at: Option<Instant>, end: SiblingEnd) {
    let Some(asked_at) = asked_at else { return };
    let waiting = run.engine.records.gather_ended(run.id(), asked_at, end);
    run.engine.request_runs(waiting, Trigger::live(TriggerReason::Move));
}

/// What a failure means for apps that wait for this one. The message is not passed on: it may be of another project.
fn end_of(error: &SourceError) -> SiblingEnd {
    if error.is_transient() { SiblingEnd::Failing(error.category().to_owned()) } else { SiblingEnd::Broken }
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
