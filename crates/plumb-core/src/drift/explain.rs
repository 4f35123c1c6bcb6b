//! One class for every difference between what Git asks and what the cluster holds.

use serde_json::Value;

use super::case::{Case, Explained, Prediction, is_path, is_under, last_field};
use super::classes::{
    admission_mutated, behind, blocked, controller_owned, equivalent_value, live_edit, phantom_default,
    rejected_field, schema_default, shared_resource, stale_ownership, tug_of_war, unclaimed_addition,
    unexplained, unstable_render,
};
use super::evidence::{DryRun, Question};
use super::ignored::is_ignored;
use super::{ApiFailure, Previous};
use crate::compare::{Addition, Change, Difference, Fill, Forgiven, Reason, Spelling, is_zero, twin};
use crate::fields::is_control_plane;
use crate::ignore::Ignored;
use crate::normalize::{is_kept_annotation, is_kept_label, respelled_keys};
use crate::object::{FieldPath, Manifest};
use crate::tracking::{INSTALLATION_ANNOTATION, TRACKING_ANNOTATION};

/// Explains everything that comparing found. Questions that come up are noted in the case; while there are
/// any, the result is not complete.
pub(super) fn explain(case: &Case<'_>, original: &Manifest, strict: bool) -> Vec<Explained> {
    let ignored = case.evidence.rules.of(case.evidence.key, Some(case.desired), Some(case.live));
    let mut found = rejected_field::kept(case);
    found.extend(rejected_field::unknown(case));
    found.extend(blocked::duplicates(case));
    found.extend(spelled_by_nature(case, original));
    found.extend(shared_resource::ours(case));
    for forgiven in &case.comparison.forgiven {
        if !is_ignored(case, &ignored, &forgiven.path, &forgiven.desired_path) {
            found.extend(explain_forgiven(case, forgiven));
        }
    }
    for difference in &case.comparison.differences {
        let aside = is_aside(&difference.path);
        if !aside && !is_ignored(case, &ignored, &difference.path, &difference.desired_path) {
            found.extend(explain_difference(case, difference));
        }
    }
    for addition in &case.comparison.additions {
        let aside = is_aside(&addition.path);
        if !aside && !is_ignored(case, &ignored, &addition.path, &addition.path) {
            found.extend(explain_addition(case, addition, strict));
        }
    }
    match live_edit::switched(case) {
        Some(choices) => {
            found.retain(|known| !choices.iter().any(|choice| choice.field == known.field));
            found.extend(choices);
        }
        None => found.extend(explain_refusal(case, &found, &ignored)),
    }
    let options = case.evidence.options;
    match case.evidence.answers.dry_run {
        None if options.server_side_diff == Some(true) => case.ask(Question::DryRun),
        Some(DryRun::Object(predicted))
            if options.server_side_diff == Some(true) && options.include_mutation_webhook =>
        {
            let due = admission_mutated::due(case, predicted, &found);
            found.extend(due.into_iter().filter(|explained| !is_aside(&explained.field)));
        }
        None | Some(_) => {}
    }
    found.retain(|explained| {
        !(explained.counts && is_ignored(case, &ignored, &explained.field, &explained.field))
    });
    found
}

/// A tracking mark.
pub(super) fn is_mark(path: &FieldPath) -> bool {
    is_under(path, &["metadata", "annotations"])
        && last_field(path).is_some_and(|key| key == TRACKING_ANNOTATION || key == INSTALLATION_ANNOTATION)
}

/// Marks that are not content: tracking, and what controllers note for themselves.
fn is_aside(path: &FieldPath) -> bool {
    let Some(key) = last_field(path) else { return false };
    is_mark(path)
        || (is_under(path, &["metadata", "annotations"]) && is_kept_annotation(key))
        || (is_under(path, &["metadata", "labels"]) && is_kept_label(key))
}

/// What is spelled differently by nature: `stringData`, wrapped base64, another version of the kind.
fn spelled_by_nature(case: &Case<'_>, original: &Manifest) -> Vec<Explained> {
    let mut found = Vec::new();
    if case.is_secret {
        let (folded, wrapped) = respelled_keys(original);
        found.extend(folded.into_iter().map(|path| equivalent_value::at(path, Spelling::StringData)));
        found.extend(wrapped.into_iter().map(|path| equivalent_value::at(path, Spelling::Base64)));
    }
    let cached = case.evidence.live.map_or(case.live.api_version(), Manifest::api_version);
    if case.desired.api_version() != cached {
        found.push(equivalent_value::at(FieldPath::root().field("apiVersion"), Spelling::ApiVersion));
    }
    found
}

