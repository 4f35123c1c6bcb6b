//! What is wrong with one app, as far as the Application and its report tell.

use jiff::Timestamp;
use plumb_core::app::Pause;
use plumb_core::drift::DriftClass;
use plumb_core::object::ObjectKey;
use plumb_crd::application::{OperationState, ResourceStatus};
use plumb_crd::drift_report::DriftPause;
use plumb_crd::{Application, DriftFinding, DriftReport, UnhealthyObject};
use serde_json::{Value, json};

use crate::object_ref::object_ref;

/// Most troubles of one sort that a row keeps; the others are only counted.
const MOST: usize = 6;
/// Longest text of a trouble.
const LONGEST: usize = 400;

/// What sort of trouble it is, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Sort {
    /// An object is not well.
    Ill,
    /// A sync failed or hangs.
    Operation,
    /// plumb cannot compare the app.
    Condition,
    /// A difference that counts.
    Drift,
    /// A deletion waits for a user's word.
    Deletion,
}

impl Sort {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ill => "ill",
            Self::Operation => "operation",
            Self::Condition => "condition",
            Self::Drift => "drift",
            Self::Deletion => "deletion",
        }
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Trouble {
    pub(crate) sort: Sort,
    /// Class of a difference, or health of an object; groups troubles of one cause.
    pub(crate) class: String,
    pub(crate) gravity: u8,
    pub(crate) object: Option<ObjectKey>,
    pub(crate) text: String,
    pub(crate) fields: Vec<String>,
    pub(crate) actor: String,
    pub(crate) since: Option<Timestamp>,
    pub(crate) fix: String,
    pub(crate) stuck: bool,
}

impl Trouble {
    fn new(sort: Sort, class: &str, text: &str, since: Option<Timestamp>) -> Self {
        Self {
            sort,
            class: class.to_owned(),
            gravity: 0,
            object: None,
            text: short(text),
            fields: Vec::new(),
            actor: String::new(),
            since,
            fix: String::new(),
            stuck: false,
        }
    }

    pub(crate) fn to_json(&self) -> Value {
        json!({
            "sort": self.sort.name(), "class": self.class, "object": self.object.as_ref().map(object_ref),
            "text": self.text, "fields": self.fields, "actor": self.actor, "since": time(self.since),
            "fix": self.fix, "stuck": self.stuck,
        })
    }
}

/// A time as the page reads it: seconds since 1970, or null.
pub(crate) fn time(at: Option<Timestamp>) -> Value {
    at.map_or(Value::Null, |at| json!(at.as_second()))
}

/// A text of bounded length on one line.
pub(crate) fn short(text: &str) -> String {
    let line: String = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    let line = line.trim();
    if line.chars().count() <= LONGEST {
        return line.to_owned();
    }
    line.chars().take(LONGEST - 1).chain(['…']).collect()
}

/// A reason for which a container does not run. It does not end by waiting, so it is shown before the object counts as
/// stuck.
fn container_trouble(object: &UnhealthyObject) -> Option<&'static str> {
    let said =
        |word: &str| object.message.contains(word) || object.causes.iter().any(|cause| cause.contains(word));
    if said("CrashLoopBackOff") {
        return Some("Crashing");
    }
    (said("ImagePullBackOff") || said("ErrImagePull")).then_some("ImagePull")
}

/// The class of an object that is not well; `None` if it is only on its way.
pub(crate) fn class_of(object: &UnhealthyObject) -> Option<&str> {
    let is_wrong = object.stuck || matches!(object.status.as_str(), "Degraded" | "Missing");
    match container_trouble(object) {
        Some(class) => Some(class),
        None if !is_wrong => None,
        None if object.stuck && object.status == "Progressing" => Some("Stuck"),
        None => Some(object.status.as_str()),
    }
}

fn of_health(object: &UnhealthyObject) -> Option<Trouble> {
    let class = class_of(object)?;
    let cause = object.causes.last().filter(|_| object.causes.len() > 1);
    Some(Trouble {
        object: Some(object.key()),
        stuck: object.stuck,
        gravity: if object.stuck { 2 } else { 1 },
        fix: cause.map(|cause| short(cause)).unwrap_or_default(),
        ..Trouble::new(Sort::Ill, class, &object.message, object.since)
    })
}

fn of_finding(finding: &DriftFinding) -> Trouble {
    let class = DriftClass::ALL.into_iter().find(|class| class.name() == finding.class);
    Trouble {
        object: Some(finding.key()),
        gravity: class.map_or(0, DriftClass::severity),
        fields: finding.fields.iter().take(MOST).cloned().collect(),
        actor: short(&finding.actor),
        fix: finding.fix.as_ref().map(|fix| short(&fix.text)).unwrap_or_default(),
        ..Trouble::new(
            Sort::Drift,
            &finding.class,
            finding.evidence.first().map_or("", String::as_str),
            finding.since,
        )
    }
}

fn of_operation(state: &OperationState) -> Option<Trouble> {
    let trouble = |class, since| Some(Trouble::new(Sort::Operation, class, &state.message, since));
    match state.phase.as_str() {
        "Failed" | "Error" => trouble("SyncFailed", state.finished_at),
        "Terminating" => trouble("Terminating", Some(state.started_at)),
        // How long is too long depends on the clock, so the home screen decides.
        "Running" => trouble("Running", Some(state.started_at)),
        _ => None,
    }
}

