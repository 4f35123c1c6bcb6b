//! `apps/v1` `StatefulSet`: is the newest revision rolled out, as far as its partition asks?

use serde_json::Value;

use super::super::Health;
use super::super::read::{Read, at, int, is_observed, text};

pub(super) fn judge(object: &Value) -> Read<Health> {
    let never_observed = int(object, "status.observedGeneration")?.unwrap_or(0) == 0;
    if never_observed || !is_observed(object)? {
        return Ok(Health::progressing("the controller has not seen the newest spec yet"));
    }
    let wanted = int(object, "spec.replicas")?;
    let ready = int(object, "status.readyReplicas")?.unwrap_or(0);
    if let Some(wanted) = wanted
        && ready < wanted
    {
        return Ok(Health::progressing(format!("{ready} of {wanted} pods are ready")));
    }
    let strategy = text(object, "spec.updateStrategy.type")?;
    let updated = int(object, "status.updatedReplicas")?.unwrap_or(0);
    if strategy == "RollingUpdate" && at(object, "spec.updateStrategy.rollingUpdate")?.is_some() {
        let partition = int(object, "spec.updateStrategy.rollingUpdate.partition")?;
        if let (Some(wanted), Some(partition)) = (wanted, partition)
            && updated < wanted.saturating_sub(partition)
        {
            let wanted = wanted.saturating_sub(partition);
            return Ok(Health::progressing(format!(
                "{updated} of {wanted} pods of the partition are updated"
            )));
        }
        return Ok(Health::healthy(""));
    }
    if strategy == "OnDelete" {
        return Ok(Health::healthy("pods are updated when they are deleted"));
    }
    let newest = text(object, "status.updateRevision")?;
    if newest != text(object, "status.currentRevision")? {
        return Ok(Health::progressing(format!("{updated} pods are at the newest revision {newest}")));
    }
    Ok(Health::healthy(""))
}
