//! The API server refuses what Git asks for: why, and whether a sync gets past it.

use super::difference::{dropped, has_other_type};
use super::rule::{Rule, named};
use super::whole_object::REFUSED;
use crate::compare::{Difference, Fill};
use crate::drift::case::{Case, is_bookkeeping};
use crate::drift::classes::{behind, blocked, live_edit, stale_ownership};
use crate::drift::explained::Explained;
use crate::drift::ignore_rules::IgnoredFields;
use crate::drift::{ApiFailure, DriftClass, DryRun, Previous};
use crate::object::FieldPath;

/// A refused dry-run, and what the other rules found.
pub(super) struct Refusal<'r> {
    failure: &'r ApiFailure,
    found: &'r [Explained],
    ignored: &'r IgnoredFields,
    /// What an apply would have to change, and no finding names yet.
    unsettled: Vec<FieldPath>,
}

/// What a rule says about a refusal.
pub(super) enum RefusalRuling {
    /// It does not decide: the next rule is tried.
    Pass,
    /// It decides, with these explanations beside those that were found; none, if a sync gets past the refusal.
    Is(Vec<Explained>),
    /// It decides, and replaces what was found for the same fields.
    Instead(Vec<Explained>),
}

type RefusalRule = Rule<fn(&Case<'_>, &Refusal<'_>) -> RefusalRuling>;

/// In the order in which they are tried. The last one always decides.
pub(super) const REFUSAL_RULES: &[RefusalRule] = &[
    Rule {
        name: "other-alternative-chosen",
        classes: &[DriftClass::LiveEdit],
        decide: other_alternative_chosen,
    },
    Rule {
        name: "clash-with-edited-key",
        classes: &[DriftClass::AdmissionMutated, DriftClass::RejectedField],
        decide: clash_with_edited_key,
    },
    Rule { name: "clash-with-leftovers", classes: &[DriftClass::Behind], decide: clash_with_leftovers },
    Rule {
        name: "defaults-of-previous-choice",
        classes: &[DriftClass::Behind],
        decide: defaults_of_previous_choice,
    },
    Rule { name: "apply-keeps-all-differences", classes: &[], decide: apply_keeps_all_differences },
    Rule { name: REFUSED.name, classes: REFUSED.classes, decide: refused_by_server },
];

/// Adds what a refused dry-run means to what was found. Does nothing if the dry-run was not refused.
pub(super) fn explain_refusal(
    case: &Case<'_>,
    mut found: Vec<Explained>,
    ignored: &IgnoredFields,
) -> Vec<Explained> {
    let Some(DryRun::Refused(failure)) = case.evidence.answers.dry_run else { return found };
    if !failure.is_final() {
        return found;
    }
    let unsettled = unsettled(case, &found, ignored);
    let refusal = Refusal { failure, found: &found, ignored, unsettled };
    let decided = REFUSAL_RULES.iter().find_map(|rule| match (rule.decide)(case, &refusal) {
        RefusalRuling::Pass => None,
        RefusalRuling::Is(explained) => Some((named(rule.name, explained), false)),
        RefusalRuling::Instead(explained) => Some((named(rule.name, explained), true)),
    });
    if let Some((explained, replaces)) = decided {
        found.retain(|known| !replaces || !explained.iter().any(|other| other.field == known.field));
        found.extend(explained);
    }
    found
}

fn other_alternative_chosen(case: &Case<'_>, refusal: &Refusal<'_>) -> RefusalRuling {
    live_edit::switched(case, refusal.failure).map_or(RefusalRuling::Pass, RefusalRuling::Instead)
}

