//! Conditions that follow from a comparison.

use plumb_core::desired::{DesiredProblem, Origin};
use plumb_core::drift::DriftClass;
use plumb_core::object::ObjectKey;
use plumb_core::project::PlainSecrets;
use plumb_core::secrets::plain_secrets_message;
use plumb_crd::application::ConditionType;
use tracing::debug;

use crate::app_run::{AppInputs, AppRun};
use crate::apps::conditions::Conditions;
use crate::compare::orphans;
use crate::compare::run::{Compared, LeftTo};

/// At most this many objects that are left to other apps have a condition of their own.
const MOST_LEFT: usize = 5;

/// At most this many stuck objects have a condition of their own. The report names all.
const MOST_STUCK: usize = 3;

/// At most this many edits of Secrets have a condition of their own. `plumb doctor --secrets` names all.
const MOST_EDITED: usize = 3;

/// Adds the conditions that follow from a comparison.
pub(crate) fn add_warnings(run: &mut AppRun<'_>, inputs: AppInputs<'_>, compared: &Compared) {
    let context = inputs.context;
    let conditions = &mut run.conditions;
    for (key, apps) in &compared.shared {
        let apps: Vec<&str> = apps.iter().map(String::as_str).collect();
        let message = format!("{key} is part of applications {} and {}", context.instance, apps.join(", "));
        conditions.add(ConditionType::SharedResourceWarning, message);
    }
    for message in compared.denied.messages() {
        conditions.add(ConditionType::InvalidSpecError, message);
    }
    add_left_to_others(conditions, compared);
    add_plain_secrets(conditions, context.project.plain_secrets(), compared);
    for edited in compared.health.edited.iter().take(MOST_EDITED) {
        conditions.add(ConditionType::DerivedSecretWarning, edited.message());
    }
    for stuck in compared.health.unhealthy.iter().filter(|object| object.is_stuck).take(MOST_STUCK) {
        conditions.add(ConditionType::StuckWarning, format!("{} is {}", stuck.key, stuck.message));
    }
    for problem in &compared.gathered.desired.get().problems {
        if let Some((condition, message)) = condition_of(problem) {
            conditions.add(condition, message);
        }
    }
    for (key, error) in &compared.unreadable {
        // The condition says it; with an API server that cannot be reached there would be a line for every object.
        debug!(object = %key, %error, "cannot read the object");
        conditions.add(ConditionType::ComparisonError, format!("{key} cannot be read: {error}"));
    }
    for problem in &context.rules.problems {
        conditions.add(ConditionType::ComparisonError, problem.clone());
    }
    for problem in context.rules.switched_off() {
        conditions.add(ConditionType::ComparisonError, problem);
    }
    for verdict in compared.verdicts.values() {
        for finding in verdict.findings.iter().filter(|finding| finding.class == DriftClass::Blocked) {
            debug!(object = %finding.key, evidence = ?finding.evidence, "blocked");
        }
    }
    add_orphans(run, inputs);
}

/// Names the Secrets that Git has in plain text. A warning leaves out what a plugin printed: it may have replaced a
/// placeholder. A project that refuses plain Secrets refuses these, too.
fn add_plain_secrets(conditions: &mut Conditions, policy: PlainSecrets, compared: &Compared) {
    let condition = match policy {
        PlainSecrets::Allow => return,
        PlainSecrets::Warn => ConditionType::PlainSecretWarning,
        // The plan refuses the sync.
        PlainSecrets::Refuse => ConditionType::InvalidSpecError,
    };
    let desired = compared.gathered.desired.get();
    let objects = desired.objects.values().map(|object| (&object.manifest, object.origin.as_ref()));
    let hooks = desired.hooks.iter().map(|hook| (&hook.manifest, hook.origin.as_ref()));
    let counted = objects.chain(hooks).filter(|(_, origin)| counts(policy, compared, *origin));
    let message = plain_secrets_message(counted.map(|(manifest, _)| manifest));
    if let Some(message) = message {
        conditions.add(condition, message);
    }
}

/// Does a plain Secret of this origin count?
pub(super) fn counts(policy: PlainSecrets, compared: &Compared, origin: Option<&Origin>) -> bool {
    policy == PlainSecrets::Refuse || !compared.gathered.is_from_plugin(origin)
}

