//! Which change ends a finding: one decision per class.

use std::cmp::Ordering;

use serde_json::Value;

use super::hook_policy::delete_after_success;
use super::missing::{Change, time_to_live};
use super::pins::pins;
use super::seen::{is_compared, is_seen_default};
use super::{Action, FixGoal, IgnoreEntry, Keeper, ObjectChange, Proposal, Subject, json_patch};
use crate::desired::Origin;
use crate::drift::{DriftClass, Finding, FixKind};
use crate::normalize::is_secret;
use crate::object::{FieldPath, Segment};
use crate::references::is_built_in_group;
use crate::yaml::Operation;

/// What would end this finding for this goal: one step, or a change and a rule for what the change cannot cover.
pub fn propose(subject: &Subject<'_>, goal: FixGoal) -> Vec<Proposal> {
    let finding = subject.finding;
    let actions = match goal {
        FixGoal::ArgoCd
            if !finding.counts && subject.is_red_in_argo_cd == Some(false) && subject.keeper.is_none() =>
        {
            vec![Action::Nothing("Argo CD shows the object as Synced")]
        }
        // A kept edit is the user's wish, not plumb's.
        FixGoal::Plumb if !is_asked_by_plumb(finding) && !subject.keeps_live && subject.keeper.is_none() => {
            vec![Action::Nothing("plumb does not count the difference, and asks for no change of Git")]
        }
        FixGoal::ArgoCd | FixGoal::Plumb if finding.class == DriftClass::SchemaDefault => pin(subject),
        FixGoal::ArgoCd | FixGoal::Plumb => vec![action(subject, goal)],
    };
    let proposal = |action| Proposal { key: finding.key.clone(), class: finding.class, action };
    actions.into_iter().map(proposal).collect()
}

/// Does plumb itself ask for a change? It counts the finding, or its own advice is to edit Git.
fn is_asked_by_plumb(finding: &Finding) -> bool {
    finding.counts || finding.fix.kind == FixKind::EditGit
}

fn action(subject: &Subject<'_>, goal: FixGoal) -> Action {
    let finding = subject.finding;
    match finding.class {
        DriftClass::PhantomDefault => edit_or_ignore(subject, "Git sets what the object would have anyway"),
        DriftClass::RejectedField => {
            let why = "the API server does not keep this field";
            // Ignoring a typo would hide that the field has no effect.
            if finding.counts {
                edit(subject, why).unwrap_or_else(|| through(subject, why, instruct(finding)))
            } else {
                edit_or_ignore(subject, why)
            }
        }
        DriftClass::EquivalentValue => {
            edit_or_ignore(subject, "the cluster writes the same value differently")
        }
        DriftClass::ControllerOwned => {
            let why = owned_by(finding);
            edit(subject, &why).unwrap_or_else(|| through(subject, &why, ignore_addition(subject, &why)))
        }
        DriftClass::UnstableRender => match goal {
            FixGoal::ArgoCd => {
                ignore(subject, &finding.fields, "each render of the same commit has another value here")
            }
            FixGoal::Plumb => instruct(finding),
        },
        DriftClass::AdmissionMutated => {
            let by = finding.actor.as_deref().unwrap_or("an admission webhook or policy");
            ignore(subject, &finding.fields, &format!("{by} sets this on every write"))
        }
        DriftClass::UnclaimedAddition if !finding.counts => {
            let by = finding.actor.as_deref().unwrap_or("another writer");
            ignore_addition(subject, &format!("{by} added this, and Git does not set it"))
        }
        DriftClass::HookResidue => come_and_stay(subject, goal).unwrap_or_else(|| delete_hook(subject)),
        DriftClass::Behind => {
            come_and_stay(subject, goal).unwrap_or_else(|| match time_to_live(subject, goal) {
                Some(_) => missing_job(finding),
                None => instruct(finding),
            })
        }
        DriftClass::LiveEdit | DriftClass::UnclaimedAddition | DriftClass::Unexplained
            if subject.keeps_live =>
        {
            let by = finding.actor.as_deref().unwrap_or("another writer");
            let why = format!("keeps what {by} changed in the cluster");
            edit(subject, &why).unwrap_or_else(|| through(subject, &why, instruct(finding)))
        }
        DriftClass::SharedResource => drop_document(subject),
        DriftClass::LiveEdit
        | DriftClass::UnclaimedAddition
        | DriftClass::Unexplained
        | DriftClass::Unadopted
        | DriftClass::Orphan
        | DriftClass::StaleOwnership
        | DriftClass::Blocked
        | DriftClass::TugOfWar
        | DriftClass::SchemaDefault => instruct(finding),
    }
}