/// Another writer changed the key of an item, and Git's item beside it clashes (two ports of one name). The sync takes the
/// edited item over and removes it, so nothing is in the way.
///
/// The refusal also hides which fields the API server drops on each write. `managedFields` tell it: they can be forged, but
/// the edited key counts whatever they say, and the comparison after the next sync has a dry-run again.
fn clash_with_edited_key(case: &Case<'_>, refusal: &Refusal<'_>) -> RefusalRuling {
    if !is_beside_edited_key(refusal.failure, refusal.found) {
        return RefusalRuling::Pass;
    }
    let is_found_removed = |difference: &&Difference<'_>| {
        let mut removed = refusal.found.iter().filter(|known| known.class == DriftClass::LiveEdit);
        removed.any(|known| known.field == difference.path && known.take_ownership_of.is_none())
    };
    let differences = case.comparison.differences.iter();
    let dropped_on_write = differences
        .filter(|difference| case.may_be_dropped_by_server(difference))
        .filter(is_found_removed)
        .map(|difference| dropped(case, difference));
    RefusalRuling::Instead(dropped_on_write.collect())
}

/// Fields that are gone from Git, and that other writers still own, clash with what Git has instead (two handlers of one
/// probe). A sync takes them over and removes them, so nothing is in the way.
fn clash_with_leftovers(case: &Case<'_>, refusal: &Refusal<'_>) -> RefusalRuling {
    if is_beside_leftovers(refusal.failure, refusal.found) {
        RefusalRuling::Is(not_synced_yet(case, &refusal.unsettled))
    } else {
        RefusalRuling::Pass
    }
}

/// Defaults that belong to Git's previous choice are not allowed beside the new one. A sync takes them over and removes
/// them.
fn defaults_of_previous_choice(case: &Case<'_>, refusal: &Refusal<'_>) -> RefusalRuling {
    let Some(leftovers) = forbidden_leftovers(case, refusal.failure) else { return RefusalRuling::Pass };
    let mut found = not_synced_yet(case, &refusal.unsettled);
    found.retain(|known| !leftovers.iter().any(|left| known.field.starts_with(left)));
    found.extend(leftovers.into_iter().map(behind::left_over));
    RefusalRuling::Is(found)
}

fn apply_keeps_all_differences(case: &Case<'_>, refusal: &Refusal<'_>) -> RefusalRuling {
    if refusal.unsettled.is_empty() && is_all_kept(case, refusal) {
        RefusalRuling::Is(Vec::new())
    } else {
        RefusalRuling::Pass
    }
}

fn refused_by_server(case: &Case<'_>, refusal: &Refusal<'_>) -> RefusalRuling {
    RefusalRuling::Is(blocked::refused(case, refusal.failure, &refusal.unsettled))
}

/// What Git changed and dropped, if a sync gets past the refusal.
fn not_synced_yet(case: &Case<'_>, unsettled: &[FieldPath]) -> Vec<Explained> {
    let differences = case.comparison.differences.iter();
    let changed = differences.filter(|difference| unsettled.contains(&difference.path));
    let additions = case.comparison.additions.iter();
    let dropped = additions.filter(|addition| unsettled.contains(&addition.path));
    let changed = changed.map(|difference| behind::difference(case, difference));
    changed.chain(dropped.map(behind::dropped)).collect()
}

/// Does an apply leave all differences as they are (the field of a controller, a value that differs in each render)? Then a
/// sync does not send what the API server refused.
fn is_all_kept(case: &Case<'_>, refusal: &Refusal<'_>) -> bool {
    let Refusal { failure, found, ignored, unsettled: _ } = refusal;
    let mut differences = case
        .comparison
        .differences
        .iter()
        .filter(|difference| !is_bookkeeping(&difference.path) && !ignored.has_difference(case, difference))
        .peekable();
    // A refusal of a field that Git sets, and that an apply does not keep, remains.
    let is_about_kept = |place: &FieldPath| {
        let is_gits = place.parent().is_some_and(|parent| parent.find(case.desired.value()).is_some());
        let mut kept = found.iter().filter_map(|known| known.keep_live.as_ref().or(known.leave_out.as_ref()));
        !is_gits || kept.any(|kept| place.starts_with(kept) || kept.starts_with(place))
    };
    let is_kept = |difference: &Difference<'_>| {
        found.iter().any(|known| {
            known.keep_live.as_ref().is_some_and(|kept| difference.path.starts_with(kept))
                || known.leave_out.as_ref() == Some(&difference.desired_path)
        })
    };
    differences.peek().is_some()
        && !found.iter().any(|known| known.counts)
        && failure.causes.iter().all(|cause| is_about_kept(&FieldPath::from_server(&cause.field)))
        && differences.all(|difference| is_kept(difference) && !has_other_type(difference))
}

