//! What the cluster has and Git does not.

use super::super::Previous;
use super::super::case::{Case, Explained, Prediction, is_path, is_under};
use super::super::classes::{
    admission_mutated, behind, controller_owned, live_edit, schema_default, stale_ownership, tug_of_war,
    unclaimed_addition, unexplained, unstable_render,
};
use super::explain_difference;
use crate::compare::{Addition, Change, Difference, Fill, twin};
use crate::fields::is_control_plane;
use crate::object::{FieldPath, Manifest};

/// One class for what the cluster has and Git does not.
pub(super) fn explain_addition(case: &Case<'_>, addition: &Addition<'_>, strict: bool) -> Option<Explained> {
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
            tug_of_war::escalate(case, unclaimed_addition::addition(case, addition, entry, strict))
        }));
    }
    if let Some(entry) = stale_ownership::owner(case, addition) {
        if unclaimed_addition::was_seen(case, addition, entry) {
            return Some(unclaimed_addition::addition(case, addition, entry, strict));
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
    match case.predict_value(addition) {
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

pub(in crate::drift) fn had(case: &Case<'_>, previous: &Manifest, addition: &Addition<'_>) -> bool {
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
