//! Which change ends a finding: one decision per class.

use serde_json::Value;

use super::hook_policy::delete_after_success;
use super::pins::pins;
use super::{Action, FixGoal, IgnoreEntry, ObjectChange, Proposal, json_patch};
use crate::desired::Origin;
use crate::drift::{DriftClass, Finding, FixKind};
use crate::normalize::is_secret;
use crate::object::{FieldPath, Manifest};
use crate::yaml::Operation;

/// A finding with what is known about its object.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'facts> {
    /// The finding.
    pub finding: &'facts Finding,
    /// The object in Git; for a hook, the hook.
    pub desired: Option<&'facts Manifest>,
    /// Where Git has it.
    pub origin: Option<&'facts Origin>,
    /// The object in the cluster.
    pub live: Option<&'facts Manifest>,
    /// Does Argo CD show the object as `OutOfSync`? `None` if it is not known.
    pub is_red_in_argo_cd: Option<bool>,
    /// The user wants Git to take over what was edited in the cluster.
    pub keeps_live: bool,
}

/// What would end this finding for this goal: one step, or a change and a rule for what the change cannot cover.
pub fn propose(subject: &Subject<'_>, goal: FixGoal) -> Vec<Proposal> {
    let finding = subject.finding;
    let actions = match goal {
        FixGoal::ArgoCd if !finding.counts && subject.is_red_in_argo_cd == Some(false) => {
            vec![Action::Nothing("Argo CD shows the object as Synced")]
        }
        // A kept edit is the user's wish, not plumb's.
        FixGoal::Plumb if !is_asked_by_plumb(finding) && !subject.keeps_live => {
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
        DriftClass::HookResidue => delete_hook(subject),
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
        | DriftClass::Behind
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

/// Sets the defaults in Git; those that cannot be set are ignored.
fn pin(subject: &Subject<'_>) -> Vec<Action> {
    const WHY: &str = "the API server fills in these defaults; set here, a later change of them shows";
    const LEFT: &str = "the API server fills in this value";
    let finding = subject.finding;
    let live = subject.live.filter(|live| !is_secret(live));
    let (Some(origin), Some(desired), Some(live)) = (subject.origin, subject.desired, live) else {
        return vec![ignore(subject, &finding.fields, LEFT)];
    };
    let (operations, left) = pins(finding, desired, live);
    let mut actions = Vec::new();
    if !origin.verbatim && !operations.is_empty() {
        let set = change(subject, origin, operations, WHY);
        actions.push(Action::Through(set, Box::new(ignore(subject, &finding.fields, LEFT))));
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

/// The app that does not own a shared object gives it up.
fn drop_document(subject: &Subject<'_>) -> Action {
    let finding = subject.finding;
    let origin = subject.origin.filter(|origin| origin.verbatim && finding.counts);
    match (origin, &finding.actor) {
        (Some(origin), Some(owner)) => {
            let why = format!("app {owner} keeps it: one object belongs to one app");
            Action::Drop(change(subject, origin, Vec::new(), &why))
        }
        _ if finding.counts => instruct(finding),
        _ => Action::Nothing("this app keeps it; another one has to give it up"),
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
    pointers.sort();
    pointers.dedup();
    Action::Ignore(IgnoreEntry { key: finding.key.clone(), pointers, why: why.to_owned() })
}

/// A rule for what another writer added, if Argo CD sees it.
fn ignore_addition(subject: &Subject<'_>, why: &str) -> Action {
    let is_compared =
        |field: &&FieldPath| subject.desired.is_none_or(|desired| is_compared(desired.value(), field));
    let fields: Vec<FieldPath> = subject.finding.fields.iter().filter(is_compared).cloned().collect();
    if fields.is_empty() && !subject.finding.fields.is_empty() {
        return Action::Nothing("Git does not set the field, and Argo CD compares only what Git sets");
    }
    ignore(subject, &fields, why)
}

/// Does Argo CD compare a field of the live object? It does if Git sets it, or sets a list around it: lists of custom
/// resources are compared as a whole.
fn is_compared(desired: &Value, field: &FieldPath) -> bool {
    let mut place = FieldPath::root();
    for segment in field.segments() {
        place.push(segment.clone());
        match place.find(desired) {
            Some(Value::Array(_)) => return true,
            Some(_) => {}
            None => return false,
        }
    }
    true
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
