//! What is written where nothing could be compared.

use plumb_crd::Application;
use plumb_crd::application as wire;
use plumb_crd::wire::whole_seconds;

use super::patch::Lock;
use crate::queue::Look;
use crate::reconcile::run::Run;
use crate::state::app_state::Memory;

impl Run<'_> {
    /// Nothing could be compared: the spec is wrong.
    pub(crate) async fn write_invalid(&mut self, memory: &mut Memory) {
        let mut after =
            self.known.wire.as_ref().map(|application| application.status.clone()).unwrap_or_default();
        let conditions = self.conditions.on_wire(&after.conditions, self.now);
        let is_same = after.health.status == "Unknown";
        after.sync = wire::SyncStatus { status: "Unknown".to_owned(), ..after.sync };
        after.health = wire::HealthStatus {
            status: "Unknown".to_owned(),
            message: String::new(),
            last_transition_time: if is_same {
                after.health.last_transition_time
            } else {
                Some(whole_seconds(self.now))
            },
        };
        after.conditions = conditions;
        after.controller_namespace.clone_from(&self.engine.options.namespace);
        if self.known.requested_refresh().is_some() || after.reconciled_at.is_none() {
            after.reconciled_at = Some(whole_seconds(self.now));
        }
        memory.gathered = None;
        self.send(&after, Lock::Leave).await;
    }

    /// What Git asks could not be worked out: the objects keep their entries, nothing is known about them.
    pub(crate) async fn write_unknown(&mut self, application: &Application, memory: &mut Memory) {
        let mut after = self.nothing_known(application, memory);
        if after.health.status.is_empty() {
            "Unknown".clone_into(&mut after.health.status);
            after.health.last_transition_time = Some(whole_seconds(self.now));
        }
        self.send(&after, Lock::Leave).await;
    }

    /// The cluster cannot be seen: nothing is known about any object, its health included.
    pub(crate) async fn write_unreachable(&mut self, application: &Application, memory: &mut Memory) {
        let mut after = self.nothing_known(application, memory);
        if after.health.status != "Unknown" {
            after.health = wire::HealthStatus {
                status: "Unknown".to_owned(),
                message: String::new(),
                last_transition_time: Some(whole_seconds(self.now)),
            };
        }
        after.controller_namespace.clone_from(&self.engine.options.namespace);
        self.send(&after, Lock::Leave).await;
    }

    fn nothing_known(&self, application: &Application, memory: &Memory) -> wire::ApplicationStatus {
        // This run may have written the end of an operation already.
        let known = self.known.wire.as_ref().map_or(&application.status, |known| &known.status);
        let mut after = known.clone();
        for resource in after.resources.iter_mut().filter(|resource| !resource.status.is_empty()) {
            "Unknown".clone_into(&mut resource.status);
        }
        "Unknown".clone_into(&mut after.sync.status);
        after.sync.compared_to = wire::ComparedTo::of(&application.spec);
        after.conditions = self.conditions.on_wire(&after.conditions, self.now);
        if self.look >= Look::GitNow || after.reconciled_at.is_none() {
            after.reconciled_at = Some(whole_seconds(self.now));
        }
        if let Some(active) = &memory.operation {
            after.operation_state = Some(Box::new(active.to_wire(&application.spec)));
        }
        after
    }
}
