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
    let mut established = None;
    // The first that is wrong decides, in the order in which the server writes them.
    for condition in &conditions {
        match condition.kind {
            "Terminating" if condition.is_true() => {
                return Ok(Health::progressing(format!("being deleted: {}", condition.words())));
            }
            "NamesAccepted" if condition.is_false() => {
                return Ok(Health::degraded(format!("its names are not accepted: {}", condition.words())));
            }
            "NonStructuralSchema" if condition.is_true() => {
                return Ok(Health::degraded(format!("its schema is not structural: {}", condition.words())));
            }
            "Established" if !condition.is_true() && condition.reason == "Installing" => {
                return Ok(Health::progressing("its API is being installed"));
            }
            "Established" => established = Some(condition),
            _ => {}
        }
    }
    Ok(match established {
        Some(condition) if condition.is_true() => Health::healthy(""),
        Some(condition) => Health::degraded(format!("its API is not served: {}", condition.words())),
        None => Health::degraded("its API is not served"),
    })
}