fn owned_by(finding: &Finding) -> String {
    match &finding.actor {
        Some(actor) => format!("{actor} owns this field"),
        None => "a controller owns this field".to_owned(),
    }
}

/// Sets the defaults in Git that Argo CD shows; those that cannot be set are ignored.
fn pin(subject: &Subject<'_>) -> Vec<Action> {
    const WHY: &str = "the API server fills in these defaults; set here, a later change of them shows";
    const LEFT: &str = "the API server fills in this value";
    let finding = subject.finding;
    let shown = match subject.desired {
        Some(desired) => {
            finding.fields.iter().filter(|field| is_seen_default(desired, field)).cloned().collect()
        }
        None => finding.fields.clone(),
    };
    let is_the_cause = subject.is_red_in_argo_cd == Some(true) && subject.is_alone;
    if shown.is_empty() && !subject.is_asked_for && !is_the_cause {
        return vec![Action::Nothing("Argo CD does not compare defaults outside of lists")];
    }
    // A custom resource has few defaults, and they say more together. A Deployment has dozens.
    let is_narrow = is_built_in_group(&finding.key.group) && !subject.is_asked_for && !shown.is_empty();
    let fields = if is_narrow { shown } else { finding.fields.clone() };
    let live = subject.live.filter(|live| !is_secret(live));
    let (Some(origin), Some(desired), Some(live)) = (subject.origin, subject.desired, live) else {
        return vec![ignore(subject, &fields, LEFT)];
    };
    let (operations, left) = pins(&fields, desired, live);
    let mut actions = Vec::new();
    if !origin.verbatim && !operations.is_empty() {
        let set = change(subject, origin, operations, WHY);
        actions.push(Action::Through(set, Box::new(ignore(subject, &fields, LEFT))));
    } else if !operations.is_empty() {
        actions.push(Action::Edit(change(subject, origin, operations, WHY)));
    }
    if !left.is_empty() {
        actions.push(ignore(subject, &left, LEFT));
    }
    actions
}

/// The finding's own patch, if the object's document in Git is known; else a rule for exactly its fields.
fn edit_or_ignore(subject: &Subject<'_>, why: &str) -> Action {
    edit(subject, why).unwrap_or_else(|| through(subject, why, ignore(subject, &subject.finding.fields, why)))
}

/// The finding's own patch, for an object that a tool renders; the other action if there is no patch.
fn through(subject: &Subject<'_>, why: &str, otherwise: Action) -> Action {
    let origin = subject.origin.filter(|origin| !origin.verbatim);
    let patch = subject.finding.fix.patch.as_deref();
    match (origin, patch.and_then(json_patch::operations)) {
        (Some(origin), Some(operations)) => {
            Action::Through(change(subject, origin, operations, why), Box::new(otherwise))
        }
        _ => otherwise,
    }
}

/// The app that does not keep a shared object gives it up. Without a choice, its owner keeps it.
fn drop_document(subject: &Subject<'_>) -> Action {
    let finding = subject.finding;
    let keeper = match (subject.keeper, &finding.actor) {
        (Some(Keeper::Other(keeper)), _) => Some(keeper),
        (None, Some(owner)) if finding.counts => Some(owner.as_str()),
        (None, None) if finding.counts => return instruct(finding),
        (Some(Keeper::ThisApp) | None, _) => None,
    };
    let Some(keeper) = keeper else {
        return Action::Nothing("this app keeps it; another one has to give it up");
    };
    match subject.origin.filter(|origin| origin.verbatim) {
        Some(origin) => {
            let why = format!("app {keeper} keeps it: one object belongs to one app");
            Action::Drop(change(subject, origin, Vec::new(), &why))
        }
        None => instruct(finding),
    }
}

fn edit(subject: &Subject<'_>, why: &str) -> Option<Action> {
    let origin = subject.origin.filter(|origin| origin.verbatim)?;
    let operations = json_patch::operations(subject.finding.fix.patch.as_deref()?)?;
    Some(Action::Edit(change(subject, origin, operations, why)))
}

