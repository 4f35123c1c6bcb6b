//! The API server does not know the field, sets it itself, or drops it.

use crate::compare::Difference;
use crate::drift::case::Case;
use crate::drift::explained::Explained;
use crate::drift::{DriftClass, Fix, FixKind};
use crate::normalize::{is_kept_annotation, is_kept_metadata};
use crate::object::FieldPath;

/// Fields in Git that the schema does not have.
pub(in crate::drift) fn unknown(case: &Case<'_>) -> Vec<Explained> {
    let kind = format!("{} {}", case.desired.api_version(), case.desired.kind());
    let explain = |(path, nearest): &(FieldPath, Option<String>)| {
        let hint = match nearest {
            Some(nearest) => format!("; did you mean `{nearest}`?"),
            None => String::new(),
        };
        let mut explained = Explained::new(
            DriftClass::RejectedField,
            path.clone(),
            true,
            format!("{path} is not a field of {kind}{hint}"),
        );
        explained.hint.clone_from(nearest);
        explained
    };
    case.comparison.unknown.iter().map(explain).collect()
}

/// Fields that only the API server or a controller sets, and that Git sets too.
pub(in crate::drift) fn kept(case: &Case<'_>) -> Vec<Explained> {
    let hint =
        |path: FieldPath, why: &'static str| Explained::new(DriftClass::RejectedField, path, false, why);
    let root = FieldPath::root();
    let mut found = Vec::new();
    let value = case.desired.value();
    if let Some(metadata) = value.get("metadata").and_then(|metadata| metadata.as_object()) {
        for (name, value) in metadata {
            if is_kept_metadata(name) && !value.is_null() {
                found.push(hint(
                    root.field("metadata").field(name.as_str()),
                    "set only by the API server; plumb does not apply it",
                ));
            }
        }
        for key in case.desired.annotations().keys().filter(|key| is_kept_annotation(key)) {
            found.push(hint(
                root.field("metadata").field("annotations").field(*key),
                "this annotation is maintained by a controller of the cluster; plumb does not apply it",
            ));
        }
    }
    let has_status = value.get("status").is_some_and(|status| !status.is_null());
    if has_status && Case::aside(case.kind).status {
        found.push(hint(
            root.field("status"),
            "`status` is written by the controller through its own subresource; plumb does not apply it",
        ));
    }
    found
}

/// A field that the API server knows and still drops: it belongs to a disabled feature, or only the API server sets it.
pub(in crate::drift) fn dropped(case: &Case<'_>, difference: &Difference<'_>) -> Explained {
    Explained::new(
        DriftClass::RejectedField,
        difference.desired_path.clone(),
        false,
        format!(
            "the API server drops {} on every write: its feature is disabled in this cluster, or only the API server sets it; {}",
            difference.desired_path,
            case.values(difference)
        ),
    )
    .at_difference(difference)
}

pub(in crate::drift) fn fix(counts: bool, hints: &[String]) -> Fix {
    let text = match (counts, hints) {
        (false, _) => "remove the line from Git".to_owned(),
        (true, []) => "fix or remove the line in Git".to_owned(),
        (true, hints) => format!("fix the line in Git; closest known name: `{}`", hints.join("`, `")),
    };
    Fix::new(FixKind::EditGit, text)
}
