//! Another writer changed a value that Git sets.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use crate::compare::{Addition, Change, Difference};
use crate::drift::case::{Case, last_field, writer};
use crate::drift::explained::Explained;
use crate::drift::{ApiFailure, DriftClass, Fix, FixKind, Previous};
use crate::fields::Entry;
use crate::object::FieldPath;

/// Another writer owns the field, and wrote it after our last apply.
pub(in crate::drift) fn difference(case: &Case<'_>, difference: &Difference<'_>) -> Option<Explained> {
    editor(case, difference).map(|entry| edit(case, difference, entry))
}

/// The other writer that changed the value that Git sets.
pub(in crate::drift) fn editor<'c, 'a>(
    case: &'c Case<'a>,
    difference: &Difference<'_>,
) -> Option<&'c Entry<'a>> {
    case.other_writer_of(difference).filter(|entry| was_asked_before(case, difference, entry))
}

/// Did Git ask for this value before the other writer wrote? If not, it is Git that changed.
fn was_asked_before(case: &Case<'_>, difference: &Difference<'_>, entry: &Entry<'_>) -> bool {
    match case.facts().previous {
        Previous::Same => true,
        Previous::Changed(Some(previous)) => match case.desired_in(previous, &difference.desired_path) {
            Some(before) if Some(before) == difference.desired => true,
            // The other writer restored what Git asked for then: nothing of its edit is left.
            Some(before) if Some(before) == difference.live => false,
            Some(_) => case.is_after_ours(entry),
            None => false,
        },
        Previous::Changed(None) | Previous::Rerendered | Previous::Unknown => case.is_after_ours(entry),
    }
}

fn edit(case: &Case<'_>, difference: &Difference<'_>, entry: &Entry<'_>) -> Explained {
    let at = entry.time_text.map(|time| format!(" at {time}")).unwrap_or_default();
    let user = case.user_of(entry).map(|user| format!(" (user `{user}`)")).unwrap_or_default();
    let mut explained = Explained::new(
        DriftClass::LiveEdit,
        difference.path.clone(),
        true,
        format!("`{}`{user} wrote {}{at}: {}", writer(entry), difference.path, case.values(difference)),
    )
    .at_difference(difference)
    .written_by(entry);
    if difference.change == Change::Extra {
        explained.take_ownership_of.clone_from(&difference.whole);
    } else {
        explained.take_ownership_of =
            options_of_strategy(case, difference, entry).or_else(|| newer_name(case, difference, entry));
    }
    explained
}

/// A writer that edits the type of a rollout strategy also owns the options that the API server filled in for the new type
/// (`rollingUpdate`). Git's type forbids them, so they have to go together with the edit.
fn options_of_strategy(case: &Case<'_>, difference: &Difference<'_>, entry: &Entry<'_>) -> Option<FieldPath> {
    let strategy = difference.path.parent()?;
    let is_strategy = matches!(last_field(&strategy), Some("strategy" | "updateStrategy"));
    if !is_strategy || last_field(&difference.path) != Some("type") || !case.is_built_in() {
        return None;
    }
    let options = strategy.field("rollingUpdate");
    let is_theirs = options.find(case.live.value()).is_some() && entry.owns(&options, case.live.value());
    (is_theirs && options.find(case.desired.value()).is_none()).then_some(options)
}

/// An edit of `serviceAccountName` in a pod also sets `serviceAccount`, its old name. If Git sets only the old name, the
/// new one has to go first: it takes precedence.
fn newer_name(case: &Case<'_>, difference: &Difference<'_>, entry: &Entry<'_>) -> Option<FieldPath> {
    let name = difference.path.parent()?.field("serviceAccountName");
    let is_old_name = last_field(&difference.path) == Some("serviceAccount") && case.is_built_in();
    let is_theirs = name.find(case.live.value()).is_some() && entry.owns(&name, case.live.value());
    let desired_name = difference.desired_path.parent()?.field("serviceAccountName");
    (is_old_name && is_theirs && desired_name.find(case.desired.value()).is_none()).then_some(name)
}

/// We applied the field and no longer own it, and no entry names it. A writer that uses another version of the kind has an
/// entry with other field names.
pub(in crate::drift) fn without_record(case: &Case<'_>, difference: &Difference<'_>) -> Explained {
    match case.writer_in_other_version() {
        Some(entry) => edit(case, difference, entry),
        None => by_unknown_writer(case, difference, "changed"),
    }
}

