//! `batch` `CronJob`: did its last run succeed?

use jiff::Timestamp;
use serde_json::Value;

use super::super::Health;
use super::super::read::{Read, flag, list, text};

pub(super) fn judge(object: &Value) -> Read<Health> {
    if flag(object, "spec.suspend")? {
        return Ok(Health::healthy("the CronJob is suspended"));
    }
    if object.get("status").is_none_or(Value::is_null) {
        return Ok(Health::progressing("the controller has not seen the CronJob yet"));
    }
    if !list(object, "status.active")?.is_empty() {
        return Ok(Health::healthy("a job is running; the one before may have failed"));
    }
    let scheduled = text(object, "status.lastScheduleTime")?;
    let succeeded = text(object, "status.lastSuccessfulTime")?;
    if scheduled.is_empty() {
        return Ok(Health::healthy("the CronJob has not been scheduled yet"));
    }
    if succeeded.is_empty() {
        return Ok(Health::healthy("the CronJob has never succeeded yet"));
    }
    if is_before(succeeded, scheduled) {
        return Ok(Health::degraded(format!(
            "the run of {scheduled} failed; the last success was {succeeded}"
        )));
    }
    Ok(Health::healthy(""))
}

/// By time where both are times, else by their text, which sorts the same for the form the API server writes.
fn is_before(left: &str, right: &str) -> bool {
    match (left.parse::<Timestamp>(), right.parse::<Timestamp>()) {
        (Ok(left), Ok(right)) => left < right,
        (Ok(_) | Err(_), Ok(_) | Err(_)) => *left < *right,
    }
}
