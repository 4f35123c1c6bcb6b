//! `v1` Namespace: can objects be made in it? Argo CD has no opinion on it.

use serde_json::Value;

use super::super::Health;
use super::super::read::{Condition, Read, conditions, text};

pub(super) fn judge(object: &Value) -> Read<Health> {
    Ok(match text(object, "status.phase")? {
        "" | "Active" => Health::healthy(""),
        "Terminating" => {
            let conditions = conditions(object)?;
            let held = conditions.iter().find(|condition| condition.is_true()).map_or("", Condition::words);
            Health::progressing(held)
        }
        phase => Health::unknown(format!("the namespace's phase is {phase:?}")),
    })
}
