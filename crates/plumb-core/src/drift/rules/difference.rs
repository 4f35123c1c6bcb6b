//! Values that Git sets and the cluster does not have like this.

use super::rule::{Rule, Ruling, first_ruling};
use crate::compare::{Change, Difference, is_zero};
use crate::drift::DriftClass::{
    AdmissionMutated, Behind, ControllerOwned, EquivalentValue, LiveEdit, PhantomDefault, RejectedField,
    TugOfWar, UnclaimedAddition, Unexplained, UnstableRender,
};
use crate::drift::Previous;
use crate::drift::case::{Case, Prediction};
use crate::drift::classes::{
    admission_mutated, behind, controller_owned, equivalent_value, live_edit, phantom_default,
    rejected_field, tug_of_war, unclaimed_addition, unexplained, unstable_render,
};
use crate::drift::explained::Explained;
use crate::tracking::FIELD_MANAGER;

type DifferenceRule = Rule<fn(&Case<'_>, &Difference<'_>) -> Ruling>;

/// In the order in which they are tried, from the strongest evidence to the weakest. The last one always decides.
pub(super) const DIFFERENCE_RULES: &[DifferenceRule] = &[
    Rule { name: "dropped-on-write", classes: &[AdmissionMutated, RejectedField], decide: dropped_on_write },
    Rule { name: "value-of-another-type", classes: &[], decide: value_of_another_type },
    Rule { name: "autoscaled-replicas", classes: &[ControllerOwned], decide: autoscaled_replicas },
    Rule { name: "node-condition-taint", classes: &[ControllerOwned], decide: node_condition_taint },
    Rule { name: "aggregated-cluster-role", classes: &[ControllerOwned], decide: aggregated_cluster_role },
    Rule { name: "field-of-controller", classes: &[ControllerOwned], decide: field_of_controller },
    Rule {
        name: "reformatted-by-controller",
        classes: &[EquivalentValue],
        decide: reformatted_by_controller,
    },
    Rule { name: "differs-in-each-render", classes: &[UnstableRender], decide: differs_in_each_render },
    Rule {
        name: "edited-list-under-admission",
        classes: &[AdmissionMutated],
        decide: edited_list_under_admission,
    },
    Rule {
        name: "set-beside-empty-value",
        classes: &[UnclaimedAddition, TugOfWar],
        decide: set_beside_empty_value,
    },
    Rule {
        name: "not-kept-on-write",
        classes: &[PhantomDefault, AdmissionMutated, RejectedField],
        decide: not_kept_on_write,
    },
    Rule { name: "removed-by-admission", classes: &[AdmissionMutated], decide: removed_by_admission },
    Rule {
        name: "edited-by-another-writer",
        classes: &[LiveEdit, TugOfWar],
        decide: edited_by_another_writer,
    },
    Rule { name: "removed-or-reordered", classes: &[LiveEdit, TugOfWar], decide: removed_or_reordered },
    Rule {
        name: "unchanged-by-apply",
        classes: &[PhantomDefault, AdmissionMutated, RejectedField, EquivalentValue],
        decide: unchanged_by_apply,
    },
    Rule { name: "no-managed-fields", classes: &[Behind, Unexplained, TugOfWar], decide: no_managed_fields },
    Rule {
        name: "changed-but-still-ours",
        classes: &[Unexplained, TugOfWar],
        decide: changed_but_still_ours,
    },
    Rule { name: "changed-without-record", classes: &[LiveEdit, TugOfWar], decide: changed_without_record },
    Rule {
        name: "applied-from-another-render",
        classes: &[UnstableRender],
        decide: applied_from_another_render,
    },
    Rule { name: "server-did-not-answer", classes: &[Unexplained, TugOfWar], decide: server_did_not_answer },
    Rule { name: "changed-in-git", classes: &[Behind], decide: changed_in_git },
];

pub(super) fn rule_on_difference(case: &Case<'_>, difference: &Difference<'_>) -> Ruling {
    first_ruling(DIFFERENCE_RULES, |decide| decide(case, difference))
}

