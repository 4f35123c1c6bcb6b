//! Conditions that follow from what was seen.

use plumb_core::app::App;
use plumb_core::desired::{DesiredProblem, Origin};
use plumb_core::drift::DriftClass;
use tracing::{debug, warn};

use crate::apps::context::Ground;
use crate::compare::run::Compared;
use crate::reconcile::run::Run;

/// So many objects that are stuck have a condition of their own; the report names all.
const MOST_STUCK: usize = 3;

impl Run<'_> {
    /// Conditions that follow from what was seen.
    pub(crate) fn warn(&mut self, compared: &Compared, ground: &Ground) {
        for (key, apps) in &compared.shared {
            let apps: Vec<&str> = apps.iter().map(String::as_str).collect();
            self.conditions.add(
                "SharedResourceWarning",
                format!("{key} is part of applications {} and {}", ground.instance, apps.join(", ")),
            );
        }
        let stuck: Vec<String> = compared
            .checked
            .ill
            .iter()
            .filter(|ill| ill.is_stuck)
            .take(MOST_STUCK)
            .map(|ill| format!("{} is {}", ill.key, ill.message))
            .collect();
        for message in stuck {
            self.conditions.add("StuckWarning", message);
        }
        for problem in &compared.gathered.desired.get().problems {
            match problem {
                DesiredProblem::Repeated { key, count, .. } => {
                    self.conditions.add(
                        "RepeatedResourceWarning",
                        format!("Resource {key} appeared {count} times among application resources."),
                    );
                }
                DesiredProblem::Excluded { key } => {
                    self.conditions.add(
                        "ExcludedResourceWarning",
                        format!("Resource {key} is excluded in the settings"),
                    );
                }
                DesiredProblem::NamespaceMissing { key } => {
                    self.conditions.add("InvalidSpecError", format!("Namespace for {key} is missing."));
                }
                DesiredProblem::NameMissing { kind, origin } => {
                    self.conditions
                        .add("ComparisonError", format!("a {kind}{} has no name", place(origin.as_ref())));
                }
                DesiredProblem::NotAnObject { reason, origin } => {
                    self.conditions.add(
                        "ComparisonError",
                        format!("a document{} is left out: {reason}", place(origin.as_ref())),
                    );
                }
                DesiredProblem::NotText { key, field, origin } => {
                    let object = key.as_ref().map_or_else(|| "an object".to_owned(), ToString::to_string);
                    self.conditions.add(
                        "ComparisonError",
                        format!("{object}{}: {field} is no text: put it in quotes", place(origin.as_ref())),
                    );
                }
            }
        }
        for (key, error) in &compared.unreadable {
            warn!(object = %key, %error, "cannot be read");
            self.conditions.add("ComparisonError", format!("{key} cannot be read: {error}"));
        }
        for problem in &ground.rule_problems {
            self.conditions.add("ComparisonError", problem.clone());
        }
        for verdict in compared.verdicts.values() {
            for finding in verdict.findings.iter().filter(|finding| finding.class == DriftClass::Blocked) {
                debug!(object = %finding.key, evidence = ?finding.evidence, "blocked");
            }
        }
    }

    /// Says how many objects of the app's namespace belong to nobody, where the project asks.
    pub(crate) fn look_for_orphans(&mut self, app: &App, ground: &Ground) {
        let (Some(rules), Some(namespace)) = (ground.project.orphans(), &app.destination.namespace) else {
            return self.engine.orphans.forget(&app.id);
        };
        let control_plane = &self.engine.options.namespace;
        let registry = &self.engine.registry;
        let found = crate::compare::orphans::find(
            &ground.cluster.store,
            namespace,
            rules,
            |key| ground.denies(key).is_none(),
            |instance| registry.by_instance(instance, control_plane).is_some(),
        );
        self.engine.orphans.note(&app.id, &ground.cluster.server, namespace, found.len());
        if rules.warns() && !found.is_empty() {
            let message = format!("Application has {} orphaned resources", found.len());
            self.conditions.add("OrphanedResourceWarning", message);
        }
    }
}

/// ` at app/web.yaml:3`, if it is known.
fn place(origin: Option<&Origin>) -> String {
    origin.map(|origin| format!(" at {}:{}", origin.file, origin.line)).unwrap_or_default()
}
