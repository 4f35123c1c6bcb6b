//! `apps/v1` `ReplicaSet`: are its pods made and available?

use serde_json::Value;

use super::super::Health;
use super::super::read::{Read, conditions, int, is_observed};

pub(super) fn judge(object: &Value) -> Read<Health> {
    if !is_observed(object)? {
        return Ok(Health::progressing("the controller has not seen the newest spec yet"));
    }
    let failure = conditions(object)?.into_iter().find(|condition| condition.kind == "ReplicaFailure");
    if let Some(condition) = failure
        && condition.is_true()
    {
        return Ok(Health::degraded(condition.words()));
    }
    let available = int(object, "status.availableReplicas")?.unwrap_or(0);
    if let Some(wanted) = int(object, "spec.replicas")?
        && available < wanted
    {
        return Ok(Health::progressing(format!("{available} of {wanted} replicas are available")));
    }
    Ok(Health::healthy(""))
}