fn explain_forgiven(case: &Case<'_>, forgiven: &Forgiven<'_>) -> Option<Explained> {
    match forgiven.reason {
        Reason::Spelling(spelling) => Some(equivalent_value::forgiven(case, forgiven, spelling)),
        Reason::Null => Some(phantom_default::null(forgiven)),
        Reason::NoItems => Some(phantom_default::no_items(forgiven)),
        Reason::Zero => phantom_default::zero(case, forgiven).or_else(|| {
            let difference = Difference {
                path: forgiven.path.clone(),
                desired_path: forgiven.desired_path.clone(),
                whole: forgiven.whole.clone(),
                change: Change::Missing,
                desired: forgiven.desired,
                live: None,
            };
            explain_missing_zero(case, &difference)
        }),
    }
}

/// A zero value of a built-in kind that the cluster lacks, though our apply does not own it: either somebody
/// removed it, or it was never applied, or the server drops it. The dry-run knows.
fn explain_missing_zero(case: &Case<'_>, difference: &Difference<'_>) -> Option<Explained> {
    match case.evidence.answers.dry_run {
        None => {
            case.ask(Question::DryRun);
            None
        }
        // The server writes null for an empty list whose field it never leaves out.
        Some(DryRun::Object(object)) => match difference.desired_path.find(object.value()) {
            None | Some(Value::Null) => {
                Some(phantom_default::dropped_by_server(difference.desired_path.clone()))
            }
            Some(_) => explain_difference(case, difference),
        },
        Some(DryRun::Refused(failure)) if failure.is_final() => None,
        Some(DryRun::Refused(_) | DryRun::Unavailable) => explain_difference(case, difference),
    }
}

/// From the most telling evidence to the least.
fn explain_difference(case: &Case<'_>, difference: &Difference<'_>) -> Option<Explained> {
    if case.is_dropped_by_server(difference) {
        // The record may be of another value: `hostNetwork: false` leaves nothing but its name in it.
        let word = if case.was_asked(difference) {
            taken_by_admission(case, difference)
        } else {
            case.predict(difference)
        };
        match word {
            Prediction::Asked => return None,
            Prediction::Unchanged => return Some(dropped(case, difference)),
            _ if case.was_asked(difference) => return Some(rejected_field::dropped(case, difference)),
            Prediction::Changed | Prediction::Refused | Prediction::Unavailable => {}
        }
    }
    // A map where the cluster has a list is likelier Git's mistake than anybody's choice.
    if is_of_other_shape(difference)
        && matches!(case.predict(difference), Prediction::Asked | Prediction::Refused)
    {
        return None;
    }
    if let Some(owned) = controller_owned::difference(case, difference) {
        return Some(owned);
    }
    if let Some(respelled) = equivalent_value::difference(case, difference) {
        return Some(respelled);
    }
    let edit = live_edit::difference(case, difference);
    // An edit is an edit without a second render; but if one was made for another field, it is heard. Whoever edits one
    // item of a list that is replaced as a whole owns all of them.
    let is_beside_others = is_beside_others(case, difference);
    if (edit.is_none() || is_beside_others || case.evidence.answers.second_render.is_some())
        && let Some(unstable) = unstable_render::difference(case, difference, edit.is_some())
    {
        return Some(unstable);
    }
    if edit.is_some() && is_beside_others && !case.facts().mutators.is_empty() {
        match case.predict(difference) {
            Prediction::Asked => return None,
            Prediction::Unchanged => return admission_mutated::difference(case, difference),
            Prediction::Changed | Prediction::Refused | Prediction::Unavailable => {}
        }
    }
    let is_doubtful = match &edit {
        None => is_perhaps_dropped(case, difference),
        Some(_) => is_perhaps_nobodys_edit(case, difference),
    };
    if is_doubtful {
        match case.predict(difference) {
            Prediction::Asked => return None,
            Prediction::Unchanged if difference.change == Change::Value => {
                return Some(phantom_default::chosen_by_server(difference));
            }
            Prediction::Unchanged => return Some(dropped(case, difference)),
            Prediction::Changed | Prediction::Refused | Prediction::Unavailable => {}
        }
    }
    if edit.is_none() && live_edit::edited_key(case, difference).is_none() {
        match taken_by_admission(case, difference) {
            Prediction::Asked => return None,
            Prediction::Unchanged => return Some(dropped(case, difference)),
            Prediction::Changed | Prediction::Refused | Prediction::Unavailable => {}
        }
    }
    if let Some(edit) = edit.or_else(|| live_edit::removed(case, difference)) {
        return Some(tug_of_war::escalate(case, edit));
    }
    if case.owners.is_empty() {
        match case.predict(difference) {
            Prediction::Asked | Prediction::Refused => return None,
            Prediction::Unchanged => return Some(unmoved(case, difference)),
            Prediction::Changed | Prediction::Unavailable => {}
        }
        return Some(match case.facts().previous {
            Previous::Changed(_) => behind::difference(case, difference),
            Previous::Rerendered if difference.live.is_none() => behind::difference(case, difference),
            Previous::Rerendered => unstable_render::since_applied(difference),
            Previous::Unknown | Previous::Same => {
                tug_of_war::escalate(case, unexplained::difference(case, difference))
            }
        });
    }
    explain_by_dry_run(case, difference)
}

