//! A reading for any kind that nobody taught us: conditions, observed generation, words for phases and states,
//! flags, error texts, replicas.
//!
//! Every hint that the object gives is noted; the worst one decides (paused, failing, under way, well). An object
//! without any hint has no health. What is a hint and what it says is in the tables here and in `words`; there is
//! no special case for any kind.

mod words;

use serde_json::Value;

use super::read::{find, find_text};
use super::{Health, HealthStatus};
use words::{Sense, sense_of_name, sense_of_sentence, split};

/// Fields that hold one word for the whole state.
const STATE_FIELDS: &[&str] = &[
    "phase",
    "state",
    "status",
    "health",
    "currentState",
    "currentStatus",
    "overallStatus",
    "printableStatus",
    "updateStatus",
    "stageStatus",
    "lastOperationStatus",
    "certificateStatus",
    "compliant",
    "ready",
    "healthy",
    "available",
    "readyToUse",
    "success",
    "applicationState",
    "ansibleJobResult",
    "lastOperation",
    "jobStatus",
];

/// Inside a state that is a map, the word is here.
const INNER_STATE_FIELDS: &[&str] = &["state", "status", "phase"];

/// Fields that hold a text only where something is wrong.
const ERROR_FIELDS: &[&str] =
    &["error", "errorMessage", "errorDescription", "errMsg", "failureMessage", "failureReason", "lastError"];

/// Switches of the spec that hold an object back on purpose.
const PAUSE_FIELDS: &[&str] = &[
    "spec.paused",
    "spec.pause",
    "spec.suspend",
    "spec.suspended",
    "spec.updateStrategy.paused",
    "spec.updateStrategy.rollingUpdate.paused",
];

/// Types of conditions that sum an object up. Where one of them is there, longer names (`DatabaseReady`) are
/// details and do not count.
const SUMMARY: &[&str] = &[
    "accepted",
    "available",
    "complete",
    "completed",
    "compliant",
    "deployed",
    "established",
    "healthy",
    "installed",
    "programmed",
    "promoted",
    "ready",
    "reconciled",
    "resolvedrefs",
    "succeeded",
    "success",
    "successful",
    "synced",
    "valid",
];

/// What the object says about itself; `None` where it gives no hint.
pub(super) fn read(object: &Value) -> Option<Health> {
    if let Some(field) = PAUSE_FIELDS.iter().find(|field| find(object, field) == Some(&Value::Bool(true))) {
        return Some(Health::suspended(format!("`{field}` is set")));
    }
    let status = object.get("status").filter(|status| !is_empty(status))?;
    if !is_observed(object) {
        return Some(Health::progressing("the controller has not seen the newest spec yet"));
    }
    let mut hints = Hints::default();
    note_conditions(object, status, &mut hints);
    note_states(status, &mut hints);
    note_errors(status, &mut hints);
    note_replicas(object, status, &mut hints);
    hints.worst
}

/// Has the object anything to say about itself at all?
pub(super) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => false,
    }
}

/// Has the controller seen the newest spec? Unlike for the built-in kinds, a controller that does not say so is
/// believed.
pub(super) fn is_observed(object: &Value) -> bool {
    let Some(generation) = find(object, "metadata.generation").and_then(whole_number) else { return true };
    match find(object, "status.observedGeneration").and_then(whole_number) {
        Some(observed) => observed >= generation,
        None => true,
    }
}

/// Some controllers write the number as a text.
pub(super) fn whole_number(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => number.as_i64(),
        Value::String(text) => text.parse().ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// The worst hint so far.
#[derive(Default)]
struct Hints {
    worst: Option<Health>,
}

impl Hints {
    fn note(&mut self, sense: Sense, words: &str) {
        self.note_status(sense.status(), words);
    }

    fn note_status(&mut self, status: HealthStatus, words: &str) {
        let rank = |status: HealthStatus| match status {
            HealthStatus::Healthy => 0,
            HealthStatus::Progressing => 1,
            HealthStatus::Degraded | HealthStatus::Missing | HealthStatus::Unknown => 2,
            HealthStatus::Suspended => 3,
        };
        if self.worst.as_ref().is_none_or(|worst| rank(worst.status) < rank(status)) {
            self.worst = Some(Health::new(status, words));
        }
    }
}

/// One condition, read without insisting on its shape.
#[derive(Clone, Copy)]
pub(super) struct Loose<'value> {
    /// Its type.
    pub(super) kind: &'value str,
    /// `True`, `False`, `Unknown`, or something else.
    pub(super) status: &'value str,
    /// Reason.
    pub(super) reason: &'value str,
    /// Message.
    pub(super) message: &'value str,
    /// Which generation it speaks of.
    pub(super) observed: Option<i64>,
    /// The whole of it.
    pub(super) entry: &'value Value,
}

