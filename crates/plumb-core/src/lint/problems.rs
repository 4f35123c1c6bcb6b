//! Documents that do not become objects.

use super::{LintApp, LintFinding, LintRule, Severity};
use crate::desired::DesiredProblem;

pub(super) fn check(app: &LintApp<'_>) -> Vec<LintFinding> {
    app.desired.problems.iter().filter_map(|problem| of_problem(app.name, problem)).collect()
}

fn of_problem(app: &str, problem: &DesiredProblem) -> Option<LintFinding> {
    let finding = |message: String, fix: &str| LintFinding::new(LintRule::InvalidManifest, app, message, fix);
    Some(match problem {
        DesiredProblem::Repeated { key, count, origins } => {
            let places: Vec<String> =
                origins.iter().map(|origin| format!("{}:{}", origin.file, origin.line)).collect();
            let places = if places.is_empty() { String::new() } else { format!(" ({})", places.join(", ")) };
            finding(
                format!("the object is there {count} times{places}: the last one counts"),
                "keep one of them",
            )
            .of(Some(key.clone()), origins.last())
        }
        DesiredProblem::NamespaceMissing { key } => {
            finding("neither the object nor the app names a namespace".to_owned(), "name one")
                .of(Some(key.clone()), None)
                .with_severity(Severity::Warning)
        }
        DesiredProblem::NameMissing { kind, origin } => {
            finding(format!("a {kind} without a name"), "give it a name").of(None, origin.as_ref())
        }
        DesiredProblem::NotAnObject { reason, origin } => {
            finding(format!("not a Kubernetes object: {reason}"), "remove the document, or exclude the file")
                .of(None, origin.as_ref())
        }
        DesiredProblem::NotText { key, field, origin } => {
            finding(format!("{field} is not text: the API server refuses the object"), "put it in quotes")
                .of(key.clone(), origin.as_ref())
                .at(vec![field.clone()])
        }
        DesiredProblem::Excluded { .. } | DesiredProblem::PassedOver { .. } => return None,
    })
}
