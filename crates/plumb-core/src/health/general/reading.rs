//! The general reading: all hints of an object, of which the worst decides.

use serde_json::Value;

use super::super::Health;
use super::super::read::find;
use super::conditions::note_conditions;
use super::hints::Hints;
use super::states::{note_errors, note_replicas, note_states};

/// Switches of the spec that pause an object.
const PAUSE_FIELDS: &[&str] = &[
    "spec.paused",
    "spec.pause",
    "spec.suspend",
    "spec.suspended",
    "spec.updateStrategy.paused",
    "spec.updateStrategy.rollingUpdate.paused",
];

/// The health that the object reports; `None` if it has no hint.
pub(in crate::health) fn read(object: &Value) -> Option<Health> {
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

/// Is there no status at all?
pub(in crate::health) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => false,
    }
}

/// Has the controller observed the newest spec? Unlike for the built-in kinds, a missing `observedGeneration` counts as
/// observed.
pub(in crate::health) fn is_observed(object: &Value) -> bool {
    let Some(generation) = find(object, "metadata.generation").and_then(whole_number) else { return true };
    match find(object, "status.observedGeneration").and_then(whole_number) {
        Some(observed) => observed >= generation,
        None => true,
    }
}

/// Some controllers write the number as a string.
pub(in crate::health) fn whole_number(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => number.as_i64(),
        Value::String(text) => text.parse().ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}