impl<'value> Loose<'value> {
    /// What the condition says, in the best words it has.
    pub(super) fn words(&self) -> &'value str {
        [self.message, self.reason, self.kind].into_iter().find(|text| !text.is_empty()).unwrap_or_default()
    }
}

/// Conditions at `holder.conditions`.
pub(super) fn conditions(holder: &Value) -> impl Iterator<Item = Loose<'_>> {
    let entries = holder.get("conditions").and_then(Value::as_array);
    entries.into_iter().flatten().map(|entry| {
        let text = |field: &str| entry.get(field).and_then(Value::as_str).unwrap_or_default();
        let status = match entry.get("status") {
            Some(Value::Bool(true)) => "True",
            Some(Value::Bool(false)) => "False",
            _ => text("status"),
        };
        Loose {
            kind: text("type"),
            status,
            reason: text("reason"),
            message: text("message"),
            observed: entry.get("observedGeneration").and_then(whole_number),
            entry,
        }
    })
}

/// What it means that a condition of this type is true.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Meaning {
    Good {
        is_summary: bool,
    },
    Bad,
    Moving,
    Paused,
    /// Nothing that we know; only its reason may speak.
    Unnamed,
}

fn meaning_of(kind: &str) -> Meaning {
    let words: Vec<String> = split(kind).collect();
    match words.first().map(String::as_str) {
        Some("not" | "has" | "partially") => return Meaning::Bad,
        Some("no") => return Meaning::Good { is_summary: false },
        _ => {}
    }
    let is_summary = SUMMARY.contains(&words.concat().as_str());
    match sense_of_name(kind) {
        Some(Sense::Failing) => Meaning::Bad,
        Some(Sense::Paused) => Meaning::Paused,
        // `PodsScheduled` is a step that is done, `Scheduling` one under way.
        Some(Sense::Moving) if words.last().is_some_and(|word| word.ends_with("ed")) => {
            Meaning::Good { is_summary: false }
        }
        Some(Sense::Moving) => Meaning::Moving,
        Some(Sense::Well) if matches!(words.as_slice(), [word] if word == "running" || word == "active") => {
            Meaning::Unnamed
        }
        Some(Sense::Well) => Meaning::Good { is_summary },
        None if is_summary => Meaning::Good { is_summary },
        None => Meaning::Unnamed,
    }
}