/// True if the deletion of an object waits for a user's word. An object that Git has may ask for it, too; it does not wait.
pub(crate) fn waits(resource: &ResourceStatus) -> bool {
    resource.requires_deletion_confirmation && resource.requires_pruning && !resource.hook
}

/// How the message of an operation begins that waits for a user's word, as in Argo CD.
const WAITING: &str = "waiting for pruning confirmation of";

/// True if the running sync waits until a user confirms its deletions. Then the objects need no mark of their own: most of an
/// app, or one that holds data, is deleted only after a word.
pub(crate) fn sync_waits(app: &Application) -> bool {
    let state = app.status.operation_state.as_deref();
    state.is_some_and(|state| state.phase == "Running" && state.message.contains(WAITING))
}

/// The deletions that wait, where plumb deletes what leaves Git.
fn of_waiting(app: &Application) -> Option<Trouble> {
    if sync_waits(app) {
        let state = app.status.operation_state.as_deref()?;
        return Some(Trouble::new(Sort::Deletion, "Unconfirmed", &state.message, Some(state.started_at)));
    }
    let automated = app.spec.sync_policy.as_ref().and_then(|policy| policy.automated.as_ref());
    let prunes = automated.is_some_and(|policy| policy.enabled != Some(false) && policy.prune == Some(true));
    let runs = app.status.operation_state.as_deref().is_some_and(|state| state.phase == "Running");
    if !prunes && !runs {
        return None;
    }
    let mut waiting = app.status.resources.iter().filter(|resource| waits(resource));
    let first = waiting.next()?.key();
    let text = match waiting.count() {
        0 => "its deletion waits for a user's confirmation".to_owned(),
        others => format!("its deletion and {others} more wait for a user's confirmation"),
    };
    Some(Trouble { object: Some(first), ..Trouble::new(Sort::Deletion, "Unconfirmed", &text, None) })
}

/// Everything that is wrong with an app, the worst first.
pub(crate) fn troubles(app: &Application, report: Option<&DriftReport>) -> Vec<Trouble> {
    let mut found: Vec<Trouble> = Vec::new();
    if let Some(report) = report {
        found.extend(report.health.iter().filter_map(of_health).take(MOST));
    }
    let health = app.status.health.status.as_str();
    if found.is_empty() && matches!(health, "Degraded" | "Missing") {
        let at = app.status.health.last_transition_time;
        found.push(Trouble { gravity: 1, ..Trouble::new(Sort::Ill, health, &app.status.health.message, at) });
    }
    found.extend(app.status.operation_state.as_deref().and_then(of_operation));
    let errors = app.status.conditions.iter().filter(|condition| condition.condition_type.ends_with("Error"));
    let errors = errors.map(|condition| {
        let at = condition.last_transition_time;
        Trouble::new(Sort::Condition, &condition.condition_type, &condition.message, at)
    });
    found.extend(errors.take(MOST));
    let counting = report.into_iter().flat_map(|report| &report.findings).filter(|finding| finding.counts);
    found.extend(counting.map(of_finding).take(MOST));
    let drifts = found.iter().any(|trouble| trouble.sort == Sort::Drift);
    if !drifts && app.status.sync.status == "OutOfSync" {
        found.push(Trouble::new(
            Sort::Drift,
            "OutOfSync",
            "it differs from Git; no report says how yet",
            None,
        ));
    }
    found.extend(of_waiting(app));
    let deleting = app.metadata.deletion_timestamp;
    if deleting.is_some() {
        found.push(Trouble::new(Sort::Deletion, "Deleting", "the Application is being deleted", deleting));
    }
    found.sort_by_key(|trouble| (trouble.sort, u8::MAX - trouble.gravity));
    found
}

/// The pause of the app itself, if there is one.
pub(crate) fn pause_of(app: &Application) -> Option<Pause> {
    let text = app.metadata.annotations.get(Pause::ANNOTATION)?;
    Some(Pause::parse(text).written_at(app.paused_at))
}

/// A pause as the page reads it.
pub(crate) fn pause_json(pause: &DriftPause) -> Value {
    json!({
        "object": object_ref(&pause.key()), "reason": short(&pause.reason), "by": short(&pause.by),
        "until": time(pause.until),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_that_does_not_start_is_trouble_before_it_is_stuck() {
        let check = |status: &str, stuck: bool, message: &str, expected: Option<&str>| {
            let object = UnhealthyObject {
                kind: "Deployment".to_owned(),
                name: "web".to_owned(),
                status: status.to_owned(),
                stuck,
                message: message.to_owned(),
                ..UnhealthyObject::default()
            };
            assert_eq!(
                of_health(&object).map(|trouble| trouble.class).as_deref(),
                expected,
                "{status} {message}"
            );
        };
        check("Progressing", false, "0 of 1 replicas are available", None);
        check("Progressing", true, "0 of 1 replicas are available", Some("Stuck"));
        check("Progressing", false, "container main keeps crashing (CrashLoopBackOff)", Some("Crashing"));
        check("Progressing", false, "pod web-1: ImagePullBackOff", Some("ImagePull"));
        check("Degraded", false, "the deadline is exceeded", Some("Degraded"));
        check("Suspended", false, "", None);
    }
}
