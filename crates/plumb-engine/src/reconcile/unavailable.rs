//! An app that stands on nothing: its project, its cluster or its operation cannot be had.

use plumb_core::status::After;
use plumb_core::sync::deletion::FINALIZERS;
use plumb_core::sync::retry_policy;
use plumb_crd::Application;
use tracing::warn;

use crate::apps::context::Groundless;
use crate::queue::{Look, Trigger};
use crate::reconcile::run::Run;
use crate::state::app_state::Memory;

impl Run<'_> {
    /// The app stands on nothing: says so, and leaves everything as it is.
    pub(super) async fn without_ground(
        &mut self,
        application: &Application,
        why: Groundless,
        memory: &mut Memory,
    ) {
        let deleting = application.is_terminating();
        match why {
            Groundless::NotYet | Groundless::LeftAlone => {}
            Groundless::ClusterUnknown(_) if deleting => self.leave_all(application).await,
            // Its objects are there, and somebody wants them gone: that waits until they can be reached.
            Groundless::ClusterAway(why) | Groundless::ClusterUnclear(why) if deleting => {
                self.conditions.add("DeletionError", why);
                self.write_deletion(application).await;
            }
            Groundless::Refused(problems) if deleting => {
                for problem in problems {
                    self.conditions.add("DeletionError", problem);
                }
                self.write_deletion(application).await;
            }
            Groundless::ClusterAway(why) => {
                // An operation waits: it goes on when the cluster is back, unless somebody wants it to stop.
                self.conditions.add("ComparisonError", why);
                let state = application.status.operation_state.as_ref();
                if state.is_some_and(|state| state.phase == "Terminating") {
                    self.fail_operation(application, memory).await;
                }
                self.write_unreachable(application, memory).await;
            }
            Groundless::ClusterUnknown(why) | Groundless::ClusterUnclear(why) => {
                self.conditions.add("InvalidSpecError", why);
                self.fail_operation(application, memory).await;
                self.write_invalid(memory).await;
            }
            Groundless::Refused(problems) => {
                for problem in problems {
                    self.conditions.add("InvalidSpecError", problem);
                }
                self.fail_operation(application, memory).await;
                self.write_invalid(memory).await;
            }
        }
    }

    /// An app is deleted whose cluster is not known: its objects stay where they are.
    pub(super) async fn leave_all(&mut self, application: &Application) {
        warn!(app = %self.known.id, "its cluster is not known: its objects stay where they are");
        self.drop_finalizers(application, &FINALIZERS).await;
    }

    /// An operation cannot go on: what it needs is missing.
    pub(super) async fn fail_operation(&mut self, application: &Application, memory: &mut Memory) {
        // One that has ended and is not written down yet must not begin again.
        if memory.unwritten.is_some() {
            return;
        }
        let Some(mut active) = self.current_operation(application, memory) else { return };
        if active.retry_at.is_some_and(|at| self.now < at) {
            // It has failed already, and its next try has not begun.
            memory.operation = Some(active);
            return;
        }
        // One that was asked for wrongly has ended already. A spec that is wrong does not mend itself: no other try.
        let may_retry = self.known.app.is_ok();
        let retry = Some(&active.asked.retry).filter(|_| may_retry);
        let policy = retry_policy(retry, active.is_automated() && may_retry);
        let message = self.conditions.errors().join("; ");
        let after = if active.record.phase.is_completed() {
            After::Ended
        } else {
            let (record, after) = active.record.erred(&message, &policy, self.now);
            active.record = record;
            after
        };
        match after {
            After::Ended => {
                self.count_ended(&active);
                self.write_ended(application, &active).await;
            }
            After::RetryAt(at) => {
                active.retry_at = Some(at);
                if let Ok(app) = &self.known.app {
                    self.wake_at(app, Trigger::new(Look::Live, "retry"), at);
                }
                memory.operation = Some(active);
            }
            After::GoOn => memory.operation = Some(active),
        }
    }
}
