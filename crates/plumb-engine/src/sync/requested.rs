//! The operation that a run moves along: under way already, or just requested.

use plumb_core::app::Operation;
use plumb_core::sync::{OperationPhase, retry_policy};
use plumb_crd::application as wire;
use plumb_crd::{Application, SpecProblem, to_operation};

use crate::app_run::AppRun;
use crate::operation::active::ActiveOperation;
use crate::operation::state::OperationSlot;

/// The operation that is under way, if any: in this process, in an earlier one, or just requested.
pub(crate) fn current_operation(
    run: &AppRun<'_>,
    application: &Application,
    slot: &mut OperationSlot,
) -> Option<ActiveOperation> {
    let asked = application.operation.as_ref();
    if let Some(active) = slot.active.take() {
        // Not written yet, or still the same: ours goes on. If a user removed it, it is over.
        let is_current = asked.is_none_or(|asked| *asked == active.wire);
        if is_current && (asked.is_some() || active.state.is_none()) {
            return Some(active);
        }
        asked?;
    }
    let asked = asked?;
    let operation = match to_operation(asked) {
        Ok(operation) => operation,
        Err(problems) => return refused(run, application, slot, asked, &problems),
    };
    let state = application.status.operation_state.as_deref();
    let is_under_way = |phase: OperationPhase| !phase.is_completed();
    let under_way =
        state.filter(|state| state.operation == *asked && state.phase().is_some_and(is_under_way));
    Some(match under_way {
        Some(state) => ActiveOperation::resume(asked.clone(), operation, state),
        None => begin(run, application, slot, asked.clone(), operation),
    })
}

/// Starts an operation.
pub(super) fn begin(
    run: &AppRun<'_>,
    application: &Application,
    slot: &mut OperationSlot,
    wire: wire::Operation,
    asked: Operation,
) -> ActiveOperation {
    // A client that requests an operation clears the state of the last one; this process remembers its start.
    let written = application.status.operation_state.as_ref().map(|state| state.started_at);
    let active = ActiveOperation::begin(wire, asked, run.now, written.max(slot.last_start));
    slot.last_start = Some(active.record.started_at);
    active
}

/// An invalid operation ends as soon as it begins and says why, so that another one can be requested.
fn refused(
    run: &AppRun<'_>,
    application: &Application,
    slot: &mut OperationSlot,
    asked: &wire::Operation,
    problems: &[SpecProblem],
) -> Option<ActiveOperation> {
    let empty = wire::Operation { sync: Some(Box::default()), ..wire::Operation::default() };
    let mut active = begin(run, application, slot, asked.clone(), to_operation(&empty).ok()?);
    let message: Vec<String> = problems.iter().map(ToString::to_string).collect();
    let (record, _) = active.record.erred(&message.join("; "), &retry_policy(None, false), run.now);
    active.record = record;
    Some(active)
}
