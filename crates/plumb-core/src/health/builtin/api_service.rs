//! `apiregistration.k8s.io` `APIService`: does the server behind it answer?

use serde_json::Value;

use super::super::Health;
use super::super::read::{Read, conditions};

pub(super) fn judge(object: &Value) -> Read<Health> {
    let available = conditions(object)?.into_iter().find(|condition| condition.kind == "Available");
    Ok(match available {
        Some(condition) if condition.is_true() => Health::healthy(condition.message),
        Some(condition) => Health::progressing(condition.words()),
        None => Health::progressing("waiting for the API to be registered"),
    })
}
