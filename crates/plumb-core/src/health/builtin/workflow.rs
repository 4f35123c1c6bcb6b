//! `argoproj.io` Workflow: did it end, and how?

use serde_json::Value;

use super::super::Health;
use super::super::read::{Read, text};

pub(super) fn judge(object: &Value) -> Read<Health> {
    let message = text(object, "status.message")?;
    Ok(match text(object, "status.phase")? {
        "" | "Pending" | "Running" => Health::progressing(message),
        "Succeeded" => Health::healthy(message),
        "Failed" | "Error" => Health::degraded(message),
        phase => Health::unknown(format!("the workflow's phase is {phase:?}")),
    })
}
