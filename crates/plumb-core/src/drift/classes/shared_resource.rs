//! E: two apps render it.

use super::super::case::{Case, Explained};
use super::super::{DriftClass, Fix, FixKind};
use crate::object::FieldPath;

/// Another app owns the object.
pub(in crate::drift) fn not_ours(case: &Case<'_>, owner: &str) -> Vec<Explained> {
    let mut whole = Explained::new(
        DriftClass::SharedResource,
        FieldPath::root(),
        true,
        format!(
            "apps `{owner}` and `{}` both render this object; `{owner}` tracks it and keeps it",
            case.facts().app
        ),
    );
    whole.actor = Some(owner.to_owned());
    let disputed = case.comparison.differences.iter().map(|difference| {
        let mut field = Explained::new(
            DriftClass::SharedResource,
            difference.path.clone(),
            true,
            format!("in dispute at {}: {}", difference.path, case.values(difference)),
        );
        field.actor = Some(owner.to_owned());
        field
    });
    std::iter::once(whole).chain(disputed).collect()
}

/// This app owns the object, and another renders it too.
pub(in crate::drift) fn ours(case: &Case<'_>) -> Option<Explained> {
    let others: Vec<&str> =
        case.facts().claims.iter().map(|claim| claim.app).filter(|app| *app != case.facts().app).collect();
    if others.is_empty() {
        return None;
    }
    let others = others.join("`, `");
    let mut explained = Explained::new(
        DriftClass::SharedResource,
        FieldPath::root(),
        false,
        format!("app `{others}` renders this object too; this app tracks it and keeps it"),
    );
    explained.actor = Some(others);
    Some(explained)
}

pub(in crate::drift) fn fix() -> Fix {
    super::fix(FixKind::Decide, "keep the object in one app, and remove it from the other's source")
}