/// Does something else differ in the same list or map that is replaced as a whole, and all of it only by its value? Where
/// items came or went, those behind them are no longer in their places.
fn is_beside_others(case: &Case<'_>, difference: &Difference<'_>) -> bool {
    let differences = case.comparison.differences.iter();
    let mut same = differences.filter(|other| other.whole == difference.whole);
    difference.whole.is_some() && same.clone().count() > 1 && same.all(|other| other.change == Change::Value)
}

fn is_of_other_shape(difference: &Difference<'_>) -> bool {
    let (Some(desired), Some(live)) = (difference.desired, difference.live) else { return false };
    desired.is_object() != live.is_object() || desired.is_array() != live.is_array()
}

/// What a built-in kind lacks though we applied it: somebody removed it, or it is one of the few fields (the user in a
/// certificate request, one behind a feature gate) that the server drops, and our record of them with it.
fn is_perhaps_dropped(case: &Case<'_>, difference: &Difference<'_>) -> bool {
    let is_gone = match difference.change {
        Change::Missing => true,
        Change::ItemMissing => difference.whole.is_some(),
        Change::Value | Change::Extra | Change::Order => false,
    };
    is_gone && case.is_built_in() && !case.is_secret && case.was_asked(difference)
}

/// The same where somebody else's name stands on the place. A record says who wrote it, not what they wrote: perhaps the
/// server dropped it then, as it does now, or reads Git's empty value as "you choose".
fn is_perhaps_nobodys_edit(case: &Case<'_>, difference: &Difference<'_>) -> bool {
    let may_be_dropped = case.is_built_in() && !case.is_secret;
    match difference.change {
        Change::Missing => {
            may_be_dropped || (difference.whole.is_some() && !case.facts().mutators.is_empty())
        }
        Change::Value => case.is_built_in() && difference.desired.is_some_and(is_zero),
        Change::ItemMissing | Change::Extra | Change::Order => false,
    }
}

/// Would a matching policy take it away again (or reorder it)? Without one there is nothing to ask.
fn taken_by_admission(case: &Case<'_>, difference: &Difference<'_>) -> Prediction {
    let is_gone = matches!(difference.change, Change::Missing | Change::ItemMissing | Change::Order);
    if is_gone && !case.facts().mutators.is_empty() {
        case.predict(difference)
    } else {
        Prediction::Unavailable
    }
}

/// What does not stay when it is written: a policy's doing where one matches, else the server's.
fn dropped(case: &Case<'_>, difference: &Difference<'_>) -> Explained {
    admission_mutated::difference(case, difference)
        .unwrap_or_else(|| rejected_field::dropped(case, difference))
}

/// What an apply does not change.
fn unmoved(case: &Case<'_>, difference: &Difference<'_>) -> Explained {
    if difference.desired.is_some_and(is_zero) {
        return phantom_default::chosen_by_server(difference);
    }
    match difference.change {
        Change::Missing => dropped(case, difference),
        Change::Value | Change::ItemMissing | Change::Extra | Change::Order => {
            admission_mutated::difference(case, difference)
                .unwrap_or_else(|| equivalent_value::printed_by_server(case, difference))
        }
    }
}

