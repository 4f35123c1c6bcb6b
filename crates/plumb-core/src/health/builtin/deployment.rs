//! `apps/v1` Deployment: is the newest revision rolled out?

use serde_json::Value;

use super::super::Health;
use super::super::read::{Read, conditions, flag, int, is_observed};

pub(super) fn judge(object: &Value) -> Read<Health> {
    if flag(object, "spec.paused")? {
        return Ok(Health::suspended("the Deployment is paused"));
    }
    if !is_observed(object)? {
        return Ok(Health::progressing("the controller has not seen the newest spec yet"));
    }
    let progressing = conditions(object)?.into_iter().find(|condition| condition.kind == "Progressing");
    if let Some(condition) = progressing
        && condition.reason == "ProgressDeadlineExceeded"
    {
        return Ok(Health::degraded(format!("the rollout passed its deadline: {}", condition.words())));
    }
    let updated = int(object, "status.updatedReplicas")?.unwrap_or(0);
    let existing = int(object, "status.replicas")?.unwrap_or(0);
    let available = int(object, "status.availableReplicas")?.unwrap_or(0);
    if let Some(wanted) = int(object, "spec.replicas")?
        && updated < wanted
    {
        return Ok(Health::progressing(format!("{updated} of {wanted} replicas are updated")));
    }
    if existing > updated {
        let old = existing.saturating_sub(updated);
        return Ok(Health::progressing(format!("{old} old replicas have still to end")));
    }
    if available < updated {
        return Ok(Health::progressing(format!("{available} of {updated} updated replicas are available")));
    }
    Ok(Health::healthy(""))
}