/// A field that we applied, and that is gone or in another order. `managedFields` do not name the writer of a removal.
pub(in crate::drift) fn removed(case: &Case<'_>, difference: &Difference<'_>) -> Option<Explained> {
    let is_gone = matches!(difference.change, Change::Missing | Change::ItemMissing | Change::Order);
    if !is_gone || !(case.was_applied(difference) || edited_key(case, difference).is_some()) {
        return None;
    }
    if let Some((_, entry)) = edited_key(case, difference) {
        return Some(edit(case, difference, entry));
    }
    let what = if difference.change == Change::Order { "reordered" } else { "removed" };
    Some(by_unknown_writer(case, difference, what))
}

fn by_unknown_writer(case: &Case<'_>, difference: &Difference<'_>, what: &str) -> Explained {
    // The witness knows only the last writer; an earlier finding for this field is more exact.
    let (actor, since) = case.named_before(&difference.path).unwrap_or_else(|| case.witnessed_writer());
    let (path, values) = (&difference.path, case.values(difference));
    let evidence = match &actor {
        Some(actor) => format!("`{actor}` {what} {path}: {values}"),
        None => format!(
            "{path} was {what} by an unknown writer (Kubernetes does not record who removes or reorders fields): {values}"
        ),
    };
    let mut explained =
        Explained::new(DriftClass::LiveEdit, path.clone(), true, evidence).at_difference(difference);
    explained.actor = actor;
    explained.since = since;
    explained
}

/// The item that another writer made from a missing one by changing its key (the number of a port): it is in the same list,
/// and equal in a field that is not a key. If the previous manifest lacked the item, its key cannot have been edited.
pub(in crate::drift) fn edited_key<'c, 'a>(
    case: &'c Case<'a>,
    difference: &Difference<'_>,
) -> Option<(&'c Addition<'a>, &'c Entry<'a>)> {
    if difference.change != Change::ItemMissing || difference.whole.is_some() {
        return None;
    }
    let addition = case.comparison.additions.get(*edited_keys(case).get(&difference.desired_path)?)?;
    Some((addition, case.other_writer(&addition.path)?))
}

/// Finds all such items at once: a list may have thousands, and each rule asks for each of them.
fn edited_keys<'c>(case: &'c Case<'_>) -> &'c BTreeMap<FieldPath, usize> {
    case.once.edited_keys.get_or_init(|| {
        let mut by_list: BTreeMap<FieldPath, Vec<(usize, &Addition<'_>)>> = BTreeMap::new();
        let items = case.comparison.additions.iter().enumerate().filter(|(_, addition)| addition.is_item);
        for (index, addition) in items {
            let is_edit = case.other_writer(&addition.path).is_some_and(|entry| case.is_after_ours(entry));
            if let Some(list) = addition.path.parent().filter(|_| is_edit) {
                by_list.entry(list).or_default().push((index, addition));
            }
        }
        let missing = case
            .comparison
            .differences
            .iter()
            .filter(|difference| difference.change == Change::ItemMissing && difference.whole.is_none());
        let by_list: BTreeMap<FieldPath, EditedItems<'_>> =
            by_list.into_iter().map(|(list, items)| (list, EditedItems::of(&items))).collect();
        missing
            .filter_map(|difference| {
                if let Previous::Changed(Some(previous)) = case.facts().previous {
                    case.desired_in(previous, &difference.desired_path)?;
                }
                let wanted = difference.desired?.as_object()?;
                let candidates = by_list.get(&difference.path.parent()?)?;
                let same = wanted.iter().filter_map(|field| candidates.by_field.get(&field));
                // An item that is only a key is recognised by its position.
                let there = candidates.by_path.get(&difference.path).filter(|_| wanted.len() == 1);
                let index = same.chain(there).min()?;
                Some((difference.desired_path.clone(), *index))
            })
            .collect()
    })
}

/// The edited items of one list, to find those that have a field in common with a missing one. The first one counts.
struct EditedItems<'c> {
    by_field: HashMap<(&'c String, &'c Value), usize>,
    by_path: HashMap<&'c FieldPath, usize>,
}

impl<'c> EditedItems<'c> {
    fn of(items: &[(usize, &'c Addition<'_>)]) -> Self {
        let (mut by_field, mut by_path) = (HashMap::new(), HashMap::new());
        for (index, addition) in items {
            by_path.entry(&addition.path).or_insert(*index);
            for field in addition.live.as_object().into_iter().flatten() {
                by_field.entry(field).or_insert(*index);
            }
        }
        Self { by_field, by_path }
    }
}

