//! What the server refuses.

use super::super::case::{Case, Explained};
use super::super::classes::{behind, blocked, stale_ownership};
use super::super::evidence::DryRun;
use super::super::ignored::{is_difference_ignored, is_ignored};
use super::super::{ApiFailure, DriftClass, Previous};
use super::{is_aside, is_of_other_shape};
use crate::compare::{Difference, Fill};
use crate::ignore::Ignored;
use crate::object::FieldPath;

/// The dry-run was refused: one finding, unless taking over what nobody owns makes it pass.
pub(super) fn explain_refusal(case: &Case<'_>, found: &[Explained], ignored: &Ignored) -> Vec<Explained> {
    let Some(DryRun::Refused(failure)) = case.evidence.answers.dry_run else { return Vec::new() };
    if !failure.is_final() || is_beside_edited_key(failure, found) {
        return Vec::new();
    }
    let unsettled = unsettled(case, found, ignored);
    if is_beside_leftovers(failure, found) {
        return not_synced_yet(case, &unsettled);
    }
    if let Some(leftovers) = forbidden_leftovers(case, failure) {
        let mut found = not_synced_yet(case, &unsettled);
        found.retain(|known| !leftovers.iter().any(|left| known.field.starts_with(left)));
        found.extend(leftovers.into_iter().map(|path| {
            let mut explained = Explained::new(
                DriftClass::Behind,
                path.clone(),
                true,
                format!("{path} is left of Git's former choice, and the new one forbids it"),
            );
            explained.take = Some(path);
            explained
        }));
        return found;
    }
    if unsettled.is_empty() && is_all_kept(case, failure, found, ignored) {
        return Vec::new();
    }
    blocked::refused(case, failure, &unsettled)
}

/// What Git changed and dropped, where a sync gets past the refusal.
fn not_synced_yet(case: &Case<'_>, unsettled: &[FieldPath]) -> Vec<Explained> {
    let differences = case.comparison.differences.iter();
    let changed = differences.filter(|difference| unsettled.contains(&difference.path));
    let additions = case.comparison.additions.iter();
    let dropped = additions.filter(|addition| unsettled.contains(&addition.path));
    let changed = changed.map(|difference| behind::difference(case, difference));
    changed.chain(dropped.map(behind::dropped)).collect()
}

/// Does an apply leave everything that differs as it is (a controller's field, a value that is rendered anew each time)?
/// Then what the server refused is not what a sync would send.
fn is_all_kept(case: &Case<'_>, failure: &ApiFailure, found: &[Explained], ignored: &Ignored) -> bool {
    let mut differences = case
        .comparison
        .differences
        .iter()
        .filter(|difference| !is_aside(&difference.path) && !is_difference_ignored(case, ignored, difference))
        .peekable();
    // A complaint about another place that Git has is not settled by what is kept.
    let is_about_kept = |place: &FieldPath| {
        let is_gits = place.parent().is_some_and(|parent| parent.find(case.desired.value()).is_some());
        let mut kept = found.iter().filter_map(|known| known.keep.as_ref().or(known.leave_out.as_ref()));
        !is_gits || kept.any(|kept| place.starts_with(kept) || kept.starts_with(place))
    };
    let is_kept = |difference: &Difference<'_>| {
        found.iter().any(|known| {
            known.keep.as_ref().is_some_and(|kept| difference.path.starts_with(kept))
                || known.leave_out.as_ref() == Some(&difference.desired_path)
        })
    };
    differences.peek().is_some()
        && !found.iter().any(|known| known.counts)
        && failure.causes.iter().all(|cause| is_about_kept(&FieldPath::from_server(&cause.field)))
        && differences.all(|difference| is_kept(difference) && !is_of_other_shape(difference))
}

/// What an apply would have to change, and no finding names yet.
fn unsettled(case: &Case<'_>, found: &[Explained], ignored: &Ignored) -> Vec<FieldPath> {
    let differences = case.comparison.differences.iter();
    let differences = differences
        .filter(|difference| !is_difference_ignored(case, ignored, difference))
        .map(|difference| &difference.path);
    let is_unchanged = matches!(case.facts().previous, Previous::Same);
    let dropped = case.comparison.additions.iter().filter(|addition| {
        let place = addition.whole.as_ref().unwrap_or(&addition.path);
        !is_unchanged
            && addition.fill == Fill::None
            && case.is_ours(place)
            && !is_ignored(case, ignored, &addition.path, &addition.path)
    });
    differences
        .chain(dropped.map(|addition| &addition.path))
        .filter(|path| {
            // That Git writes null says nothing of what the cluster has.
            let is_named =
                |known: &Explained| known.field == **path && known.class != DriftClass::PhantomDefault;
            !is_aside(path) && !found.iter().any(is_named)
        })
        .cloned()
        .collect()
}

/// Git's item would stand beside the one that somebody made of it by changing its key, and the two clash (two
/// ports of one name). The sync takes the other one over and removes it, so nothing is in the way.
fn is_beside_edited_key(failure: &ApiFailure, found: &[Explained]) -> bool {
    let lists: Vec<FieldPath> = found
        .iter()
        .filter(|explained| explained.class == DriftClass::LiveEdit)
        .filter_map(|explained| explained.take.as_ref()?.parent())
        .collect();
    !failure.causes.is_empty()
        && failure.causes.iter().all(|cause| {
            let place = FieldPath::from_server(&cause.field);
            matches!(cause.reason.as_str(), "FieldValueDuplicate" | "FieldValueRequired")
                && lists.iter().any(|list| place.starts_with(list))
        })
}

/// What left Git and others keep alive clashes with what Git has instead (two handlers of one probe). A sync takes it over
/// and removes it, so nothing is in the way.
fn is_beside_leftovers(failure: &ApiFailure, found: &[Explained]) -> bool {
    let leftovers: Vec<&FieldPath> = found
        .iter()
        .filter(|known| matches!(known.class, DriftClass::StaleOwnership | DriftClass::UnclaimedAddition))
        .filter_map(|known| known.take.as_ref())
        .collect();
    let is_about_one = |place: &FieldPath| {
        leftovers
            .iter()
            .any(|left| place.starts_with(left) || left.starts_with(place) || left.parent() == place.parent())
    };
    // What refers to an item that is refused (a mount to its volume) is not found; that follows from the rest.
    let mut causes = failure.causes.iter().filter(|cause| cause.reason != "FieldValueNotFound").peekable();
    causes.peek().is_some()
        && causes.all(|cause| {
            !blocked::is_immutable(&cause.message) && is_about_one(&FieldPath::from_server(&cause.field))
        })
}

/// Places that the server forbids beside Git's new choice, that Git does not set and no controller keeps: defaults of
/// the former choice (`rollingUpdate` beside `type: Recreate` or `type: OnDelete`, which the server calls invalid).
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
    // What cannot be changed does not become so by being taken over.
    let is_immutable = failure.causes.iter().any(|cause| blocked::is_immutable(&cause.message));
    (!places.is_empty() && places.len() == failure.causes.len() && all_left_over && !is_immutable)
        .then_some(places)
}
