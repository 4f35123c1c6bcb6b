//! Values that the comparison takes for equal although they are written differently.

use serde_json::Value;

use super::difference::rule_on_difference;
use super::rule::{Rule, Ruling, first_ruling};
use crate::compare::{Change, Difference, Forgiven, Reason};
use crate::drift::case::Case;
use crate::drift::classes::{equivalent_value, phantom_default};
use crate::drift::{DriftClass, DryRun, Question};

type ForgivenRule = Rule<fn(&Case<'_>, &Forgiven<'_>) -> Ruling>;

/// In the order in which they are tried. A zero value that none of them explains is a difference like any other.
pub(super) const FORGIVEN_RULES: &[ForgivenRule] = &[
    Rule {
        name: "equivalent-spelling",
        classes: &[DriftClass::EquivalentValue],
        decide: equivalent_spelling,
    },
    Rule { name: "null-in-git", classes: &[DriftClass::PhantomDefault], decide: null_in_git },
    Rule { name: "empty-list-in-git", classes: &[DriftClass::PhantomDefault], decide: empty_list_in_git },
    Rule { name: "zero-value-in-git", classes: &[DriftClass::PhantomDefault], decide: zero_value_in_git },
    Rule { name: "zero-value-dropped", classes: &[DriftClass::PhantomDefault], decide: zero_value_dropped },
];

pub(super) fn rule_on_forgiven(case: &Case<'_>, forgiven: &Forgiven<'_>) -> Ruling {
    first_ruling(FORGIVEN_RULES, |decide| decide(case, forgiven)).or_else(|| {
        let missing = Difference {
            path: forgiven.path.clone(),
            desired_path: forgiven.desired_path.clone(),
            whole: forgiven.whole.clone(),
            change: Change::Missing,
            desired: forgiven.desired,
            live: None,
        };
        rule_on_difference(case, &missing)
    })
}

fn equivalent_spelling(case: &Case<'_>, forgiven: &Forgiven<'_>) -> Ruling {
    match forgiven.reason {
        Reason::Spelling(spelling) => Ruling::Is(equivalent_value::forgiven(case, forgiven, spelling)),
        Reason::Null | Reason::NoItems | Reason::Zero => Ruling::Pass,
    }
}

/// A null reads as no value. Where it stands for a whole map of a custom resource, its schema may require the map: then the
/// API server refuses what Git asks for, although the cluster has nothing but defaults in it.
fn null_in_git(case: &Case<'_>, forgiven: &Forgiven<'_>) -> Ruling {
    if forgiven.reason != Reason::Null {
        return Ruling::Pass;
    }
    let may_be_required = !case.is_built_in() && forgiven.live.is_some_and(Value::is_object);
    match case.evidence.answers.dry_run {
        None if may_be_required => {
            case.ask(Question::DryRun);
            Ruling::Ask
        }
        Some(DryRun::Refused(failure)) if may_be_required && failure.is_final() => Ruling::Silent,
        None | Some(_) => Ruling::Is(phantom_default::null(forgiven)),
    }
}

fn empty_list_in_git(_: &Case<'_>, forgiven: &Forgiven<'_>) -> Ruling {
    (forgiven.reason == Reason::NoItems).then(|| phantom_default::no_items(forgiven)).into()
}

fn zero_value_in_git(case: &Case<'_>, forgiven: &Forgiven<'_>) -> Ruling {
    phantom_default::zero(case, forgiven).into()
}

/// A zero value of a built-in kind that the cluster lacks, and that our apply does not own: another writer removed it, or
/// it was never applied, or the API server drops it. Only the dry-run tells.
fn zero_value_dropped(case: &Case<'_>, forgiven: &Forgiven<'_>) -> Ruling {
    match case.evidence.answers.dry_run {
        None => {
            case.ask(Question::DryRun);
            Ruling::Ask
        }
        // The API server writes null for an empty list of a field that is always in the object.
        Some(DryRun::Object(object)) => match forgiven.desired_path.find(object.value()) {
            None | Some(Value::Null) => {
                Ruling::Is(phantom_default::dropped_by_server(forgiven.desired_path.clone()))
            }
            Some(_) => Ruling::Pass,
        },
        Some(DryRun::Refused(failure)) if failure.is_final() => Ruling::Silent,
        Some(DryRun::Refused(_) | DryRun::Unavailable) => Ruling::Pass,
    }
}
