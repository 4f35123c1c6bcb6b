//! `v1` Node: does its kubelet answer, and may pods be placed on it? Argo CD has no opinion on it.

use serde_json::Value;

use super::super::Health;
use super::super::read::{Read, conditions, flag};

pub(super) fn judge(object: &Value) -> Read<Health> {
    let conditions = conditions(object)?;
    let Some(ready) = conditions.iter().find(|condition| condition.kind == "Ready") else {
        return Ok(Health::progressing("the kubelet has not reported yet"));
    };
    if !ready.is_true() {
        return Ok(Health::degraded(ready.words()));
    }
    if flag(object, "spec.unschedulable")? {
        return Ok(Health::suspended("the node is cordoned"));
    }
    let pressed = conditions.iter().find(|condition| condition.kind != "Ready" && condition.is_true());
    Ok(match pressed {
        Some(condition) => Health::degraded(format!("{}: {}", condition.kind, condition.words())),
        None => Health::healthy(""),
    })
}
