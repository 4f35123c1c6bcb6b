//! M: cannot be compared or applied.

use super::super::case::{Case, Explained};
use super::super::{ApiFailure, DriftClass, Fix, FixKind};
use crate::object::FieldPath;

/// Lists in Git that name an item twice: the server refuses to merge them.
pub(in crate::drift) fn duplicates(case: &Case<'_>) -> impl Iterator<Item = Explained> {
    case.comparison.duplicates.iter().map(|path| {
        let mut explained = Explained::new(
            DriftClass::Blocked,
            path.clone(),
            true,
            format!("{path} names the same item twice; a server-side apply refuses that (in a pod the last one wins)"),
        );
        explained.hint = Some("remove the duplicate from Git".to_owned());
        explained
    })
}

/// The server refuses what Git asks.
pub(in crate::drift) fn refused(failure: &ApiFailure, is_secret: bool) -> Vec<Explained> {
    // The server quotes values in its messages.
    let message = |text: &str| if is_secret { failure.reason.clone() } else { bounded(text) };
    let hint = if failure.message.contains("immutable") {
        "the field cannot be changed in place: replace the object (sync options `Force=true,Replace=true`), or take the change back"
    } else {
        "fix what the server refuses, in Git"
    };
    let immutable = if failure.message.contains("immutable") { "immutable: " } else { "" };
    let blocked = |path: FieldPath, text: &str| {
        let mut explained = Explained::new(
            DriftClass::Blocked,
            path,
            true,
            format!("the server refuses it: {immutable}{}", message(text)),
        );
        explained.hint = Some(hint.to_owned());
        explained
    };
    if failure.causes.is_empty() {
        return vec![blocked(FieldPath::root(), &failure.message)];
    }
    failure.causes.iter().map(|cause| blocked(FieldPath::from_server(&cause.field), &cause.message)).collect()
}

/// An error of the server can quote a whole pod template.
fn bounded(text: &str) -> String {
    const MAX: usize = 300;
    if text.chars().count() <= MAX {
        return text.to_owned();
    }
    let head: String = text.chars().take(MAX / 2).collect();
    let tail: Vec<char> = text.chars().rev().take(MAX / 2).collect();
    format!("{head} … {}", tail.into_iter().rev().collect::<String>())
}

pub(in crate::drift) fn fix(hints: &[String]) -> Fix {
    super::fix(
        FixKind::Decide,
        hints.first().cloned().unwrap_or_else(|| "fix what the server refuses, in Git".to_owned()),
    )
}
