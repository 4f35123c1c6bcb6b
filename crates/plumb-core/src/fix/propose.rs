//! Which change ends a finding: one decision per class.

use std::cmp::Ordering;

use serde_json::Value;

use super::git_path::git_path;
use super::hook_policy::delete_after_success;
use super::long_edit::long_edit;
use super::missing::{Change, time_to_live};
use super::named_items::by_names;
use super::only_here::only_here;
use super::pins::pins;
use super::seen::{is_compared, is_seen_default};
use super::{
    Action, DryRunComparison, FixGoal, IgnoreEntry, Keeper, ObjectChange, Proposal, Subject, json_patch,
};
use crate::app::CompareOptions;
use crate::desired::Origin;
use crate::drift::{DriftClass, Finding, FixKind};
use crate::normalize::is_secret;
use crate::object::{FieldPath, Segment};
use crate::references::is_built_in_group;
use crate::yaml::Operation;

/// What would end this finding for this goal: one step, or a change and a rule for what the change cannot cover.
pub fn propose(subject: &Subject<'_>, goal: FixGoal) -> Vec<Proposal> {
    let finding = subject.finding;
    // A kept edit or a chosen owner is the user's wish, not plumb's.
    let is_edit = matches!(
        finding.class,
        DriftClass::LiveEdit | DriftClass::UnclaimedAddition | DriftClass::Unexplained
    );
    let is_wish = (subject.keeps_live && is_edit) || subject.keeper.is_some();
    let is_green = !finding.counts && subject.is_red_in_argo_cd == Some(false);
    let actions = match goal {
        FixGoal::ArgoCd if is_green && !is_wish && !subject.is_asked_for => {
            vec![Action::Nothing("Argo CD shows the object as Synced")]
        }
        FixGoal::Plumb if !is_asked_by_plumb(finding) && !is_wish => {
            vec![Action::Nothing("plumb does not count the difference, and asks for no change of Git")]
        }
        FixGoal::ArgoCd | FixGoal::Plumb => match finding.class {
            DriftClass::SchemaDefault => pin(subject),
            DriftClass::ControllerOwned => leave_to_controller(subject),
            DriftClass::AdmissionMutated => leave_to_admission(subject, goal),
            _ => vec![action(subject, goal)],
        },
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
        DriftClass::UnstableRender => match goal {
            FixGoal::ArgoCd => {
                ignore(subject, &finding.fields, "each render of the same commit has another value here")
            }
            FixGoal::Plumb => instruct(finding),
        },
        DriftClass::LiveEdit | DriftClass::UnclaimedAddition | DriftClass::Unexplained
            if subject.keeps_live =>
        {
            let by = finding.actor.as_deref().unwrap_or("another writer");
            let why = format!("keeps what {by} changed in the cluster");
            edit(subject, &why).unwrap_or_else(|| through(subject, &why, instruct(finding)))
        }
        DriftClass::UnclaimedAddition if !finding.counts => {
            let by = finding.actor.as_deref().unwrap_or("another writer");
            let why = format!("{by} added this, and Git does not set it");
            ignore_addition(subject, &finding.fields, &why)
        }
        DriftClass::HookResidue => come_and_stay(subject, goal).unwrap_or_else(|| delete_hook(subject)),
        DriftClass::Behind => {
            come_and_stay(subject, goal).unwrap_or_else(|| match time_to_live(subject, goal) {
                Some(_) => missing_job(finding),
                None => instruct(finding),
            })
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
        | DriftClass::SchemaDefault
        | DriftClass::ControllerOwned
        | DriftClass::AdmissionMutated => instruct(finding),
    }
}

fn owned_by(finding: &Finding) -> String {
    match &finding.actor {
        Some(actor) => format!("{actor} owns this field"),
        None => "a controller owns this field".to_owned(),
    }
}

/// Why a field goes from Git, for the commit; and what a reviewer has to know before.
fn left_to_controller(finding: &Finding) -> String {
    let owner = owned_by(finding);
    let operations = finding.fix.patch.as_deref().and_then(json_patch::operations).unwrap_or_default();
    if operations.iter().any(|operation| matches!(operation, Operation::Remove { .. })) {
        return format!(
            "{owner}; where syncs use client-side apply, the first one without it sets the default once (of replicas: 1)"
        );
    }
    owner
}

/// What Git sets leaves it; what a controller adds to a list of Git is ignored.
fn leave_to_controller(subject: &Subject<'_>) -> Vec<Action> {
    let finding = subject.finding;
    let (mut in_git, mut added): (Vec<FieldPath>, Vec<FieldPath>) =
        finding.fields.iter().cloned().partition(|field| is_in_git(subject, field));
    // Its patch says that Git sets something, also where list items have no names to find it by.
    if in_git.is_empty() && finding.fix.patch.is_some() {
        std::mem::swap(&mut in_git, &mut added);
    }
    let mut actions = Vec::new();
    if !in_git.is_empty() {
        let why = left_to_controller(finding);
        let otherwise = || ignore(subject, &in_git, &owned_by(finding));
        actions.push(edit(subject, &why).unwrap_or_else(|| through(subject, &why, otherwise())));
    }
    if !added.is_empty() || in_git.is_empty() {
        actions.push(ignore_addition(subject, &added, &owned_by(finding)));
    }
    actions
}

/// What admission adds is ignored. A rule for what runs and who may do what would hide every later change of it in Git: of
/// these, Argo CD compares what a dry run makes of Git.
fn leave_to_admission(subject: &Subject<'_>, goal: FixGoal) -> Vec<Action> {
    let finding = subject.finding;
    let by = finding.actor.as_deref().unwrap_or("an admission webhook or policy");
    let (hiding, harmless): (Vec<FieldPath>, Vec<FieldPath>) =
        finding.fields.iter().cloned().partition(|field| says_what_runs(field) && is_in_git(subject, field));
    let mut actions = Vec::new();
    if !harmless.is_empty() || hiding.is_empty() {
        actions.push(ignore(subject, &harmless, &format!("{by} sets this on every write")));
    }
    if !hiding.is_empty() {
        let fields: Vec<String> = hiding.iter().map(ToString::to_string).collect();
        let fields = fields.join(", ");
        let instruction = format!(
            "do not ignore {fields}: Argo CD would not see a later change of it in Git. Set in Git what {by} sets, if a \
             second write of that stays as it is; or annotate the Application with `{}: {}`",
            CompareOptions::ANNOTATION,
            DryRunComparison::words(),
        );
        actions.push(match goal {
            FixGoal::ArgoCd => Action::Compare(DryRunComparison {
                why: format!(
                    "{by} sets {fields} on every write; a rule would hide later changes of Git, so all objects of the app \
                     are compared with a dry run, which includes what admission sets"
                ),
                instruction,
            }),
            FixGoal::Plumb => Action::Instruct(instruction),
        });
    }
    actions
}

/// Does the field say what runs, or who may do what?
fn says_what_runs(field: &FieldPath) -> bool {
    const NAMES: [&str; 6] = ["image", "command", "args", "env", "envFrom", "rules"];
    let is_name = |segment: &Segment| match segment {
        Segment::Field(name) => NAMES.iter().any(|other| name == other),
        Segment::Index(_) => false,
    };
    field.segments().iter().any(is_name)
}

/// Does Git set this field of the live object? Without the objects, a patch of Git's document tells.
fn is_in_git(subject: &Subject<'_>, field: &FieldPath) -> bool {
    match (subject.desired, subject.live) {
        (Some(desired), Some(live)) => {
            let place = git_path(desired.value(), live.value(), field);
            place.is_some_and(|place| place.find(desired.value()).is_some())
        }
        (Some(desired), None) => field.find(desired.value()).is_some(),
        (None, _) => subject.finding.fix.patch.is_some(),
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
    match (origin, operations(subject)) {
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
            let lost = subject.desired.zip(subject.kept).and_then(|(copy, kept)| only_here(copy, kept));
            let lost = lost.map(|lost| format!("; {lost}")).unwrap_or_default();
            let why = format!("app {keeper} keeps it: one object belongs to one app{lost}");
            Action::Drop(change(subject, origin, Vec::new(), &why))
        }
        None => instruct(finding),
    }
}

fn edit(subject: &Subject<'_>, why: &str) -> Option<Action> {
    let origin = subject.origin.filter(|origin| origin.verbatim)?;
    Some(Action::Edit(change(subject, origin, operations(subject)?, why)))
}

/// The change of Git that ends the finding, if one is known.
fn operations(subject: &Subject<'_>) -> Option<Vec<Operation>> {
    match &subject.finding.fix.patch {
        Some(patch) => json_patch::operations(patch),
        None => long_edit(subject),
    }
}

fn change(subject: &Subject<'_>, origin: &Origin, operations: Vec<Operation>, why: &str) -> ObjectChange {
    ObjectChange { key: subject.finding.key.clone(), origin: origin.clone(), operations, why: why.to_owned() }
}

/// A rule for one of these hides the whole object, or names it.
const WHOLE_OBJECT: [&str; 8] =
    ["", "/apiVersion", "/kind", "/metadata", "/metadata/name", "/metadata/namespace", "/spec", "/status"];

fn ignore(subject: &Subject<'_>, fields: &[FieldPath], why: &str) -> Action {
    let finding = subject.finding;
    // Name and namespace are what the rule itself needs, and a rule for the whole object would hide everything.
    let is_too_wide = |field: &FieldPath| WHOLE_OBJECT.contains(&field.to_string().as_str());
    if fields.is_empty() || fields.iter().any(is_too_wide) {
        return instruct(finding);
    }
    let sides = subject.desired.zip(subject.live);
    // Renders are compared with each other, so their fields are those of Git's object.
    let sides = sides.map(|(desired, live)| match finding.class {
        DriftClass::UnstableRender => (desired, live),
        _ => (live, desired),
    });
    let (mut pointers, mut expressions) = (Vec::new(), Vec::new());
    for field in fields {
        match sides.and_then(|(own, other)| by_names(field, own, other)) {
            Some(expression) => expressions.push(expression),
            None => pointers.push(field.clone()),
        }
    }
    pointers.sort_by(last_items_first);
    pointers.dedup();
    Action::Ignore(IgnoreEntry { key: finding.key.clone(), pointers, expressions, why: why.to_owned() })
}

/// A rule for what another writer added, if Argo CD sees it.
fn ignore_addition(subject: &Subject<'_>, fields: &[FieldPath], why: &str) -> Action {
    let is_compared = |field: &&FieldPath| subject.desired.is_none_or(|desired| is_compared(desired, field));
    let compared = fields.iter().filter(is_compared);
    let shown: Vec<FieldPath> = compared.map(|field| whole_list(subject, field)).collect();
    if shown.is_empty() && !fields.is_empty() {
        return Action::Nothing("Git does not set the field, and Argo CD compares only what Git sets");
    }
    ignore(subject, &shown, why)
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
