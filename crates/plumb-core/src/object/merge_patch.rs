//! The smallest JSON merge patch (RFC 7396) between two values.

use serde_json::{Map, Value};

/// The merge patch that turns `old` into `new`; `None` if they are equal. A merge patch cannot set a field to null, so
/// a null in `new` reads as "remove".
pub fn merge_patch(old: &Value, new: &Value) -> Option<Value> {
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
    use serde_json::json;

    use super::*;

    #[test]
    fn only_changes_are_in_the_patch() {
        let cases = [
            (json!({"a": 1}), json!({"a": 1}), None),
            (json!(1), json!(2), Some(json!(2))),
            (json!({"a": 1}), json!([1]), Some(json!([1]))),
            (json!({}), json!({"a": {}}), Some(json!({"a": {}}))),
            (json!({"a": 1, "b": 2}), json!({"b": 2}), Some(json!({"a": null}))),
            (json!({"a": {"b": 1, "c": 2}}), json!({"a": {"b": 1, "c": 3}}), Some(json!({"a": {"c": 3}}))),
            // A list is one value.
            (json!({"a": [1, 2]}), json!({"a": [1]}), Some(json!({"a": [1]}))),
            (json!({"a": null}), json!({"a": 1}), Some(json!({"a": 1}))),
        ];
        for (old, new, expected) in cases {
            assert_eq!(merge_patch(&old, &new), expected, "{old} to {new}");
        }
    }
}