fn explain_by_dry_run(case: &Case<'_>, difference: &Difference<'_>) -> Option<Explained> {
    let place = difference.whole.as_ref().unwrap_or(&difference.path);
    let same = case.was_asked(difference);
    let rerendered = matches!(case.facts().previous, Previous::Rerendered);
    let is_there = difference.change != Change::ItemMissing;
    match case.predict(difference) {
        // The refusal is one finding for all fields.
        Prediction::Asked | Prediction::Refused => None,
        Prediction::Unchanged => Some(unmoved(case, difference)),
        Prediction::Changed if same && is_there && case.is_ours(place) => {
            Some(tug_of_war::escalate(case, unexplained::difference(case, difference)))
        }
        Prediction::Changed if same => {
            Some(tug_of_war::escalate(case, live_edit::nameless(case, difference)))
        }
        Prediction::Changed | Prediction::Unavailable if rerendered && is_there && case.is_ours(place) => {
            Some(unstable_render::since_applied(difference))
        }
        Prediction::Unavailable if same => {
            Some(tug_of_war::escalate(case, unexplained::difference(case, difference)))
        }
        Prediction::Changed | Prediction::Unavailable => Some(behind::difference(case, difference)),
    }
}

fn explain_addition(case: &Case<'_>, addition: &Addition<'_>, strict: bool) -> Option<Explained> {
    if let Some(replacement) = live_edit::replacement(case, addition) {
        return Some(replacement);
    }
    if let Some(default) = schema_default::addition(addition) {
        return explain_default(case, addition, default);
    }
    let place = addition.whole.as_ref().unwrap_or(&addition.path);
    if let Some(entry) = case.other_writer(place) {
        // It is the control plane that chooses a claim's volume, a pod's node.
        if addition.fill == Fill::Allocated && is_control_plane(entry.manager) {
            return Some(schema_default::unowned(addition).by(entry));
        }
        if is_status_of_controller(addition, entry.subresource, entry.manager) {
            return None;
        }
        let stale = stale_ownership::shared(case, addition, entry)
            .or_else(|| stale_ownership::delivered(case, addition, entry))
            .or_else(|| stale_ownership::dropped(case, addition, entry));
        if let Some(stale) = stale {
            return Some(stale);
        }
        if addition.whole.is_some() {
            if git_changed(case, place)? {
                return match case.predict_addition(addition) {
                    Prediction::Asked | Prediction::Refused => None,
                    Prediction::Unchanged => Some(unowned(case, addition)),
                    Prediction::Changed | Prediction::Unavailable => Some(behind::dropped(addition)),
                };
            }
            // Perhaps it is Git that dropped it, and the server does not take the rest; or the server made it of what they
            // changed, for whoever changes a part owns the whole.
            let is_unsure = matches!(case.facts().previous, Previous::Unknown);
            match case.predict_addition(addition) {
                Prediction::Asked => return None,
                Prediction::Refused if is_unsure => return None,
                Prediction::Unchanged => return Some(unowned(case, addition)),
                Prediction::Changed | Prediction::Refused | Prediction::Unavailable => {}
            }
        }
        if addition.in_whole_map {
            // Whoever changes a part of it owns the whole, with what the server filled in.
            match case.predict_addition(addition) {
                Prediction::Asked | Prediction::Refused => return None,
                Prediction::Unchanged => return Some(unowned(case, addition)),
                Prediction::Changed | Prediction::Unavailable => {}
            }
            let extra = Difference {
                path: addition.path.clone(),
                desired_path: addition.path.clone(),
                whole: addition.whole.clone(),
                change: Change::Extra,
                desired: None,
                live: Some(addition.live),
            };
            return explain_difference(case, &extra);
        }
        return Some(controller_owned::addition(case, addition, entry).unwrap_or_else(|| {
            tug_of_war::escalate(case, unclaimed_addition::addition(addition, entry, strict))
        }));
    }
    if let Some(entry) = stale_ownership::owner(case, addition) {
        if unclaimed_addition::was_seen(case, addition, entry) {
            return Some(unclaimed_addition::addition(addition, entry, strict));
        }
        if let Some(stale) = stale_ownership::addition(case, addition, entry) {
            return Some(stale);
        }
    } else if case.is_ours(place) && !matches!(case.facts().previous, Previous::Same) {
        if let Some(held) = unstable_render::held(case, addition) {
            return Some(held);
        }
        return match case.predict_addition(addition) {
            Prediction::Asked | Prediction::Refused => None,
            Prediction::Unchanged => Some(unowned(case, addition)),
            Prediction::Changed if addition.whole.is_some() && case.is_filled_anew(addition) => {
                Some(unowned(case, addition))
            }
            Prediction::Unavailable if addition.whole.is_some() => Some(perhaps_dropped(case, addition)),
            Prediction::Changed | Prediction::Unavailable => Some(behind::dropped(addition)),
        };
    }
    if case.owners.is_empty() && addition.fill == Fill::None {
        return Some(unclaimed_addition::nobody(addition, strict));
    }
    if is_scaled(case, addition) {
        return controller_owned::scaled_addition(case, addition)
            .or_else(|| Some(tug_of_war::escalate(case, unclaimed_addition::scaled(addition, strict))));
    }
    Some(unowned(case, addition))
}