fn change(subject: &Subject<'_>, origin: &Origin, operations: Vec<Operation>, why: &str) -> ObjectChange {
    ObjectChange { key: subject.finding.key.clone(), origin: origin.clone(), operations, why: why.to_owned() }
}

fn ignore(subject: &Subject<'_>, fields: &[FieldPath], why: &str) -> Action {
    let finding = subject.finding;
    // The name is what the rule itself needs, and a rule for the whole object would hide everything.
    let is_too_wide = |field: &FieldPath| {
        let pointer = field.to_string();
        field.segments().len() < 2 && pointer != "/data" && pointer != "/rules" || pointer == "/metadata/name"
    };
    if fields.is_empty() || fields.iter().any(is_too_wide) {
        return instruct(finding);
    }
    let mut pointers = fields.to_vec();
    pointers.sort_by(last_items_first);
    pointers.dedup();
    Action::Ignore(IgnoreEntry { key: finding.key.clone(), pointers, why: why.to_owned() })
}

/// A rule for what another writer added, if Argo CD sees it.
fn ignore_addition(subject: &Subject<'_>, why: &str) -> Action {
    let is_compared = |field: &&FieldPath| subject.desired.is_none_or(|desired| is_compared(desired, field));
    let compared = subject.finding.fields.iter().filter(is_compared);
    let fields: Vec<FieldPath> = compared.map(|field| whole_list(subject, field)).collect();
    if fields.is_empty() && !subject.finding.fields.is_empty() {
        return Action::Nothing("Git does not set the field, and Argo CD compares only what Git sets");
    }
    ignore(subject, &fields, why)
}

/// Of a list that Git leaves empty, the list itself: without its items Argo CD would still see an empty list beside none.
fn whole_list(subject: &Subject<'_>, field: &FieldPath) -> FieldPath {
    let list = field.parent().filter(|list| {
        let in_git = subject.desired.and_then(|desired| list.find(desired.value()));
        in_git.and_then(Value::as_array).is_some_and(Vec::is_empty)
    });
    list.unwrap_or_else(|| field.clone())
}

/// Argo CD removes the fields of a rule one after the other: of a list, the last item has to go first.
fn last_items_first(one: &FieldPath, other: &FieldPath) -> Ordering {
    let mut segments = one.segments().iter().zip(other.segments());
    let first = segments.find_map(|(one, other)| {
        let order = match (number(one), number(other)) {
            (Some(one), Some(other)) => other.cmp(&one),
            _ => one.cmp(other),
        };
        (order != Ordering::Equal).then_some(order)
    });
    first.unwrap_or_else(|| one.segments().len().cmp(&other.segments().len()))
}

/// The position of an item. Reports have it as a text.
fn number(segment: &Segment) -> Option<usize> {
    match segment {
        Segment::Index(index) => Some(*index),
        Segment::Field(name) => name.parse().ok(),
    }
}

/// What makes an object come back and stay, if Git can say it.
fn come_and_stay(subject: &Subject<'_>, goal: FixGoal) -> Option<Action> {
    let found = Change::keep_job(subject, goal).or_else(|| Change::drop_nulls(subject, goal))?;
    Some(match subject.origin {
        Some(origin) if origin.verbatim => Action::Edit(change(subject, origin, found.operations, found.why)),
        Some(origin) => Action::Through(
            change(subject, origin, found.operations, found.why),
            Box::new(instruct(subject.finding)),
        ),
        None => instruct(subject.finding),
    })
}

/// Nothing tells whether the Job ran.
fn missing_job(finding: &Finding) -> Action {
    Action::Instruct(format!(
        "{}; if it ran and its ttlSecondsAfterFinished removed it, Argo CD always wants it back: remove that line, or \
         make the Job a hook",
        finding.fix.text
    ))
}

fn delete_hook(subject: &Subject<'_>) -> Action {
    let Some(hook) = subject.desired else { return Action::Nothing("Git no longer has the hook") };
    let Some(operation) = delete_after_success(hook) else {
        return Action::Nothing("it goes by itself: after its run, or when its time to live has passed");
    };
    let why = "a hook that has succeeded is deleted, and is not shown as left over";
    match subject.origin.filter(|origin| origin.verbatim) {
        Some(origin) => Action::Edit(change(subject, origin, vec![operation], why)),
        None => Action::Instruct(format!("in the template of {}: {operation}", subject.finding.key)),
    }
}

fn instruct(finding: &Finding) -> Action {
    Action::Instruct(finding.fix.text.clone())
}