/// Of several fields only one may be set (`value` or `valueFrom`, `httpGet` or `tcpSocket`, the types of a volume), and
/// another writer set another one than Git. The API server refuses both together, so the other one has to go when Git's
/// comes back. `None` unless that explains the whole refusal.
pub(in crate::drift) fn switched(case: &Case<'_>, failure: &ApiFailure) -> Option<Vec<Explained>> {
    let mut choices: Vec<Explained> = Vec::new();
    // A reference to a refused item (a mount to its volume) is "not found"; that follows from the other causes.
    for cause in failure.causes.iter().filter(|cause| cause.reason != "FieldValueNotFound") {
        let is_clash = matches!(cause.reason.as_str(), "FieldValueForbidden" | "FieldValueInvalid")
            && !super::blocked::is_immutable(&cause.message);
        // The API server names the other field, or Git's field and that there may be only one.
        let named = FieldPath::from_server(&cause.field);
        let is_only_one = cause.message.contains("more than 1");
        let parent = named.parent().filter(|_| is_clash)?;
        let missing: Vec<&Difference<'_>> = case
            .comparison
            .differences
            .iter()
            .filter(|difference| {
                difference.change == Change::Missing
                    && difference.path != parent
                    && difference.path.starts_with(&parent)
            })
            .collect();
        let beside: Vec<Explained> = case
            .comparison
            .additions
            .iter()
            .filter_map(|addition| {
                // The alternative as a whole, where the comparison found only leaves of it.
                let depth = parent.segments().len() + 1;
                let chosen = FieldPath::from(addition.path.segments().get(..depth)?.to_vec());
                let is_beside = chosen.starts_with(&parent)
                    && chosen.find(case.desired.value()).is_none()
                    && (chosen == named || is_only_one);
                let entry = case.other_writer(&addition.path).filter(|entry| case.is_after_ours(entry))?;
                let why =
                    format!("`{}` set {chosen} instead of the alternative that Git sets", writer(entry));
                let choice = Explained::new(DriftClass::LiveEdit, addition.path.clone(), true, why);
                let mut choice = choice.written_by(entry);
                choice.take_ownership_of = Some(chosen);
                is_beside.then_some(choice)
            })
            .collect();
        let entry = case.other_writer(&beside.first()?.field).filter(|_| !missing.is_empty())?;
        let beside = missing.into_iter().map(|difference| edit(case, difference, entry)).chain(beside);
        let is_new = |choice: &Explained| !choices.iter().any(|known| known.field == choice.field);
        let beside: Vec<Explained> = beside.filter(is_new).collect();
        choices.extend(beside);
    }
    (!choices.is_empty()).then_some(choices)
}

/// A field that plumb never applied, and that its own entry in `managedFields` names.
pub(in crate::drift) fn under_our_name(addition: &Addition<'_>) -> Explained {
    Explained::new(
        DriftClass::LiveEdit,
        addition.path.clone(),
        true,
        format!(
            "{} was added by another client that applied under the name of plumb's field manager",
            addition.path
        ),
    )
}

/// The item with the edited key: it has to go when Git's item comes back.
pub(in crate::drift) fn replacement(case: &Case<'_>, addition: &Addition<'_>) -> Option<Explained> {
    let replacements = case.once.replacements.get_or_init(|| {
        let mut replacements = BTreeMap::new();
        for (place, index) in edited_keys(case) {
            if let Some(found) = case.comparison.additions.get(*index) {
                replacements.entry(found.path.clone()).or_insert_with(|| place.clone());
            }
        }
        replacements
    });
    let place = replacements.get(&addition.path).filter(|_| addition.is_item)?;
    let entry = case.other_writer(&addition.path)?;
    let why = format!("`{}` made this item out of Git's item {place} by changing its key", writer(entry));
    let explained = Explained::new(DriftClass::LiveEdit, addition.path.clone(), true, why);
    let mut explained = explained.written_by(entry);
    explained.take_ownership_of = Some(addition.path.clone());
    Some(explained)
}

pub(in crate::drift) fn fix(app: &str) -> Fix {
    Fix::new(
        FixKind::Sync,
        format!("restore Git's value with `plumb app sync {app}`, or commit the live value to Git"),
    )
}