/// `managedFields` name the field, and the object does not have it: the API server or a policy may have dropped it on write.
/// Only the dry-run proves it. A client that removes a field can put its name back into `managedFields`, and one that applies
/// as `argocd-controller` owns what plumb owned.
fn dropped_on_write(case: &Case<'_>, difference: &Difference<'_>) -> Ruling {
    if !case.may_be_dropped_by_server(difference) {
        return Ruling::Pass;
    }
    match case.predict(difference) {
        Prediction::Asked => Ruling::Ask,
        Prediction::Unchanged => Ruling::Is(dropped(case, difference)),
        Prediction::Changed | Prediction::Refused | Prediction::Unavailable => Ruling::Pass,
    }
}

/// A map where the cluster has a list is more likely a mistake in Git than a choice of another writer. If the API server
/// refuses it, that is one finding for the whole object.
fn value_of_another_type(case: &Case<'_>, difference: &Difference<'_>) -> Ruling {
    if !has_other_type(difference) {
        return Ruling::Pass;
    }
    match case.predict(difference) {
        Prediction::Asked => Ruling::Ask,
        Prediction::Refused => Ruling::Silent,
        Prediction::Unchanged | Prediction::Changed | Prediction::Unavailable => Ruling::Pass,
    }
}

fn autoscaled_replicas(case: &Case<'_>, difference: &Difference<'_>) -> Ruling {
    controller_owned::autoscaled(case, difference).into()
}

fn node_condition_taint(case: &Case<'_>, difference: &Difference<'_>) -> Ruling {
    controller_owned::tainted(case, difference).into()
}

fn aggregated_cluster_role(case: &Case<'_>, difference: &Difference<'_>) -> Ruling {
    controller_owned::aggregated(case, difference).into()
}

fn field_of_controller(case: &Case<'_>, difference: &Difference<'_>) -> Ruling {
    controller_owned::difference(case, difference).into()
}

fn reformatted_by_controller(case: &Case<'_>, difference: &Difference<'_>) -> Ruling {
    equivalent_value::difference(case, difference).into()
}

/// An edit is an edit, also of a value that the chart generates: a password that another writer chose is not one of the
/// chart's. Only a writer that edits one item of a list that is replaced as a whole owns all items of it.
fn differs_in_each_render(case: &Case<'_>, difference: &Difference<'_>) -> Ruling {
    let is_edited = live_edit::editor(case, difference).is_some();
    if is_edited && !has_differing_siblings(case, difference) {
        return Ruling::Pass;
    }
    unstable_render::difference(case, difference, is_edited).into()
}

/// A writer that edits one item of a list that is replaced as a whole owns what a policy does to the other items.
fn edited_list_under_admission(case: &Case<'_>, difference: &Difference<'_>) -> Ruling {
    let is_edited = live_edit::editor(case, difference).is_some();
    if !is_edited || !has_differing_siblings(case, difference) || case.facts().mutators.is_empty() {
        return Ruling::Pass;
    }
    match case.predict(difference) {
        Prediction::Asked => Ruling::Ask,
        Prediction::Unchanged => admission_mutated::difference(case, difference).into(),
        Prediction::Changed | Prediction::Refused | Prediction::Unavailable => Ruling::Pass,
    }
}

/// Git sets `""` or 0 where the API server fills in a default (`sessionAffinity`): that reads as no value at all. A value
/// that another writer sets there is an addition, as it would be if Git left the field out. Only the dry-run tells.
fn set_beside_empty_value(case: &Case<'_>, difference: &Difference<'_>) -> Ruling {
    let is_empty = difference.change == Change::Value
        && difference.whole.is_none()
        && difference.desired.is_some_and(|value| is_zero(value) && !value.is_boolean());
    let Some(entry) = live_edit::editor(case, difference).filter(|_| is_empty && case.is_built_in()) else {
        return Ruling::Pass;
    };
    match case.predict(difference) {
        Prediction::Asked => Ruling::Ask,
        Prediction::Changed if case.becomes_default(difference) => {
            let addition = unclaimed_addition::beside_empty(case, difference, entry);
            Ruling::Is(tug_of_war::escalate(case, addition))
        }
        Prediction::Changed | Prediction::Unchanged | Prediction::Refused | Prediction::Unavailable => {
            Ruling::Pass
        }
    }
}