/// A field with its default value. If this app applied it and Git dropped the line, an apply takes it out, and the server
/// fills it in again: nearly always. A pod gets `enableServiceLinks`, a pod template only keeps it.
fn explain_default(case: &Case<'_>, addition: &Addition<'_>, default: Explained) -> Option<Explained> {
    if addition.whole.is_some()
        || matches!(case.facts().previous, Previous::Same)
        || !is_named(case, addition)
    {
        return Some(default);
    }
    match case.predict_addition(addition) {
        Prediction::Asked => None,
        Prediction::Changed => Some(behind::dropped(addition)),
        Prediction::Unchanged | Prediction::Refused | Prediction::Unavailable => Some(default),
    }
}

/// Does our record name the place, or one around it that Git does not have either (`behavior: {}`, which the server fills)?
fn is_named(case: &Case<'_>, addition: &Addition<'_>) -> bool {
    let Some(ours) = case.owners.ours() else { return false };
    let outer = std::iter::successors(Some(addition.path.clone()), FieldPath::parent);
    let mut gone = outer.take_while(|place| place.find(case.desired.value()).is_none());
    gone.any(|place| ours.names(&place, case.live.value()))
}

/// Replicas that are not the default were set by a write through `scale`, which leaves no record where nobody owns
/// them.
fn is_scaled(case: &Case<'_>, addition: &Addition<'_>) -> bool {
    case.is_built_in() && addition.fill == Fill::None && is_path(&addition.path, &["spec", "replicas"])
}

/// Nobody's field: the server's or an admission configuration's.
fn unowned(case: &Case<'_>, addition: &Addition<'_>) -> Explained {
    admission_mutated::addition(case, addition)
        .filter(|_| addition.fill == Fill::None)
        .unwrap_or_else(|| schema_default::unowned(addition))
}

/// Something in a list or map that is ours as a whole, and a server that cannot say whether it would stay: what
/// was applied before tells, if it is known.
fn perhaps_dropped(case: &Case<'_>, addition: &Addition<'_>) -> Explained {
    match case.facts().previous {
        Previous::Changed(Some(previous)) if had(case, previous, addition) => behind::dropped(addition),
        Previous::Changed(Some(_)) | Previous::Same => unowned(case, addition),
        Previous::Changed(None) | Previous::Rerendered | Previous::Unknown => unexplained::addition(addition),
    }
}

pub(super) fn had(case: &Case<'_>, previous: &Manifest, addition: &Addition<'_>) -> bool {
    let schema = case.kind.map(|kind| kind.root);
    let place = twin(&addition.path, case.live.value(), previous.value(), schema);
    place.is_some_and(|place| place.find(previous.value()).is_some())
}

/// Metadata that the cluster's controllers write beside a status.
fn is_status_of_controller(addition: &Addition<'_>, subresource: Option<&str>, manager: &str) -> bool {
    subresource == Some("status")
        && is_control_plane(manager)
        && (is_under(&addition.path, &["metadata"]) || is_path(&addition.path, &["status"]))
}

