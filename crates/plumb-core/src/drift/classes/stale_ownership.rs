//! A field was removed from Git, and remains because another field manager still owns it.

use super::controller_owned::is_theirs_to_keep;
use crate::compare::{Addition, Fill, twin};
use crate::drift::case::{Case, last_field, writer};
use crate::drift::explained::Explained;
use crate::drift::{DriftClass, Fix, FixKind, Previous};
use crate::fields::{Entry, Operation, is_control_plane};
use crate::object::{FieldPath, Segment};

/// The entry of an earlier apply, client-side or by another tool, that still owns the field.
pub(in crate::drift) fn owner<'c, 'a>(case: &'c Case<'a>, addition: &Addition<'_>) -> Option<&'c Entry<'a>> {
    let place = addition.whole.as_ref().unwrap_or(&addition.path);
    let ours = case.owners.ours().and_then(|entry| entry.time_text);
    case.owners.of_place(place).find(|entry| {
        (entry.is_client_side_apply() || entry.is_other_delivery())
            && ours.is_none_or(|ours| entry.time_text <= Some(ours))
    })
}

/// Git had the field, because our own entry names it, and another writer of the same field is left. Its name does not
/// matter: only what a controller is meant to keep may stay.
pub(in crate::drift) fn shared(
    case: &Case<'_>,
    addition: &Addition<'_>,
    entry: &Entry<'_>,
) -> Option<Explained> {
    let had_git = addition.whole.is_none() && is_named_by_us(case, addition);
    (had_git && !is_theirs_to_keep(case, addition, entry)).then(|| kept_alive(case, addition, entry))
}

fn is_named_by_us(case: &Case<'_>, addition: &Addition<'_>) -> bool {
    case.owners.ours().is_some_and(|ours| ours.names(&addition.path, case.live.value()))
}

/// Has this writer not written since our last apply, and is it not an active controller?
fn is_over(case: &Case<'_>, entry: &Entry<'_>) -> bool {
    case.owners.ours().is_some_and(|ours| entry.time_text <= ours.time_text) && !is_at_work(case, entry)
}

/// Is the writer a controller, which would put back what it wrote?
pub(in crate::drift) fn is_at_work(case: &Case<'_>, entry: &Entry<'_>) -> bool {
    entry.subresource.is_some() || is_control_plane(entry.manager) || case.is_known_controller(entry)
}

/// Did this writer deliver the whole object before this app did? It owns fields that Git sets too, so its other fields are
/// left over. Helm's own annotations are not.
pub(in crate::drift) fn delivered(
    case: &Case<'_>,
    addition: &Addition<'_>,
    entry: &Entry<'_>,
) -> Option<Explained> {
    let is_before_ours = case.owners.ours().is_none_or(|ours| entry.time_text < ours.time_text);
    let is_delivery = match entry.operation {
        Operation::Apply => true,
        // An update owns defaults too.
        Operation::Update => {
            entry.manager == "helm"
                && addition.fill == Fill::None
                && !last_field(&addition.path).is_some_and(|name| name.starts_with("meta.helm.sh/"))
        }
    };
    let is_over = !is_at_work(case, entry) && !case.was_found_added(addition, entry);
    (is_before_ours && is_delivery && is_over && addition.whole.is_none() && case.owns_fields_of_git(entry))
        .then(|| kept_alive(case, addition, entry))
}

/// Git asked for it when this app applied last, and another writer wrote it since: it now owns what Git removed.
pub(in crate::drift) fn dropped(
    case: &Case<'_>,
    addition: &Addition<'_>,
    entry: &Entry<'_>,
) -> Option<Explained> {
    let Previous::Changed(Some(previous)) = case.facts().previous else { return None };
    (addition.whole.is_none()
        && !is_theirs_to_keep(case, addition, entry)
        && case.is_addition_in(previous, addition))
    .then(|| kept_alive(case, addition, entry))
}

/// Git asked for it when this app applied last, and no writer owns it now.
pub(in crate::drift) fn without_owner(case: &Case<'_>, addition: &Addition<'_>) -> Option<Explained> {
    let Previous::Changed(Some(previous)) = case.facts().previous else { return None };
    let is_left = addition.whole.is_none() && addition.fill == Fill::None && !case.is_ours(&addition.path);
    (is_left && case.is_addition_in(previous, addition)).then(|| {
        let why =
            format!("{} was removed from Git and remains in the cluster; no writer owns it", addition.path);
        let mut explained = Explained::new(DriftClass::StaleOwnership, addition.path.clone(), true, why);
        explained.take_ownership_of = Some(addition.path.clone());
        explained
    })
}

/// Was it part of what was applied? What our own entry names was. A client-side apply owns defaults too; its annotation has
/// what it was given. Without the annotation, everything but known defaults was given.
pub(in crate::drift) fn addition(
    case: &Case<'_>,
    addition: &Addition<'_>,
    entry: &Entry<'_>,
) -> Option<Explained> {
    let was_given = match case.last_applied() {
        _ if entry.is_other_delivery() || is_named_by_us(case, addition) => true,
        Some(last_applied) => addition.path.find(last_applied).is_some(),
        None => addition.fill == Fill::None && entry.manager != "before-first-apply",
    };
    was_given.then(|| kept_alive(case, addition, entry))
}

fn kept_alive(case: &Case<'_>, addition: &Addition<'_>, entry: &Entry<'_>) -> Explained {
    let path = &addition.path;
    let why = format!(
        "{path} was removed from Git and remains in the cluster because `{}` still owns it",
        writer(entry)
    );
    let mut explained = Explained::new(DriftClass::StaleOwnership, path.clone(), true, why).written_by(entry);
    explained.take_ownership_of = Some(all_that_left(case, path, entry));
    explained
}

/// The outermost map around a field that Git does not have either (`httpGet` around its `port`), as long as no other active
/// writer owns a part of it. The defaults in it have to go too; they belong to the writer that created the object, or have
/// no owner.
pub(super) fn all_that_left(case: &Case<'_>, place: &FieldPath, keeper: &Entry<'_>) -> FieldPath {
    let (live, desired) = (case.live.value(), case.desired.value());
    let schema = case.kind.map(|kind| kind.root);
    let is_gits = |outer: &FieldPath| {
        twin(outer, live, desired, schema).is_some_and(|twin| twin.find(desired).is_some())
    };
    let is_left = |entry: &Entry<'_>| {
        let is_apply = entry.is_ours() || entry.is_client_side_apply();
        is_apply || entry.manager == keeper.manager || is_over(case, entry)
    };
    let mut widest = place.clone();
    while let Some(outer) = widest.parent() {
        let is_struct = case.schema_of(&outer).is_some_and(|schema| !schema.is_free_map());
        let is_item = matches!(widest.segments().last(), Some(Segment::Index(_)));
        let mut entries = case.owners.entries().iter().filter(|entry| entry.names(&outer, live));
        if is_item || !is_struct || is_gits(&outer) || !entries.all(is_left) {
            break;
        }
        widest = outer;
    }
    widest
}

pub(in crate::drift) fn fix(app: &str) -> Fix {
    Fix::new(
        FixKind::Sync,
        format!("`plumb app sync {app}`: plumb takes ownership of the field and removes it"),
    )
}
