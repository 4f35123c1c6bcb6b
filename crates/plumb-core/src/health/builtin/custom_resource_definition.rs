//! `apiextensions.k8s.io` `CustomResourceDefinition`: is its API served?

use serde_json::Value;

use super::super::Health;
use super::super::read::{Read, conditions, text};

pub(super) fn judge(object: &Value) -> Read<Health> {
    if !text(object, "metadata.deletionTimestamp")?.is_empty() {
        return Ok(Health::progressing("being deleted"));
    }
    let conditions = conditions(object)?;
    if conditions.is_empty() {
        return Ok(Health::progressing("the API server has not seen the definition yet"));
    }
    let find = |kind: &str| conditions.iter().find(|condition| condition.kind == kind);
    if let Some(terminating) = find("Terminating").filter(|condition| condition.is_true()) {
        return Ok(Health::progressing(format!("being deleted: {}", terminating.words())));
    }
    if let Some(names) = find("NamesAccepted").filter(|condition| condition.is_false()) {
        return Ok(Health::degraded(format!("its names are not accepted: {}", names.words())));
    }
    let established = find("Established");
    if let Some(condition) = established.filter(|condition| !condition.is_true()) {
        return Ok(if condition.reason == "Installing" {
            Health::progressing("its API is being installed")
        } else {
            Health::degraded(format!("its API is not served: {}", condition.words()))
        });
    }
    if let Some(schema) = find("NonStructuralSchema").filter(|condition| condition.is_true()) {
        return Ok(Health::degraded(format!("its schema is not structural: {}", schema.words())));
    }
    Ok(match established {
        Some(_) => Health::healthy(""),
        None => Health::degraded("its API is not served"),
    })
}
