//! Hints from state fields, error texts and counters.

use serde_json::Value;

use super::super::HealthStatus;
use super::super::read::find_text;
use super::hints::Hints;
use super::words::{Sense, sense_of_name};

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

pub(super) fn note_states(status: &Value, hints: &mut Hints) {
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

pub(super) fn note_errors(status: &Value, hints: &mut Hints) {
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

pub(super) fn note_replicas(object: &Value, status: &Value, hints: &mut Hints) {
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
