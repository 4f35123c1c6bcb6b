//! An app whose project or cluster is not available, or whose operation cannot go on.

use plumb_core::app::App;
use plumb_core::object::Manifest;
use plumb_core::status::After;
use plumb_core::sync::deletion::{FINALIZERS, POST_DELETE, PRE_DELETE};
use plumb_core::sync::{OperationPhase, retry_policy};
use plumb_core::tracking::{TrackedBy, tracked_by};
use plumb_crd::Application;
use plumb_crd::application::ConditionType;
use tracing::{info, warn};

use crate::app_run::AppRun;
use crate::apps::context::Unavailable;
use crate::cluster::clusters::ClusterState;
use crate::deletion::app::drop_finalizers;
use crate::operation::state::OperationSlot;
use crate::queue::{Trigger, TriggerReason};
use crate::state::app_state::AppState;
use crate::status::unknown::{write_invalid, write_unreachable};
use crate::status::write::{write_deletion, write_ended};
use crate::sync::advance::count_ended;
use crate::sync::requested::current_operation;

/// An app as the cluster holds it, and checked.
#[derive(Clone, Copy)]
pub(super) struct AppParts<'a> {
    pub(super) application: &'a Application,
    pub(super) app: &'a App,
}

/// Writes why the app cannot be reconciled, and leaves its objects as they are.
pub(super) async fn without_context(
    run: &mut AppRun<'_>,
    parts: AppParts<'_>,
    why: Unavailable,
    state: &mut AppState,
) {
    let AppParts { application, app } = parts;
    let deleting = application.is_terminating();
    match why {
        Unavailable::NotYet | Unavailable::LeftAlone => {}
        Unavailable::ClusterUnknown(_) if deleting => leave_objects(run, application).await,
        // The objects exist and are to be deleted: that waits until plumb can reach them.
        Unavailable::ClusterAway(why) | Unavailable::ClusterUnclear(why) if deleting => {
            run.conditions.add(ConditionType::DeletionError, why);
            write_deletion(run, application).await;
        }
        Unavailable::Refused(_) if deleting && has_nothing_to_delete(run, parts).await => {
            info!("the app has no objects in the cluster: it is deleted although its project refuses it");
            drop_finalizers(run, application, &FINALIZERS).await;
        }
        Unavailable::Refused(problems) if deleting => {
            for problem in problems {
                let message = format!(
                    "cannot delete the objects of the app: {problem}. Let the project {} permit it, or remove the \
                     finalizers of the Application: then its objects stay in the cluster",
                    app.project
                );
                run.conditions.add(ConditionType::DeletionError, message);
            }
            write_deletion(run, application).await;
        }
        Unavailable::ClusterAway(why) => {
            // An operation goes on when the cluster is back, unless a user terminated it.
            run.conditions.add(ConditionType::ComparisonError, why);
            let operation = application.status.operation_state.as_ref();
            if operation.is_some_and(|operation| operation.phase() == Some(OperationPhase::Terminating)) {
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

/// True if the deletion of the app has nothing to do: no object of its cluster is tracked by it, and no hooks run. That needs
/// no permission.
async fn has_nothing_to_delete(run: &AppRun<'_>, parts: AppParts<'_>) -> bool {
    let AppParts { application, app } = parts;
    let (engine, hooks) = (run.engine, [PRE_DELETE, POST_DELETE]);
    let finalizers = &application.metadata.finalizers;
    if finalizers.iter().any(|finalizer| hooks.contains(&finalizer.as_str())) {
        return false;
    }
    let settings = engine.config.settings();
    let destination = &app.destination.cluster;
    let reached = engine.clusters.reach(&app.id, destination, settings.in_cluster_enabled);
    let ClusterState::Ready(cluster) = reached else { return false };
    let instance = app.id.instance_name(&engine.options.namespace);
    let snapshot = cluster.store.snapshot(&instance, &[], &[]).await;
    if !snapshot.live.complete {
        engine.run_when_listed(run.id(), &cluster);
        return false;
    }
    let is_tracked = |live: &Manifest| tracked_by(live, &instance, &settings.tracking) == TrackedBy::Ours;
    !snapshot.live.objects.values().any(|live| is_tracked(live))
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
