//! Hints from conditions.

use serde_json::Value;

use super::super::read::find;
use super::hints::Hints;
use super::reading::whole_number;
use super::words::{Sense, sense_of_name, sense_of_sentence, split};

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

/// One condition, read without insisting on its shape.
#[derive(Clone, Copy)]
pub(in crate::health) struct LooseCondition<'value> {
    /// Its type.
    pub(in crate::health) kind: &'value str,
    /// `True`, `False`, `Unknown`, or something else.
    pub(in crate::health) status: &'value str,
    /// Reason.
    pub(in crate::health) reason: &'value str,
    /// Message.
    pub(in crate::health) message: &'value str,
    /// Which generation it speaks of.
    pub(in crate::health) observed: Option<i64>,
    /// The whole of it.
    pub(in crate::health) entry: &'value Value,
}

impl<'value> LooseCondition<'value> {
    /// What the condition says, in the best words it has.
    pub(in crate::health) fn words(&self) -> &'value str {
        [self.message, self.reason, self.kind].into_iter().find(|text| !text.is_empty()).unwrap_or_default()
    }
}

/// Conditions at `holder.conditions`.
pub(in crate::health) fn conditions(holder: &Value) -> impl Iterator<Item = LooseCondition<'_>> {
    let entries = holder.get("conditions").and_then(Value::as_array);
    entries.into_iter().flatten().map(|entry| {
        let text = |field: &str| entry.get(field).and_then(Value::as_str).unwrap_or_default();
        let status = match entry.get("status") {
            Some(Value::Bool(true)) => "True",
            Some(Value::Bool(false)) => "False",
            _ => text("status"),
        };
        LooseCondition {
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

pub(super) fn note_conditions(object: &Value, status: &Value, hints: &mut Hints) {
    let generation = find(object, "metadata.generation").and_then(whole_number);
    let mut all: Vec<LooseCondition<'_>> = conditions(status).collect();
    if all.is_empty() {
        // Kinds that report to many parents keep one list of conditions for each.
        let lists = status.as_object().into_iter().flat_map(|map| map.values()).filter_map(Value::as_array);
        all = lists.flatten().flat_map(conditions).collect();
    }
    let meanings: Vec<(LooseCondition<'_>, Meaning)> =
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

fn sense_of_condition(condition: &LooseCondition<'_>, meaning: Meaning) -> Option<Sense> {
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

/// Why a good condition is false: paused, in progress, or failed.
fn why_not(condition: &LooseCondition<'_>) -> Sense {
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
