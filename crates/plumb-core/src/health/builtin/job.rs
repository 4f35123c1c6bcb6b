//! `batch/v1` Job: did it end, and how?

use serde_json::Value;

use super::super::Health;
use super::super::read::{Read, conditions};

pub(super) fn judge(object: &Value) -> Read<Health> {
    let conditions = conditions(object)?;
    let last = |kind: &str| conditions.iter().rev().find(|condition| condition.kind == kind);
    if let Some(failed) = last("Failed") {
        return Ok(Health::degraded(failed.message));
    }
    match (last("Suspended"), last("Complete")) {
        (Some(suspended), _) if suspended.is_true() => Ok(Health::suspended(suspended.message)),
        (_, Some(complete)) => Ok(Health::healthy(complete.message)),
        // A Job that was resumed keeps `Suspended: False` while it runs. Argo CD takes that for an end, and
        // waves go on; so do ours.
        (Some(resumed), None) => Ok(Health::healthy(resumed.message)),
        (None, None) => Ok(Health::progressing("the job is not finished")),
    }
}