/// The API server may drop the value on every write, or choose another one. Only the dry-run tells.
fn not_kept_on_write(case: &Case<'_>, difference: &Difference<'_>) -> Ruling {
    let is_doubtful = match live_edit::editor(case, difference) {
        None => may_be_dropped(case, difference),
        Some(_) => may_be_no_edit(case, difference),
    };
    if !is_doubtful {
        return Ruling::Pass;
    }
    match case.predict(difference) {
        Prediction::Asked => Ruling::Ask,
        Prediction::Unchanged if difference.change == Change::Value => {
            Ruling::Is(phantom_default::chosen_by_server(difference))
        }
        Prediction::Unchanged => Ruling::Is(dropped(case, difference)),
        Prediction::Changed | Prediction::Refused | Prediction::Unavailable => Ruling::Pass,
    }
}

fn removed_by_admission(case: &Case<'_>, difference: &Difference<'_>) -> Ruling {
    if live_edit::editor(case, difference).is_some() || live_edit::edited_key(case, difference).is_some() {
        return Ruling::Pass;
    }
    match removal_by_admission(case, difference) {
        Prediction::Asked => Ruling::Ask,
        Prediction::Unchanged => Ruling::Is(dropped(case, difference)),
        Prediction::Changed | Prediction::Refused | Prediction::Unavailable => Ruling::Pass,
    }
}

fn edited_by_another_writer(case: &Case<'_>, difference: &Difference<'_>) -> Ruling {
    let edit = live_edit::difference(case, difference);
    edit.map(|edit| tug_of_war::escalate(case, edit)).into()
}

fn removed_or_reordered(case: &Case<'_>, difference: &Difference<'_>) -> Ruling {
    let removal = live_edit::removed(case, difference);
    removal.map(|removal| tug_of_war::escalate(case, removal)).into()
}

/// From here on the dry-run decides. A refusal is one finding for the whole object.
fn unchanged_by_apply(case: &Case<'_>, difference: &Difference<'_>) -> Ruling {
    match case.predict(difference) {
        Prediction::Asked => Ruling::Ask,
        Prediction::Refused => Ruling::Silent,
        Prediction::Unchanged => Ruling::Is(unchanged(case, difference)),
        Prediction::Unavailable if phantom_default::is_left_to_server(case, difference) => {
            Ruling::Is(phantom_default::left_to_server(difference))
        }
        Prediction::Changed | Prediction::Unavailable => Ruling::Pass,
    }
}

/// Without `managedFields`, only the memory of the last apply is left.
fn no_managed_fields(case: &Case<'_>, difference: &Difference<'_>) -> Ruling {
    if !case.owners.is_empty() {
        return Ruling::Pass;
    }
    Ruling::Is(match case.facts().previous {
        // Another client may have removed the record of its own write.
        Previous::Changed(_) | Previous::Rerendered => behind::difference(case, difference),
        Previous::Unknown | Previous::Same => {
            tug_of_war::escalate(case, unexplained::difference(case, difference))
        }
    })
}

/// The last apply asked for the same, and `managedFields` say that plumb wrote the live value.
fn changed_but_still_ours(case: &Case<'_>, difference: &Difference<'_>) -> Ruling {
    let is_changed = case.predict(difference) == Prediction::Changed && case.was_applied(difference);
    let is_ours = is_changed && is_still_ours(case, difference);
    is_ours.then(|| tug_of_war::escalate(case, unexplained::difference(case, difference))).into()
}

/// The last apply asked for the same, and no entry of `managedFields` names the field.
fn changed_without_record(case: &Case<'_>, difference: &Difference<'_>) -> Ruling {
    let is_changed = case.predict(difference) == Prediction::Changed && case.was_applied(difference);
    is_changed.then(|| tug_of_war::escalate(case, live_edit::without_record(case, difference))).into()
}

