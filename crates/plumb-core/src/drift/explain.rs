//! One class for every difference between what Git asks and what the cluster holds.

mod addition;
mod refusal;

use serde_json::Value;

use self::addition::explain_addition;
pub(super) use self::addition::had;
use self::refusal::explain_refusal;

use super::case::{Case, Explained, Prediction, is_under, last_field};
use super::classes::{
    admission_mutated, behind, blocked, controller_owned, equivalent_value, live_edit, phantom_default,
    rejected_field, shared_resource, tug_of_war, unexplained, unstable_render,
};
use super::evidence::{DryRun, Question};
use super::ignored::{is_difference_ignored, is_ignored};
use super::{DriftClass, Previous};
use crate::compare::{Change, Difference, Forgiven, Reason, Spelling, is_zero};
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
        if !aside && !is_difference_ignored(case, &ignored, difference) {
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
    name_nulls_once(&mut found);
    // What has the place of a missing item is another's, and so may be its owner.
    let is_missing_item = |place: &FieldPath| {
        let mut differences = case.comparison.differences.iter();
        differences.any(|difference| difference.change == Change::ItemMissing && difference.path == *place)
    };
    found.retain(|explained| {
        !explained.counts
            || is_missing_item(&explained.field)
            || !is_ignored(case, &ignored, &explained.field, &explained.field)
    });
    found
}

/// Git writes null, and the cluster has something there: what that is says more, unless it means nothing either.
fn name_nulls_once(found: &mut Vec<Explained>) {
    let is_null = |known: &Explained| known.class == DriftClass::PhantomDefault;
    let nulls: Vec<FieldPath> =
        found.iter().filter(|known| is_null(known)).map(|known| known.field.clone()).collect();
    if nulls.is_empty() {
        return;
    }
    let beside: Vec<FieldPath> = found
        .iter()
        .filter(|known| !is_null(known) && known.class != DriftClass::SchemaDefault)
        .filter(|known| nulls.contains(&known.field))
        .map(|known| known.field.clone())
        .collect();
    found.retain(|known| match known.class {
        DriftClass::PhantomDefault => !beside.contains(&known.field),
        DriftClass::SchemaDefault => !nulls.contains(&known.field),
        _ => true,
    });
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
        if case.was_asked(difference) {
            return match taken_by_admission(case, difference) {
                Prediction::Asked => None,
                Prediction::Unchanged => Some(dropped(case, difference)),
                Prediction::Changed | Prediction::Refused | Prediction::Unavailable => {
                    Some(rejected_field::dropped(case, difference))
                }
            };
        }
        // The record may be of another value: `hostNetwork: false` leaves nothing but its name in it.
        match case.predict(difference) {
            Prediction::Asked => return None,
            Prediction::Unchanged => return Some(dropped(case, difference)),
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
