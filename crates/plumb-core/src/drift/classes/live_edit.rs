//! R: someone changed a value that Git sets.

use crate::compare::{Addition, Change, Difference};
use crate::drift::case::{Case, last_field, writer};
use crate::drift::explained::Explained;
use crate::drift::{ApiFailure, DriftClass, Fix, FixKind, Previous};
use crate::fields::Entry;
use crate::object::FieldPath;

/// Another writer owns the place, and wrote after our last apply.
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

/// Had Git asked for this before the other one wrote? If not, Git moved on.
fn was_asked_before(case: &Case<'_>, difference: &Difference<'_>, entry: &Entry<'_>) -> bool {
    match case.facts().previous {
        Previous::Same => true,
        Previous::Changed(Some(previous)) => match case.desired_in(previous, &difference.desired_path) {
            Some(before) if Some(before) == difference.desired => true,
            // Whoever wrote put back what Git asked for then: nothing of theirs is left.
            Some(before) if Some(before) == difference.live => false,
            Some(_) => case.is_after_ours(entry),
            None => false,
        },
        Previous::Changed(None) | Previous::Rerendered | Previous::Unknown => case.is_after_ours(entry),
    }
}

fn edit(case: &Case<'_>, difference: &Difference<'_>, entry: &Entry<'_>) -> Explained {
    let at = entry.time_text.map(|time| format!(" at {time}")).unwrap_or_default();
    let mut explained = Explained::new(
        DriftClass::LiveEdit,
        difference.path.clone(),
        true,
        format!("`{}` wrote {}{at}: {}", writer(entry), difference.path, case.values(difference)),
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

/// Who edits the type of a rollout strategy also owns the options that the server filled in for the new type
/// (`rollingUpdate`), and Git's type forbids them: they go when the edit goes.
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

/// Who edits a pod's `serviceAccountName` edits `serviceAccount`, its old name, as well. Where Git has only the old one, the
/// server listens to theirs until it is gone.
fn newer_name(case: &Case<'_>, difference: &Difference<'_>, entry: &Entry<'_>) -> Option<FieldPath> {
    let name = difference.path.parent()?.field("serviceAccountName");
    let is_old_name = last_field(&difference.path) == Some("serviceAccount") && case.is_built_in();
    let is_theirs = name.find(case.live.value()).is_some() && entry.owns(&name, case.live.value());
    let desired_name = difference.desired_path.parent()?.field("serviceAccountName");
    (is_old_name && is_theirs && desired_name.find(case.desired.value()).is_none()).then_some(name)
}

/// What we applied is not ours any more, and nobody's name stands on it. Whoever writes in another version of the
/// kind has it on other fields.
pub(in crate::drift) fn without_record(case: &Case<'_>, difference: &Difference<'_>) -> Explained {
    match case.writer_in_other_version() {
        Some(entry) => edit(case, difference, entry),
        None => by_unknown_writer(case, difference, "changed"),
    }
}

/// Something that Git asked for, that we applied, and that is gone or in another order. Nobody's name is left
/// on what is not there.
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
    // The witness knows the last one; who was named before for this very field stays named.
    let (actor, since) = case.named_before(&difference.path).unwrap_or_else(|| case.witnessed_writer());
    let who = match &actor {
        Some(actor) => format!("`{actor}`"),
        None => "somebody (the server keeps no record of who only removes or reorders)".to_owned(),
    };
    let mut explained = Explained::new(
        DriftClass::LiveEdit,
        difference.path.clone(),
        true,
        format!("{who} {what} {}: {}", difference.path, case.values(difference)),
    )
    .at_difference(difference);
    explained.actor = actor;
    explained.since = since;
    explained
}

/// The item that someone made of a missing one by changing the key of its list (the number of a port, say):
/// same list, written by another, and equal in a field that is no key. What Git did not have before nobody changed.
pub(in crate::drift) fn edited_key<'c, 'a>(
    case: &'c Case<'a>,
    difference: &Difference<'_>,
) -> Option<(&'c Addition<'a>, &'c Entry<'a>)> {
    if difference.change != Change::ItemMissing || difference.whole.is_some() {
        return None;
    }
    if let Previous::Changed(Some(previous)) = case.facts().previous {
        case.desired_in(previous, &difference.desired_path)?;
    }
    let list = difference.path.parent()?;
    let wanted = difference.desired?.as_object()?;
    case.comparison.additions.iter().find_map(|addition| {
        let same_list = addition.is_item && addition.path.parent().as_ref() == Some(&list);
        let found = addition.live.as_object()?;
        // An item that is nothing but its key is told by its position.
        let same_field = wanted.iter().any(|(name, value)| found.get(name) == Some(value))
            || (wanted.len() == 1 && addition.path == difference.path);
        let entry = case.other_writer(&addition.path)?;
        (same_list && same_field && case.is_after_ours(entry)).then_some((addition, entry))
    })
}

/// Where only one of several fields may stand (`value` or `valueFrom`, `httpGet` or `tcpSocket`, the types of a volume),
/// somebody chose another than Git. The server refuses both side by side, so theirs goes when Git's comes back.
/// `None` unless that explains all of the refusal.
pub(in crate::drift) fn switched(case: &Case<'_>, failure: &ApiFailure) -> Option<Vec<Explained>> {
    let mut choices: Vec<Explained> = Vec::new();
    // What refers to an item that is refused (a mount to its volume) is not found; that follows from the rest.
    for cause in failure.causes.iter().filter(|cause| cause.reason != "FieldValueNotFound") {
        let is_clash = matches!(cause.reason.as_str(), "FieldValueForbidden" | "FieldValueInvalid")
            && !super::blocked::is_immutable(&cause.message);
        // The server names their field, or Git's own and that there may be only one.
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
                // The whole of what they chose, where only leaves of it were found.
                let depth = parent.segments().len() + 1;
                let chosen = FieldPath::from(addition.path.segments().get(..depth)?.to_vec());
                let is_beside = chosen.starts_with(&parent)
                    && chosen.find(case.desired.value()).is_none()
                    && (chosen == named || is_only_one);
                let entry = case.other_writer(&addition.path).filter(|entry| case.is_after_ours(entry))?;
                let why = format!("`{}` chose {chosen} instead of what Git has", writer(entry));
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

/// The item that took the place of Git's: it goes when Git's comes back.
pub(in crate::drift) fn replacement(case: &Case<'_>, addition: &Addition<'_>) -> Option<Explained> {
    case.comparison.differences.iter().find_map(|difference| {
        let (found, entry) = edited_key(case, difference)?;
        (found.path == addition.path).then(|| {
            let mut explained = Explained::new(
                DriftClass::LiveEdit,
                addition.path.clone(),
                true,
                format!(
                    "`{}` changed the key of Git's item {} to this one",
                    writer(entry),
                    difference.desired_path
                ),
            )
            .written_by(entry);
            explained.take_ownership_of = Some(addition.path.clone());
            explained
        })
    })
}

pub(in crate::drift) fn fix(app: &str) -> Fix {
    Fix::new(
        FixKind::Sync,
        format!("put Git's value back with `plumb app sync {app}`, or take the live one into Git"),
    )
}