fn note_conditions(object: &Value, status: &Value, hints: &mut Hints) {
    let generation = find(object, "metadata.generation").and_then(whole_number);
    let mut all: Vec<Loose<'_>> = conditions(status).collect();
    if all.is_empty() {
        // Kinds that report to many parents keep one list of conditions for each.
        let lists = status.as_object().into_iter().flat_map(|map| map.values()).filter_map(Value::as_array);
        all = lists.flatten().flat_map(conditions).collect();
    }
    let meanings: Vec<(Loose<'_>, Meaning)> =
        all.into_iter().map(|condition| (condition, meaning_of(condition.kind))).collect();
    let has_summary =
        meanings.iter().any(|(_, meaning)| matches!(meaning, Meaning::Good { is_summary: true }));
    for (condition, meaning) in meanings {
        if has_summary && matches!(meaning, Meaning::Good { is_summary: false } | Meaning::Unnamed) {
            continue;
        }
        if let (Some(observed), Some(generation), Meaning::Good { .. }) =
            (condition.observed, generation, meaning)
            && observed < generation
        {
            hints.note(Sense::Moving, "the controller has not seen the newest spec yet");
            continue;
        }
        if let Some(sense) = sense_of_condition(&condition, meaning) {
            hints.note(sense, condition.words());
        }
    }
}

fn sense_of_condition(condition: &Loose<'_>, meaning: Meaning) -> Option<Sense> {
    match (meaning, condition.status) {
        // A job that is complete because it failed says so in its reason.
        (Meaning::Good { .. }, "True") => match sense_of_name(condition.reason) {
            Some(Sense::Failing) if condition.kind.starts_with("Complete") => Some(Sense::Failing),
            Some(_) | None => Some(Sense::Well),
        },
        (Meaning::Unnamed, "False") => {
            sense_of_name(condition.reason).filter(|sense| *sense == Sense::Failing)
        }
        (Meaning::Good { .. }, "False") => Some(why_not(condition)),
        (Meaning::Good { .. }, _) => Some(Sense::Moving),
        (Meaning::Bad, "True") => Some(Sense::Failing),
        (Meaning::Paused, "True") => Some(Sense::Paused),
        // A finished rollout keeps `Progressing: True` and says so in its reason.
        (Meaning::Moving, "True") => match sense_of_name(condition.reason) {
            Some(Sense::Well) => Some(Sense::Well),
            Some(Sense::Failing) => Some(Sense::Failing),
            Some(Sense::Paused | Sense::Moving) | None => Some(Sense::Moving),
        },
        (Meaning::Moving, "False") => match sense_of_name(condition.reason) {
            Some(Sense::Failing) => Some(Sense::Failing),
            Some(Sense::Paused) => Some(Sense::Paused),
            Some(Sense::Well | Sense::Moving) | None => None,
        },
        (Meaning::Bad | Meaning::Moving | Meaning::Paused | Meaning::Unnamed, _) => None,
    }
}

/// Why a good condition is false: on purpose, on its way, or something went wrong.
fn why_not(condition: &Loose<'_>) -> Sense {
    let reason = sense_of_name(condition.reason);
    let sentence = sense_of_sentence(condition.message);
    match (reason, sentence) {
        (Some(Sense::Paused), _) => Sense::Paused,
        (Some(Sense::Failing), _) | (_, Some(Sense::Failing)) => Sense::Failing,
        (Some(Sense::Moving), _) | (_, Some(Sense::Moving)) => Sense::Moving,
        // Not ready because something runs: it is not done yet.
        (Some(Sense::Well), None) if split(condition.reason).any(|word| word == "running") => Sense::Moving,
        // A reason without a word for waiting names what is wrong (`SecretMissing`); no reason says nothing.
        (Some(Sense::Well) | None, Some(Sense::Well | Sense::Paused) | None) => {
            if condition.reason.is_empty() && condition.message.is_empty() {
                Sense::Moving
            } else {
                Sense::Failing
            }
        }
    }
}

fn note_states(status: &Value, hints: &mut Hints) {
    let mut n_found = 0_usize;
    for field in STATE_FIELDS {
        let word = match status.get(field) {
            Some(Value::Object(inner)) => INNER_STATE_FIELDS.iter().find_map(|field| inner.get(*field)),
            word => word,
        };
        n_found += usize::from(note_state(field, word, status, hints));
    }
    if n_found > 0 || hints.worst.is_some() {
        return;
    }
    // Kinds that several controllers report on keep one state for each: `status.statuses.<who>.state`.
    let inner = status.as_object().into_iter().flat_map(|map| map.values()).filter_map(Value::as_object);
    for reporter in inner.flat_map(|map| map.values()).filter(|reporter| reporter.is_object()) {
        for field in INNER_STATE_FIELDS {
            note_state(field, reporter.get(field), reporter, hints);
        }
    }
}

/// Notes one word or flag; says whether it was one.
fn note_state(field: &str, word: Option<&Value>, holder: &Value, hints: &mut Hints) -> bool {
    match word {
        Some(Value::Bool(flag)) => {
            let sense = match (*flag, field) {
                (true, _) => Sense::Well,
                (false, "healthy") => Sense::Failing,
                (false, _) => Sense::Moving,
            };
            hints.note(sense, &format!("`{field}` is {flag}"));
            true
        }
        Some(Value::String(word)) => {
            let texts = ["message", "reason"].into_iter().filter_map(|field| find_text(holder, field));
            let words = texts.into_iter().find(|text| !text.is_empty()).unwrap_or(word);
            match word.to_lowercase().as_str() {
                "notfound" => hints.note_status(HealthStatus::Missing, words),
                "unknown" => hints.note_status(HealthStatus::Unknown, words),
                _ => match sense_of_name(word) {
                    Some(sense) => hints.note(sense, words),
                    None => return false,
                },
            }
            true
        }
        _ => false,
    }
}

fn note_errors(status: &Value, hints: &mut Hints) {
    for field in ERROR_FIELDS {
        let text = match status.get(field) {
            Some(Value::String(text)) => text.as_str(),
            Some(Value::Object(inner)) => inner.get("message").and_then(Value::as_str).unwrap_or_default(),
            _ => "",
        };
        if !text.is_empty() {
            hints.note(Sense::Failing, text);
        }
    }
}

/// Counters of the status, and what they are to reach: a field of the status, or of the spec.
const COUNTERS: &[(&str, &str)] = &[
    ("updatedReplicas", "replicas"),
    ("readyReplicas", "replicas"),
    ("availableReplicas", "replicas"),
    ("updatedNumberScheduled", "desiredNumberScheduled"),
    ("numberAvailable", "desiredNumberScheduled"),
    ("availableNodes", "expectedNodes"),
    ("currentHealthy", "desiredHealthy"),
    ("currentHealthy", "expectedMachines"),
    ("ready", "size"),
];

fn note_replicas(object: &Value, status: &Value, hints: &mut Hints) {
    for (counter, goal) in COUNTERS {
        let wanted = object.get("spec").and_then(|spec| spec.get(goal)).or_else(|| status.get(goal));
        let (Some(there), Some(wanted)) =
            (status.get(counter).and_then(Value::as_i64), wanted.and_then(Value::as_i64))
        else {
            continue;
        };
        if there < wanted {
            hints.note(Sense::Moving, &format!("{there} of {wanted}: `{counter}`"));
        } else {
            hints.note(Sense::Well, "");
        }
    }
}