/// What an apply would have to change, and no finding names yet.
fn unsettled(case: &Case<'_>, found: &[Explained], ignored: &IgnoredFields) -> Vec<FieldPath> {
    let differences = case.comparison.differences.iter();
    let differences = differences
        .filter(|difference| !ignored.has_difference(case, difference))
        .map(|difference| &difference.path);
    let is_unchanged = matches!(case.facts().previous, Previous::Same);
    let dropped = case.comparison.additions.iter().filter(|addition| {
        let place = addition.whole.as_ref().unwrap_or(&addition.path);
        !is_unchanged
            && addition.fill == Fill::None
            && case.is_ours(place)
            && !ignored.has_field(case, &addition.path, &addition.path)
    });
    differences
        .chain(dropped.map(|addition| &addition.path))
        .filter(|path| {
            // That Git writes null does not explain the value that the cluster has.
            let is_named =
                |known: &Explained| known.field == **path && known.class != DriftClass::PhantomDefault;
            !is_bookkeeping(path) && !found.iter().any(is_named)
        })
        .cloned()
        .collect()
}

/// Are all causes duplicates, or missing fields, in a list with an item whose key another writer changed?
fn is_beside_edited_key(failure: &ApiFailure, found: &[Explained]) -> bool {
    let lists: Vec<FieldPath> = found
        .iter()
        .filter(|explained| explained.class == DriftClass::LiveEdit)
        .filter_map(|explained| explained.take_ownership_of.as_ref()?.parent())
        .collect();
    !failure.causes.is_empty()
        && failure.causes.iter().all(|cause| {
            let place = FieldPath::from_server(&cause.field);
            matches!(cause.reason.as_str(), "FieldValueDuplicate" | "FieldValueRequired")
                && lists.iter().any(|list| place.starts_with(list))
        })
}

/// Are all causes about fields that a sync takes over and removes, or about fields beside them?
fn is_beside_leftovers(failure: &ApiFailure, found: &[Explained]) -> bool {
    let leftovers: Vec<&FieldPath> = found
        .iter()
        .filter(|known| matches!(known.class, DriftClass::StaleOwnership | DriftClass::UnclaimedAddition))
        .filter_map(|known| known.take_ownership_of.as_ref())
        .collect();
    let is_about_one = |place: &FieldPath| {
        leftovers
            .iter()
            .any(|left| place.starts_with(left) || left.starts_with(place) || left.parent() == place.parent())
    };
    // A reference to a refused item (a mount to its volume) is "not found"; that follows from the other causes.
    let mut causes = failure.causes.iter().filter(|cause| cause.reason != "FieldValueNotFound").peekable();
    causes.peek().is_some()
        && causes.all(|cause| {
            !blocked::is_immutable(&cause.message) && is_about_one(&FieldPath::from_server(&cause.field))
        })
}

/// Fields that are forbidden beside Git's new choice, that Git does not set and that no controller writes: defaults of the
/// previous choice (`rollingUpdate` beside `type: Recreate`, or beside `type: OnDelete`, where it is "invalid").
fn forbidden_leftovers(case: &Case<'_>, failure: &ApiFailure) -> Option<Vec<FieldPath>> {
    let places: Vec<FieldPath> = failure
        .causes
        .iter()
        .filter(|cause| matches!(cause.reason.as_str(), "FieldValueForbidden" | "FieldValueInvalid"))
        .map(|cause| FieldPath::from_server(&cause.field))
        .collect();
    let all_left_over = places.iter().all(|place| {
        place.find(case.desired.value()).is_none()
            && place.find(case.live.value()).is_some()
            && case.owners.of_place(place).all(|entry| !stale_ownership::is_at_work(case, entry))
    });
    // Owning an immutable field does not help.
    let is_immutable = failure.causes.iter().any(|cause| blocked::is_immutable(&cause.message));
    (!places.is_empty() && places.len() == failure.causes.len() && all_left_over && !is_immutable)
        .then_some(places)
}