/// The last apply came from the same commit, and only plumb wrote the field since. The witness does not note what plumb
/// writes: if it names plumb's field manager, another client used it.
fn applied_from_another_render(case: &Case<'_>, difference: &Difference<'_>) -> Ruling {
    let is_rerendered = matches!(case.facts().previous, Previous::Rerendered);
    let is_plumbs = case.witnessed_writer().0.as_deref() != Some(FIELD_MANAGER);
    (is_rerendered
        && is_plumbs
        && is_still_ours(case, difference)
        && unstable_render::may_follow_the_time(case, difference))
    .then(|| unstable_render::since_applied(difference))
    .into()
}

/// The last apply asked for the same, and there is no dry-run to tell whether an apply would help.
fn server_did_not_answer(case: &Case<'_>, difference: &Difference<'_>) -> Ruling {
    case.was_applied(difference)
        .then(|| tug_of_war::escalate(case, unexplained::difference(case, difference)))
        .into()
}

fn changed_in_git(case: &Case<'_>, difference: &Difference<'_>) -> Ruling {
    Ruling::Is(behind::difference(case, difference))
}

/// Is the field in the object, and is plumb an owner of it?
fn is_still_ours(case: &Case<'_>, difference: &Difference<'_>) -> bool {
    let place = difference.whole.as_ref().unwrap_or(&difference.path);
    difference.change != Change::ItemMissing && case.is_ours(place)
}

/// Do other values differ in the same list or map that is replaced as a whole, and only values? If items were added or
/// removed, the positions of the items after them no longer match.
fn has_differing_siblings(case: &Case<'_>, difference: &Difference<'_>) -> bool {
    difference.whole.as_ref().is_some_and(|whole| case.has_differing_siblings(whole))
}

/// Is one side a map or a list, and the other not?
pub(super) fn has_other_type(difference: &Difference<'_>) -> bool {
    let (Some(desired), Some(live)) = (difference.desired, difference.live) else { return false };
    desired.is_object() != live.is_object() || desired.is_array() != live.is_array()
}

/// A field of a built-in kind that was applied and is gone: another writer removed it, or it is one of the few fields (the
/// user in a certificate request, one behind a feature gate) that the API server drops together with their entry in
/// `managedFields`.
fn may_be_dropped(case: &Case<'_>, difference: &Difference<'_>) -> bool {
    let is_gone = match difference.change {
        Change::Missing => true,
        Change::ItemMissing => difference.whole.is_some(),
        Change::Value | Change::Extra | Change::Order => false,
    };
    is_gone && case.is_built_in() && !case.is_secret() && case.was_applied(difference)
}

/// `managedFields` name another writer, but not the value that it wrote: the API server may have dropped the field then, as
/// it does now, or it reads Git's empty value as "you choose".
fn may_be_no_edit(case: &Case<'_>, difference: &Difference<'_>) -> bool {
    let may_be_dropped = case.is_built_in() && !case.is_secret();
    match difference.change {
        Change::Missing => {
            may_be_dropped || (difference.whole.is_some() && !case.facts().mutators.is_empty())
        }
        Change::Value => case.is_built_in() && difference.desired.is_some_and(is_zero),
        Change::ItemMissing | Change::Extra | Change::Order => false,
    }
}

/// Would a matching policy remove or reorder it again? Without a matching policy there is no need to ask.
fn removal_by_admission(case: &Case<'_>, difference: &Difference<'_>) -> Prediction {
    let is_gone = matches!(difference.change, Change::Missing | Change::ItemMissing | Change::Order);
    if is_gone && !case.facts().mutators.is_empty() {
        case.predict(difference)
    } else {
        Prediction::Unavailable
    }
}

/// A field that is dropped on every write: by a policy where one matches, else by the API server.
pub(super) fn dropped(case: &Case<'_>, difference: &Difference<'_>) -> Explained {
    admission_mutated::difference(case, difference)
        .unwrap_or_else(|| rejected_field::dropped(case, difference))
}

/// A difference that an apply does not change.
fn unchanged(case: &Case<'_>, difference: &Difference<'_>) -> Explained {
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
