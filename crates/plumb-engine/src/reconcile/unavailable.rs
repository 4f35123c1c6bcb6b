//! An app whose project or cluster is not available, or whose operation cannot go on.

use plumb_core::status::After;
use plumb_core::sync::deletion::FINALIZERS;
use plumb_core::sync::retry_policy;
use plumb_crd::Application;
use plumb_crd::application::ConditionType;
use tracing::warn;

use crate::app_run::AppRun;
use crate::apps::context::Unavailable;
use crate::deletion::app::drop_finalizers;
use crate::operation::state::OperationSlot;
use crate::queue::{Trigger, TriggerReason};
use crate::state::app_state::AppState;
use crate::status::unknown::{write_invalid, write_unreachable};
use crate::status::write::{write_deletion, write_ended};
use crate::sync::advance::count_ended;
use crate::sync::requested::current_operation;

/// Writes why the app cannot be reconciled, and leaves its objects as they are.
pub(super) async fn without_context(
    run: &mut AppRun<'_>,
    application: &Application,
    why: Unavailable,
    state: &mut AppState,
) {
    let deleting = application.is_terminating();
    match why {
        Unavailable::NotYet | Unavailable::LeftAlone => {}
        Unavailable::ClusterUnknown(_) if deleting => leave_objects(run, application).await,
        // The objects exist and are to be deleted: that waits until plumb can reach them.
        Unavailable::ClusterAway(why) | Unavailable::ClusterUnclear(why) if deleting => {
            run.conditions.add(ConditionType::DeletionError, why);
            write_deletion(run, application).await;
        }
        Unavailable::Refused(problems) if deleting => {
            for problem in problems {
                run.conditions.add(ConditionType::DeletionError, problem);
            }
            write_deletion(run, application).await;
        }
        Unavailable::ClusterAway(why) => {
            // An operation goes on when the cluster is back, unless a user terminated it.
            run.conditions.add(ConditionType::ComparisonError, why);
            let operation = application.status.operation_state.as_ref();
            if operation.is_some_and(|operation| operation.phase == "Terminating") {
                fail_operation(run, application, &mut state.operation).await;
            }
            write_unreachable(run, application, state).await;
        }
        Unavailable::ClusterUnknown(why) | Unavailable::ClusterUnclear(why) => {
            run.conditions.add(ConditionType::InvalidSpecError, why);
            fail_operation(run, application, &mut state.operation).await;
            write_invalid(run, state).await;
        }
        Unavailable::Refused(problems) => {
            for problem in problems {
                run.conditions.add(ConditionType::InvalidSpecError, problem);
            }
            fail_operation(run, application, &mut state.operation).await;
            write_invalid(run, state).await;
        }
    }
}

/// Ends the deletion of an app whose cluster is not registered. Its objects stay where they are.
pub(super) async fn leave_objects(run: &mut AppRun<'_>, application: &Application) {
    warn!("the app's cluster is not registered: its objects are not deleted");
    drop_finalizers(run, application, &FINALIZERS).await;
}

/// Ends an attempt of an operation that cannot go on because what it needs is missing.
pub(super) async fn fail_operation(
    run: &mut AppRun<'_>,
    application: &Application,
    slot: &mut OperationSlot,
) {
    // An operation that has ended and is not written yet must not start again.
    if slot.ended.is_some() {
        return;
    }
    let Some(mut active) = current_operation(run, application, slot) else { return };
    if active.retry_at.is_some_and(|at| run.now < at) {
        // It has failed already, and its next attempt has not started.
        slot.active = Some(active);
        return;
    }
    // An invalid operation has ended already. An invalid spec stays invalid: no other attempt.
    let may_retry = run.snapshot.app.is_ok();
    let retry = Some(&active.asked.retry).filter(|_| may_retry);
    let policy = retry_policy(retry, active.is_automated() && may_retry);
    let message = run.conditions.errors().join("; ");
    let after = if active.record.phase.is_completed() {
        After::Ended
    } else {
        let (record, after) = active.record.erred(&message, &policy, run.now);
        active.record = record;
        after
    };
    match after {
        After::Ended => {
            count_ended(run, &active);
            write_ended(run, application, &active).await;
        }
        After::RetryAt(at) => {
            active.retry_at = Some(at);
            if run.snapshot.app.is_ok() {
                run.run_at(Trigger::live(TriggerReason::Retry), at);
            }
            slot.active = Some(active);
        }
        After::GoOn => slot.active = Some(active),
    }
}
