//! Problems of rendered manifests, one line each.

use plumb_core::desired::{DesiredProblem, Origin};

/// The problem in words. A problem that loses an object is an error.
pub(crate) fn problem_line(problem: &DesiredProblem) -> String {
    match problem {
        DesiredProblem::NameMissing { kind, origin } => {
            format!("error: a {kind}{} has no name", place(origin.as_ref()))
        }
        DesiredProblem::NotAnObject { reason, origin } => {
            format!("error: a document{} is not an object: {reason}", place(origin.as_ref()))
        }
        DesiredProblem::NamespaceMissing { key } => {
            format!("error: {key} has no namespace, and neither has the destination")
        }
        DesiredProblem::Repeated { key, count, .. } => {
            format!("warning: {key} appears {count} times; the last one is used")
        }
        DesiredProblem::Excluded { key } => format!("warning: {key} is excluded by the settings"),
        DesiredProblem::PassedOver { file } => format!("note: skipped {file}: it is not a manifest"),
        DesiredProblem::NotText { field, origin, .. } => {
            format!("warning: {field}{} is not a string: quote it", place(origin.as_ref()))
        }
    }
}

fn place(origin: Option<&Origin>) -> String {
    origin.map(|origin| format!(" at {}:{}", origin.file, origin.line)).unwrap_or_default()
}
