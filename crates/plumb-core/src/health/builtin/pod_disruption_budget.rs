//! `policy` `PodDisruptionBudget`: does the controller manage to compute it?
//!
//! That no pod may be disrupted right now (`InsufficientPods`) is what a budget is for, not a problem.

use serde_json::Value;

use super::super::Health;
use super::super::read::{Read, conditions};

pub(super) fn judge(object: &Value) -> Read<Health> {
    let conditions = conditions(object)?;
    if conditions.is_empty() {
        return Ok(Health::progressing("the controller has not seen the budget yet"));
    }
    let failed =
        conditions.iter().find(|condition| condition.is_false() && condition.reason != "InsufficientPods");
    Ok(match failed {
        Some(condition) => Health::degraded(condition.words()),
        None => Health::healthy(""),
    })
}
