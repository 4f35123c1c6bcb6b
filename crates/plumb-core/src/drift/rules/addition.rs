//! Fields and items that the cluster has and Git does not.
//!
//! Three lists: first the rules for every addition; then, if another writer owns it, the rules that look at that writer;
//! else the rules for additions without another owner.

use super::difference::rule_on_difference;
use super::rule::{Rule, Ruling, first_ruling};
use crate::compare::{Addition, Change, Difference, Fill, twin};
use crate::drift::DriftClass::{
    AdmissionMutated, Behind, ControllerOwned, LiveEdit, SchemaDefault, StaleOwnership, TugOfWar,
    UnclaimedAddition, Unexplained, UnstableRender,
};
use crate::drift::Previous;
use crate::drift::case::{Case, Prediction, is_path, is_under};
use crate::drift::classes::{
    admission_mutated, behind, controller_owned, live_edit, schema_default, stale_ownership, tug_of_war,
    unclaimed_addition, unexplained, unstable_render,
};
use crate::drift::explained::Explained;
use crate::fields::Entry;
use crate::object::FieldPath;

type AdditionRule = Rule<fn(&Case<'_>, &Addition<'_>) -> Ruling>;
type WriterRule = Rule<fn(&Case<'_>, &Addition<'_>, &Entry<'_>) -> Ruling>;

/// For every addition.
pub(super) const ADDITION_RULES: &[AdditionRule] = &[
    Rule { name: "item-with-edited-key", classes: &[LiveEdit], decide: item_with_edited_key },
    Rule { name: "schema-default", classes: &[SchemaDefault, Behind], decide: schema_default },
];

/// For an addition that another writer owns. The last one always decides.
pub(super) const OTHER_WRITER_RULES: &[WriterRule] = &[
    Rule {
        name: "allocated-by-control-plane",
        classes: &[SchemaDefault],
        decide: allocated_by_control_plane,
    },
    Rule { name: "metadata-of-status", classes: &[], decide: metadata_of_status },
    Rule { name: "shared-with-older-writer", classes: &[StaleOwnership], decide: shared_with_older_writer },
    Rule { name: "left-by-previous-tool", classes: &[StaleOwnership], decide: left_by_previous_tool },
    Rule { name: "kept-by-later-writer", classes: &[StaleOwnership], decide: kept_by_later_writer },
    Rule {
        name: "list-changed-in-git",
        classes: &[SchemaDefault, AdmissionMutated, Behind],
        decide: list_changed_in_git,
    },
    Rule {
        name: "list-filled-in-on-write",
        classes: &[SchemaDefault, AdmissionMutated],
        decide: list_filled_in_on_write,
    },
    Rule {
        name: "map-filled-in-on-write",
        classes: &[SchemaDefault, AdmissionMutated],
        decide: map_filled_in_on_write,
    },
    Rule { name: "added-by-controller", classes: &[ControllerOwned], decide: added_by_controller },
    Rule {
        name: "added-inside-whole-value",
        classes: &[LiveEdit, TugOfWar, Unexplained],
        decide: added_inside_whole_value,
    },
    Rule {
        name: "added-by-another-writer",
        classes: &[UnclaimedAddition, TugOfWar],
        decide: added_by_another_writer,
    },
];

/// For an addition without another owner. The last one always decides.
pub(super) const UNOWNED_RULES: &[AdditionRule] = &[
    Rule { name: "added-before-last-apply", classes: &[UnclaimedAddition], decide: added_before_last_apply },
    Rule { name: "left-by-earlier-apply", classes: &[StaleOwnership], decide: left_by_earlier_apply },
    Rule { name: "key-from-earlier-render", classes: &[UnstableRender], decide: key_from_earlier_render },
    Rule {
        name: "removed-from-git",
        classes: &[SchemaDefault, AdmissionMutated, Behind, LiveEdit, Unexplained],
        decide: removed_from_git,
    },
    Rule {
        name: "removed-from-git-without-record",
        classes: &[StaleOwnership],
        decide: removed_from_git_without_record,
    },
    Rule {
        name: "added-without-managed-fields",
        classes: &[UnclaimedAddition],
        decide: added_without_managed_fields,
    },
    Rule {
        name: "replicas-not-in-git",
        classes: &[ControllerOwned, UnclaimedAddition, TugOfWar],
        decide: replicas_not_in_git,
    },
    Rule {
        name: "added-with-erased-record",
        classes: &[UnclaimedAddition],
        decide: added_with_erased_record,
    },
    Rule {
        name: "changed-inside-whole-value",
        classes: &[LiveEdit, TugOfWar, Unexplained],
        decide: changed_inside_whole_value,
    },
    Rule {
        name: "filled-in-on-write",
        classes: &[SchemaDefault, AdmissionMutated],
        decide: filled_in_on_write,
    },
];

pub(super) fn rule_on_addition(case: &Case<'_>, addition: &Addition<'_>) -> Ruling {
    first_ruling(ADDITION_RULES, |decide| decide(case, addition)).or_else(|| {
        match case.other_writer(place_of(addition)) {
            Some(entry) => first_ruling(OTHER_WRITER_RULES, |decide| decide(case, addition, entry)),
            None => first_ruling(UNOWNED_RULES, |decide| decide(case, addition)),
        }
    })
}

/// The place that has an owner: the list or map around the addition, if it is replaced as a whole.
fn place_of<'f>(addition: &'f Addition<'_>) -> &'f FieldPath {
    addition.whole.as_ref().unwrap_or(&addition.path)
}

fn item_with_edited_key(case: &Case<'_>, addition: &Addition<'_>) -> Ruling {
    live_edit::replacement(case, addition).into()
}

/// A field with its default value. If this app applied it and Git dropped the line, an apply removes it, and the API server
/// fills in most defaults again. Some it only keeps: a pod gets `enableServiceLinks`, a pod template does not.
fn schema_default(case: &Case<'_>, addition: &Addition<'_>) -> Ruling {
    let Some(default) = schema_default::addition(addition) else { return Ruling::Pass };
    if addition.whole.is_some()
        || matches!(case.facts().previous, Previous::Same)
        || !is_named_by_us(case, addition)
    {
        return Ruling::Is(default);
    }
    match case.predict_value(addition) {
        Prediction::Asked => Ruling::Ask,
        Prediction::Changed => Ruling::Is(behind::dropped(addition)),
        Prediction::Unchanged | Prediction::Refused | Prediction::Unavailable => Ruling::Is(default),
    }
}

/// The control plane chooses the volume of a claim and the node of a pod.
fn allocated_by_control_plane(case: &Case<'_>, addition: &Addition<'_>, entry: &Entry<'_>) -> Ruling {
    (addition.fill == Fill::Allocated && case.is_control_plane(entry))
        .then(|| schema_default::unowned(addition).written_by(entry))
        .into()
}

/// The controllers of the cluster write some metadata together with a status.
fn metadata_of_status(case: &Case<'_>, addition: &Addition<'_>, entry: &Entry<'_>) -> Ruling {
    let is_of_status = entry.subresource == Some("status")
        && case.is_control_plane(entry)
        && (is_under(&addition.path, &["metadata"]) || is_path(&addition.path, &["status"]))
        && controller_owned::is_added_by_control_plane(case, addition);
    if is_of_status { Ruling::Silent } else { Ruling::Pass }
}

fn shared_with_older_writer(case: &Case<'_>, addition: &Addition<'_>, entry: &Entry<'_>) -> Ruling {
    stale_ownership::shared(case, addition, entry).into()
}

fn left_by_previous_tool(case: &Case<'_>, addition: &Addition<'_>, entry: &Entry<'_>) -> Ruling {
    stale_ownership::delivered(case, addition, entry).into()
}

fn kept_by_later_writer(case: &Case<'_>, addition: &Addition<'_>, entry: &Entry<'_>) -> Ruling {
    stale_ownership::dropped(case, addition, entry).into()
}

/// Git changed a list that is replaced as a whole: the dry-run tells defaults from items that will go.
fn list_changed_in_git(case: &Case<'_>, addition: &Addition<'_>, _: &Entry<'_>) -> Ruling {
    let Some(list) = &addition.whole else { return Ruling::Pass };
    match git_changed(case, list) {
        None => return Ruling::Ask,
        Some(false) => return Ruling::Pass,
        Some(true) => {}
    }
    match case.predict_addition(addition) {
        Prediction::Asked => Ruling::Ask,
        Prediction::Refused => Ruling::Silent,
        Prediction::Unchanged => Ruling::Is(unowned(case, addition)),
        Prediction::Changed | Prediction::Unavailable => Ruling::Is(behind::dropped(addition)),
    }
}

/// In a list that is replaced as a whole, a writer that changes one item owns all of them, with what the API server filled
/// in. If the last apply is not known, Git may have dropped the item, and a refusal is about the rest of the list.
fn list_filled_in_on_write(case: &Case<'_>, addition: &Addition<'_>, _: &Entry<'_>) -> Ruling {
    if addition.whole.is_none() {
        return Ruling::Pass;
    }
    let is_last_apply_unknown = matches!(case.facts().previous, Previous::Unknown);
    match case.predict_addition(addition) {
        Prediction::Asked => Ruling::Ask,
        Prediction::Refused if is_last_apply_unknown => Ruling::Silent,
        Prediction::Unchanged => Ruling::Is(unowned(case, addition)),
        Prediction::Changed | Prediction::Refused | Prediction::Unavailable => Ruling::Pass,
    }
}

/// The same in a map that is one value. A key that was not filled in on write changes what the map means: it is a
/// difference.
fn map_filled_in_on_write(case: &Case<'_>, addition: &Addition<'_>, _: &Entry<'_>) -> Ruling {
    if !addition.in_whole_map {
        return Ruling::Pass;
    }
    match case.predict_addition(addition) {
        Prediction::Asked => Ruling::Ask,
        Prediction::Refused => Ruling::Silent,
        Prediction::Unchanged => Ruling::Is(unowned(case, addition)),
        Prediction::Changed | Prediction::Unavailable => {
            let extra = Difference {
                path: addition.path.clone(),
                desired_path: addition.path.clone(),
                whole: addition.whole.clone(),
                change: Change::Extra,
                desired: None,
                live: Some(addition.live),
            };
            rule_on_difference(case, &extra)
        }
    }
}

fn added_by_controller(case: &Case<'_>, addition: &Addition<'_>, entry: &Entry<'_>) -> Ruling {
    controller_owned::addition(case, addition, entry).into()
}

/// A list or map that is replaced as a whole is one value, and Git sets it: a `namespaceSelector` beside the `podSelector` of
/// a peer opens a network policy. If an apply removes the field, it is an edit of Git's value.
fn added_inside_whole_value(case: &Case<'_>, addition: &Addition<'_>, entry: &Entry<'_>) -> Ruling {
    if controller_owned::may_add_inside(case, addition, entry) {
        return Ruling::Pass;
    }
    inside_whole_value(case, addition, Some(entry))
}

fn inside_whole_value(case: &Case<'_>, addition: &Addition<'_>, entry: Option<&Entry<'_>>) -> Ruling {
    if addition.whole.is_none() || addition.fill != Fill::None {
        return Ruling::Pass;
    }
    match case.predict_addition(addition) {
        Prediction::Asked => Ruling::Ask,
        Prediction::Changed if !case.is_generated_on_each_write(addition) => {
            Ruling::Is(tug_of_war::escalate(case, live_edit::inside_whole_value(addition, entry)))
        }
        Prediction::Unavailable if may_change_meaning(case, addition, entry) => {
            Ruling::Is(tug_of_war::escalate(case, unexplained::addition(addition)))
        }
        Prediction::Changed | Prediction::Unchanged | Prediction::Refused | Prediction::Unavailable => {
            Ruling::Pass
        }
    }
}

/// Without an answer of the API server: may the field be an edit? It is not a known default. Another writer wrote the list
/// or map after our apply, or it is a map of a kind of Kubernetes, to which the API server itself adds no keys. What only
/// plumb owns in a list is more likely a default that plumb does not know.
fn may_change_meaning(case: &Case<'_>, addition: &Addition<'_>, entry: Option<&Entry<'_>>) -> bool {
    entry.is_some_and(|entry| case.is_after_ours(entry)) || (addition.in_whole_map && case.is_built_in())
}

fn added_by_another_writer(case: &Case<'_>, addition: &Addition<'_>, entry: &Entry<'_>) -> Ruling {
    Ruling::Is(tug_of_war::escalate(case, unclaimed_addition::addition(case, addition, entry)))
}

fn added_before_last_apply(case: &Case<'_>, addition: &Addition<'_>) -> Ruling {
    stale_ownership::owner(case, addition)
        .filter(|entry| case.was_found_added(addition, entry))
        .map(|entry| unclaimed_addition::addition(case, addition, entry))
        .into()
}

fn left_by_earlier_apply(case: &Case<'_>, addition: &Addition<'_>) -> Ruling {
    let owner = stale_ownership::owner(case, addition);
    owner.and_then(|entry| stale_ownership::addition(case, addition, entry)).into()
}

fn key_from_earlier_render(case: &Case<'_>, addition: &Addition<'_>) -> Ruling {
    if !may_be_removed_from_git(case, addition) {
        return Ruling::Pass;
    }
    unstable_render::held(case, addition).into()
}

/// This app owns it, and the last apply was not the same as Git now: the dry-run tells whether an apply removes it.
fn removed_from_git(case: &Case<'_>, addition: &Addition<'_>) -> Ruling {
    if !may_be_removed_from_git(case, addition) {
        return Ruling::Pass;
    }
    match case.predict_addition(addition) {
        Prediction::Asked => Ruling::Ask,
        Prediction::Refused => Ruling::Silent,
        Prediction::Unchanged => Ruling::Is(unowned(case, addition)),
        Prediction::Changed if addition.whole.is_some() && case.is_generated_on_each_write(addition) => {
            Ruling::Is(unowned(case, addition))
        }
        Prediction::Unavailable if addition.whole.is_some() => Ruling::Is(removed_from_list(case, addition)),
        Prediction::Changed | Prediction::Unavailable if is_forged(case, addition) => {
            Ruling::Is(live_edit::under_our_name(addition))
        }
        Prediction::Changed | Prediction::Unavailable => Ruling::Is(behind::dropped(addition)),
    }
}

/// Git asked for it when this app applied last, and no entry of `managedFields` names it: another client removed the entry.
fn removed_from_git_without_record(case: &Case<'_>, addition: &Addition<'_>) -> Ruling {
    stale_ownership::without_owner(case, addition).into()
}

fn added_without_managed_fields(case: &Case<'_>, addition: &Addition<'_>) -> Ruling {
    (case.owners.is_empty() && addition.fill == Fill::None)
        .then(|| unclaimed_addition::without_record(case, addition))
        .into()
}

/// Replicas that are not the default were set through the `scale` subresource. Kubernetes does not record that write where
/// the field has no owner.
fn replicas_not_in_git(case: &Case<'_>, addition: &Addition<'_>) -> Ruling {
    let is_scaled =
        case.is_built_in() && addition.fill == Fill::None && is_path(&addition.path, &["spec", "replicas"]);
    if !is_scaled {
        return Ruling::Pass;
    }
    Ruling::Is(
        controller_owned::scaled_addition(case, addition)
            .unwrap_or_else(|| tug_of_war::escalate(case, unclaimed_addition::scaled(case, addition))),
    )
}

/// The API server fills in no containers, volumes, labels or configuration keys, and every client that adds one is recorded:
/// if `managedFields` do not name it, a client removed the entry.
fn added_with_erased_record(case: &Case<'_>, addition: &Addition<'_>) -> Ruling {
    let is_unexplained =
        addition.fill == Fill::None && addition.whole.is_none() && case.facts().mutators.is_empty();
    (is_unexplained && unclaimed_addition::is_never_filled_in(case, addition))
        .then(|| unclaimed_addition::with_erased_record(case, addition))
        .into()
}

/// The same under plumb's own name, or with a record that was erased.
fn changed_inside_whole_value(case: &Case<'_>, addition: &Addition<'_>) -> Ruling {
    inside_whole_value(case, addition, None)
}

fn filled_in_on_write(case: &Case<'_>, addition: &Addition<'_>) -> Ruling {
    Ruling::Is(unowned(case, addition))
}

/// Does plumb own it, while the last apply was not the same as Git now?
fn may_be_removed_from_git(case: &Case<'_>, addition: &Addition<'_>) -> bool {
    stale_ownership::owner(case, addition).is_none()
        && case.is_ours(place_of(addition))
        && (!matches!(case.facts().previous, Previous::Same) || is_forged(case, addition))
}

/// Does our entry name the field, although the last apply, which is what Git asks now, did not have it? Then another client
/// applied under the name of plumb's field manager.
fn is_forged(case: &Case<'_>, addition: &Addition<'_>) -> bool {
    let Some(ours) = case.owners.ours() else { return false };
    // In another version of the kind the field may have another name.
    let is_of_version = ours.api_version.is_none_or(|version| version == case.live.api_version());
    matches!(case.facts().previous, Previous::Same)
        && addition.whole.is_none()
        && addition.fill == Fill::None
        && is_of_version
        && ours.names(&addition.path, case.live.value())
}

/// Does our entry name the field, or one around it that Git does not have either (`behavior: {}`, which the API server
/// fills in)?
fn is_named_by_us(case: &Case<'_>, addition: &Addition<'_>) -> bool {
    let Some(ours) = case.owners.ours() else { return false };
    let outer = std::iter::successors(Some(addition.path.clone()), FieldPath::parent);
    let mut gone = outer.take_while(|place| place.find(case.desired.value()).is_none());
    gone.any(|place| ours.names(&place, case.live.value()))
}

/// A field without an owner: the API server filled it in, or a policy that matches the object.
fn unowned(case: &Case<'_>, addition: &Addition<'_>) -> Explained {
    admission_mutated::addition(case, addition)
        .filter(|_| addition.fill == Fill::None)
        .unwrap_or_else(|| schema_default::unowned(addition))
}

/// An item of a list that is ours as a whole, and no dry-run: the manifest of the last apply tells, if it is known.
fn removed_from_list(case: &Case<'_>, addition: &Addition<'_>) -> Explained {
    match case.facts().previous {
        Previous::Changed(Some(previous)) if case.is_addition_in(previous, addition) => {
            behind::dropped(addition)
        }
        Previous::Changed(Some(_)) | Previous::Same if may_change_meaning(case, addition, None) => {
            unexplained::addition(addition)
        }
        Previous::Changed(Some(_)) | Previous::Same => unowned(case, addition),
        Previous::Changed(None) | Previous::Rerendered | Previous::Unknown => unexplained::addition(addition),
    }
}

/// Does Git's value of this list differ from what was applied last? `None`: that takes a second render, and the question is
/// noted.
fn git_changed(case: &Case<'_>, list: &FieldPath) -> Option<bool> {
    match case.facts().previous {
        Previous::Unknown | Previous::Same | Previous::Rerendered => Some(false),
        Previous::Changed(Some(previous)) => {
            let schema = case.kind.map(|kind| kind.root);
            let (live, desired) = (case.live.value(), case.desired.value());
            let list = twin(list, live, desired, schema);
            Some(list.is_none_or(|list| case.desired_in(previous, &list) != list.find(desired)))
        }
        // Each render of an unstable chart gives another object, whether or not this list changed.
        Previous::Changed(None) => case.is_unstable(&FieldPath::root()).map(|unstable| !unstable),
    }
}
