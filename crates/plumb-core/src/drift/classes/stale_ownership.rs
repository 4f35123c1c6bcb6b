//! L: removed from Git, kept alive by an older manager.

use super::super::case::{Case, Explained, writer};
use super::super::{DriftClass, Fix, FixKind};
use crate::compare::{Addition, Fill};
use crate::fields::Entry;

/// An earlier apply, by client or by another tool, that still owns something.
pub(in crate::drift) fn owner<'c, 'a>(case: &'c Case<'a>, addition: &Addition<'_>) -> Option<&'c Entry<'a>> {
    let place = addition.whole.as_ref().unwrap_or(&addition.path);
    let ours = case.owners.ours().and_then(|entry| entry.time_text);
    case.owners.of_place(place).find(|entry| {
        (entry.is_client_side_apply() || entry.is_other_delivery())
            && ours.is_none_or(|ours| entry.time_text <= Some(ours))
    })
}

/// Was it part of what was applied? A client-side apply owns defaults too; the record of what it was given
/// tells the two apart. Without the record, what is no known default was given.
pub(in crate::drift) fn addition(
    case: &Case<'_>,
    addition: &Addition<'_>,
    entry: &Entry<'_>,
) -> Option<Explained> {
    let was_given = match case.last_applied() {
        _ if entry.is_other_delivery() => true,
        Some(last_applied) => addition.path.find(last_applied).is_some(),
        None => addition.fill == Fill::None && entry.manager != "before-first-apply",
    };
    was_given.then(|| {
        let mut explained = Explained::new(
            DriftClass::StaleOwnership,
            addition.path.clone(),
            true,
            format!(
                "Git no longer has {}; it lives on because `{}` still owns it",
                addition.path,
                writer(entry)
            ),
        )
        .by(entry);
        explained.take = Some(addition.path.clone());
        explained
    })
}

pub(in crate::drift) fn fix(app: &str) -> Fix {
    super::fix(
        FixKind::Sync,
        format!("`plumb app sync {app}`: the ownership moves to this app, then the field goes"),
    )
}
