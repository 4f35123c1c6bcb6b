//! A dry run: everything is tried, nothing is kept.

use super::Verb;
use super::message;
use super::next::{Conclusion, Turn};
use super::state::Progress;
use crate::plan::{Action, Group, HowToApply, Step};

impl Turn<'_, '_> {
    /// A dry run: everything is tried at once, in no order.
    pub(super) fn try_all(&mut self, groups: &[Group]) -> Conclusion {
        let steps: Vec<&Step> = groups.iter().flat_map(|group| &group.steps).collect();
        for step in &steps {
            self.record_without_command(step);
        }
        for step in &steps {
            if self.state.progress(step) == Progress::Pending {
                self.try_step(step);
            }
        }
        if !self.state.in_flight.is_empty() {
            return Self::running_tasks();
        }
        if steps.iter().any(|step| self.state.progress(step) == Progress::Failed) {
            return Conclusion::Failed(message::failure(&self.state));
        }
        Conclusion::Succeeded("successfully synced (all tasks run)".to_owned())
    }

    fn try_step(&mut self, step: &Step) {
        match &step.action {
            Action::Apply { how, strict, migrate, .. } => {
                self.send(step, Verb::Apply { how: *how, strict: *strict, migrate: *migrate, dry_run: true });
            }
            Action::RunHook(hook) => {
                let manifest = hook.manifest.clone();
                let verb =
                    Verb::ApplyManifest { manifest, how: hook.how, strict: hook.strict, dry_run: true };
                self.send(step, verb);
            }
            Action::CreateNamespace { manifest } => {
                let how = HowToApply::ServerSide;
                let verb =
                    Verb::ApplyManifest { manifest: manifest.clone(), how, strict: false, dry_run: true };
                self.send(step, verb);
            }
            Action::Unchanged | Action::Skip(_) | Action::Prune { .. } => {}
        }
    }
}
