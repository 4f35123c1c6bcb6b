//! M: cannot be compared or applied.

use super::super::case::{Case, Explained};
use super::super::{ApiFailure, DriftClass, Fix, FixKind};
use crate::object::{FieldPath, Segment};

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
    failure.causes.iter().map(|cause| blocked(pointer(&cause.field), &cause.message)).collect()
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

/// `spec.template.spec.containers[0].image` as a path. Keys in brackets (`annotations[a/b]`) are fields.
pub(in crate::drift) fn pointer(field: &str) -> FieldPath {
    let mut segments = Vec::new();
    let mut rest = field;
    while !rest.is_empty() {
        if let Some(inner) = rest.strip_prefix('[') {
            let Some((key, after)) = inner.split_once(']') else { break };
            segments.push(key.parse().map_or_else(|_| Segment::Field(key.to_owned()), Segment::Index));
            rest = after;
        } else {
            rest = rest.strip_prefix('.').unwrap_or(rest);
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            let (name, after) = rest.split_at(end);
            if name.is_empty() {
                break;
            }
            segments.push(Segment::Field(name.to_owned()));
            rest = after;
        }
    }
    FieldPath::from(segments)
}

pub(in crate::drift) fn fix(hints: &[String]) -> Fix {
    super::fix(
        FixKind::Decide,
        hints.first().cloned().unwrap_or_else(|| "fix what the server refuses, in Git".to_owned()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_the_server_become_pointers() {
        for (field, expected) in [
            ("spec.maxUnavailable", "/spec/maxUnavailable"),
            ("spec.template.spec.containers[0].image", "/spec/template/spec/containers/0/image"),
            ("metadata.annotations[a/b.c]", "/metadata/annotations/a~1b.c"),
            ("", ""),
            ("..x", "/"),
        ] {
            assert_eq!(pointer(field).to_string(), expected.trim_end_matches('/'), "{field}");
        }
    }
}
