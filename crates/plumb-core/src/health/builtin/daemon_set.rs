//! `apps/v1` `DaemonSet`: does every node that should have a pod have an available one of the newest revision?

use serde_json::Value;

use super::super::Health;
use super::super::read::{Read, int, is_observed, text};

pub(super) fn judge(object: &Value) -> Read<Health> {
    if !is_observed(object)? {
        return Ok(Health::progressing("the controller has not seen the newest spec yet"));
    }
    if text(object, "spec.updateStrategy.type")? == "OnDelete" {
        return Ok(Health::healthy("pods are updated when they are deleted"));
    }
    let wanted = int(object, "status.desiredNumberScheduled")?.unwrap_or(0);
    let updated = int(object, "status.updatedNumberScheduled")?.unwrap_or(0);
    if updated < wanted {
        return Ok(Health::progressing(format!("{updated} of {wanted} pods are updated")));
    }
    let available = int(object, "status.numberAvailable")?.unwrap_or(0);
    if available < wanted {
        return Ok(Health::progressing(format!("{available} of {wanted} pods are available")));
    }
    Ok(Health::healthy(""))
}
