//! L: removed from Git, kept alive by an older manager.

use super::super::case::{Case, Explained, writer};
use super::super::{DriftClass, Fix, FixKind};
use crate::compare::{Addition, Fill};
use crate::fields::{Entry, is_control_plane};

/// An earlier apply, by client or by another tool, that still owns something.
pub(in crate::drift) fn owner<'c, 'a>(case: &'c Case<'a>, addition: &Addition<'_>) -> Option<&'c Entry<'a>> {
    let place = addition.whole.as_ref().unwrap_or(&addition.path);
    let ours = case.owners.ours().and_then(|entry| entry.time_text);
    case.owners.of_place(place).find(|entry| {
        (entry.is_client_side_apply() || entry.is_other_delivery())
            && ours.is_none_or(|ours| entry.time_text <= Some(ours))
    })
}

/// Git had it, for it stands in our own record, and an older writer of the same field keeps it alive. One that wrote
/// after us, or that is a controller at work, would put it back.
pub(in crate::drift) fn shared(
    case: &Case<'_>,
    addition: &Addition<'_>,
    entry: &Entry<'_>,
) -> Option<Explained> {
    let ours = case.owners.ours()?;
    let is_over = entry.time_text <= ours.time_text
        && entry.subresource.is_none()
        && !is_control_plane(entry.manager)
        && !case.is_shown_controller(entry);
    let had_git = addition.whole.is_none() && ours.names(&addition.path, case.live.value());
    (is_over && had_git).then(|| kept_alive(addition, entry))
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
    was_given.then(|| kept_alive(addition, entry))
}

fn kept_alive(addition: &Addition<'_>, entry: &Entry<'_>) -> Explained {
    let path = &addition.path;
    let why = format!("Git no longer has {path}; it lives on because `{}` still owns it", writer(entry));
    let mut explained = Explained::new(DriftClass::StaleOwnership, path.clone(), true, why).by(entry);
    explained.take = Some(path.clone());
    explained
}

pub(in crate::drift) fn fix(app: &str) -> Fix {
    super::fix(
        FixKind::Sync,
        format!("`plumb app sync {app}`: the ownership moves to this app, then the field goes"),
    )
}