/// Says which objects left Git and are not pruned because of another app.
fn add_left_to_others(conditions: &mut Conditions, compared: &Compared) {
    for (key, LeftTo { app, is_kept }) in compared.left_to_others.iter().take(MOST_LEFT) {
        let message = if *is_kept {
            format!("{key} left Git and is not pruned: application {app} claims it")
        } else {
            format!(
                "{key} left Git and is pruned only by a user: the status of application {app} lists it, and that \
                 application cannot be rendered"
            )
        };
        conditions.add(ConditionType::SharedResourceWarning, message);
    }
    let more = compared.left_to_others.len().saturating_sub(MOST_LEFT);
    if more > 0 {
        let message = format!("{more} more objects left Git and are claimed by other applications");
        conditions.add(ConditionType::SharedResourceWarning, message);
    }
}

/// The condition for a problem; `None` if it is none for the app.
fn condition_of(problem: &DesiredProblem) -> Option<(ConditionType, String)> {
    use ConditionType::{
        ComparisonError, ExcludedResourceWarning, InvalidSpecError, RepeatedResourceWarning,
    };
    Some(match problem {
        // As in Argo CD. The log and `plumb render` name the file.
        DesiredProblem::PassedOver { .. } => return None,
        DesiredProblem::Repeated { key, count, .. } => (
            RepeatedResourceWarning,
            format!("Resource {} appeared {count} times among application resources.", slashed(key)),
        ),
        DesiredProblem::Excluded { key } => {
            let message =
                format!("Resource {}/{} {} is excluded in the settings", key.group, key.kind, key.name);
            (ExcludedResourceWarning, message)
        }
        DesiredProblem::NamespaceMissing { key } => {
            (InvalidSpecError, format!("Namespace for {key} is missing."))
        }
        DesiredProblem::NameMissing { kind, origin } => {
            (ComparisonError, format!("a {kind}{} has no name", place(origin.as_ref())))
        }
        DesiredProblem::NotAnObject { reason, origin } => {
            (ComparisonError, format!("a document{} is left out: {reason}", place(origin.as_ref())))
        }
        DesiredProblem::NotText { key, field, origin } => {
            let object = key.as_ref().map_or_else(|| "an object".to_owned(), ToString::to_string);
            let place = place(origin.as_ref());
            (ComparisonError, format!("{object}{place}: {field} must be a string: put it in quotes"))
        }
    })
}

/// `apps/Deployment/prod/web`, as Argo CD writes a key.
fn slashed(key: &ObjectKey) -> String {
    format!("{}/{}/{}/{}", key.group, key.kind, key.namespace_or_empty(), key.name)
}

/// Counts the objects in the app's namespace that no app tracks, if the project asks for it.
fn add_orphans(run: &mut AppRun<'_>, inputs: AppInputs<'_>) {
    let AppInputs { app, context, .. } = inputs;
    let engine = run.engine;
    let (Some(rules), Some(namespace)) = (context.project.orphans(), &app.destination.namespace) else {
        return engine.orphans.forget(&app.id);
    };
    let found = orphans::find(
        &context.cluster.store,
        namespace,
        rules,
        |key| context.denies(key).is_none(),
        |instance| engine.registry.by_instance(instance, &engine.options.namespace).is_some(),
    );
    engine.orphans.note(&app.id, &context.cluster.server, namespace, found.len());
    if rules.warns() && !found.is_empty() {
        let message = format!("Application has {} orphaned resources", found.len());
        run.conditions.add(ConditionType::OrphanedResourceWarning, message);
    }
}

/// ` at app/web.yaml:3`, if it is known.
fn place(origin: Option<&Origin>) -> String {
    origin.map(|origin| format!(" at {}:{}", origin.file, origin.line)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_about_manifests_have_argo_cds_words() {
        let key = ObjectKey::new("apps", "Deployment", Some("prod".to_owned()), "web");
        let message = |problem: &DesiredProblem| condition_of(problem).map(|(_, message)| message);
        assert_eq!(
            message(&DesiredProblem::Excluded { key: key.clone() }).as_deref(),
            Some("Resource apps/Deployment web is excluded in the settings")
        );
        assert_eq!(
            message(&DesiredProblem::Repeated { key, count: 2, origins: Vec::new() }).as_deref(),
            Some("Resource apps/Deployment/prod/web appeared 2 times among application resources.")
        );
        assert_eq!(message(&DesiredProblem::PassedOver { file: "values.yaml".to_owned() }), None);
    }
}