/// Is it known that Git's value of this place is not what was applied last? `None`: a question was noted.
fn git_changed(case: &Case<'_>, place: &FieldPath) -> Option<bool> {
    match case.facts().previous {
        Previous::Unknown | Previous::Same | Previous::Rerendered => Some(false),
        Previous::Changed(Some(previous)) => {
            let schema = case.kind.map(|kind| kind.root);
            let (live, desired) = (case.live.value(), case.desired.value());
            let place = twin(place, live, desired, schema);
            Some(place.is_none_or(|place| case.asked_in(previous, &place) != place.find(desired)))
        }
        // Each render of an unstable chart is another object; that says nothing about this place.
        Previous::Changed(None) => case.is_unstable(&FieldPath::root()).map(|unstable| !unstable),
    }
}

/// The dry-run was refused: one finding, unless taking over what nobody owns makes it pass.
fn explain_refusal(case: &Case<'_>, found: &[Explained], ignored: &Ignored) -> Vec<Explained> {
    let Some(DryRun::Refused(failure)) = case.evidence.answers.dry_run else { return Vec::new() };
    if !failure.is_final() || is_beside_edited_key(failure, found) {
        return Vec::new();
    }
    if let Some(leftovers) = forbidden_leftovers(case, failure) {
        let fields = case.comparison.differences.iter().filter(|difference| !is_aside(&difference.path));
        let mut found: Vec<Explained> =
            fields.map(|difference| behind::difference(case, difference)).collect();
        found.extend(leftovers.into_iter().map(|path| {
            let mut explained = Explained::new(
                super::DriftClass::Behind,
                path.clone(),
                true,
                format!("{path} was filled in for Git's former choice, and the new one forbids it"),
            );
            explained.take = Some(path);
            explained
        }));
        return found;
    }
    let unsettled = unsettled(case, found, ignored);
    if unsettled.is_empty() && is_all_kept(case, failure, found, ignored) {
        return Vec::new();
    }
    blocked::refused(case, failure, &unsettled)
}

/// Does an apply leave everything that differs as it is (a controller's field, a value that is rendered anew each time)?
/// Then what the server refused is not what a sync would send.
fn is_all_kept(case: &Case<'_>, failure: &ApiFailure, found: &[Explained], ignored: &Ignored) -> bool {
    let mut differences = case
        .comparison
        .differences
        .iter()
        .filter(|difference| {
            !is_aside(&difference.path)
                && !is_ignored(case, ignored, &difference.path, &difference.desired_path)
        })
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
    let differences = differences.map(|difference| (&difference.path, &difference.desired_path));
    let is_unchanged = matches!(case.facts().previous, Previous::Same);
    let dropped = case.comparison.additions.iter().filter(|addition| {
        let place = addition.whole.as_ref().unwrap_or(&addition.path);
        !is_unchanged && addition.fill == Fill::None && case.is_ours(place)
    });
    differences
        .chain(dropped.map(|addition| (&addition.path, &addition.path)))
        .filter(|(path, desired_path)| {
            // That Git writes null says nothing of what the cluster has.
            let is_named =
                |known: &Explained| known.field == **path && known.class != super::DriftClass::PhantomDefault;
            !is_aside(path) && !is_ignored(case, ignored, path, desired_path) && !found.iter().any(is_named)
        })
        .map(|(path, _)| path.clone())
        .collect()
}

/// Git's item would stand beside the one that somebody made of it by changing its key, and the two clash (two
/// ports of one name). The sync takes the other one over and removes it, so nothing is in the way.
fn is_beside_edited_key(failure: &ApiFailure, found: &[Explained]) -> bool {
    let lists: Vec<FieldPath> = found
        .iter()
        .filter(|explained| explained.class == super::DriftClass::LiveEdit)
        .filter_map(|explained| explained.take.as_ref()?.parent())
        .collect();
    !failure.causes.is_empty()
        && failure.causes.iter().all(|cause| {
            let place = FieldPath::from_server(&cause.field);
            matches!(cause.reason.as_str(), "FieldValueDuplicate" | "FieldValueRequired")
                && lists.iter().any(|list| place.starts_with(list))
        })
}

/// Places that the server forbids beside Git's new choice, that Git does not set and nobody owns: defaults of
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
            && case.owners.of_place(place).all(|entry| entry.is_ours() || entry.is_client_side_apply())
    });
    // What cannot be changed does not become so by being taken over.
    let is_immutable = failure.causes.iter().any(|cause| blocked::is_immutable(&cause.message));
    (!places.is_empty() && places.len() == failure.causes.len() && all_left_over && !is_immutable)
        .then_some(places)
}
