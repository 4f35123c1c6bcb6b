//! The smallest change that makes one JSON value of another (RFC 7396).

use serde_json::{Map, Value};

/// The patch from `old` to `new`; `None` if they are the same.
pub(crate) fn merge_patch(old: &Value, new: &Value) -> Option<Value> {
    if old == new {
        return None;
    }
    let (Value::Object(old), Value::Object(new)) = (old, new) else { return Some(new.clone()) };
    let mut patch = Map::new();
    for key in old.keys().filter(|key| !new.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    for (key, value) in new {
        match old.get(key) {
            None => {
                patch.insert(key.clone(), value.clone());
            }
            Some(before) => {
                if let Some(change) = merge_patch(before, value) {
                    patch.insert(key.clone(), change);
                }
            }
        }
    }
    Some(Value::Object(patch))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_changed_is_sent() {
        let old = json!({"a": 1, "b": {"c": 2, "d": 3}, "e": [1, 2], "gone": true});
        let new = json!({"a": 1, "b": {"c": 2, "d": 4}, "e": [1], "f": {}});
        let patch = merge_patch(&old, &new);
        assert_eq!(patch, Some(json!({"b": {"d": 4}, "e": [1], "gone": null, "f": {}})));
        assert_eq!(merge_patch(&old, &old), None);
    }
}
