//! A Secret in the form in which the API server keeps it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// A Secret as the API server stores it: what `stringData` has is in `data`. Other objects stay as they are.
pub fn as_stored(mut object: Value) -> Value {
    let is_secret = object.get("kind").and_then(Value::as_str) == Some("Secret")
        && object.get("apiVersion").and_then(Value::as_str) == Some("v1");
    let Some(fields) = object.as_object_mut().filter(|_| is_secret) else { return object };
    if !fields.get("stringData").is_some_and(Value::is_object) {
        return object;
    }
    let Some(Value::Object(texts)) = fields.remove("stringData") else { return object };
    let data = fields.entry("data").or_insert_with(|| json!({}));
    if !data.is_object() {
        *data = json!({});
    }
    for (name, text) in texts {
        data[name] = json!(STANDARD.encode(text.as_str().unwrap_or_default()));
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_stored_as_data() {
        let written =
            json!({"apiVersion": "v1", "kind": "Secret", "stringData": {"a": "x"}, "data": {"b": "eQ=="}});
        let stored = json!({"apiVersion": "v1", "kind": "Secret", "data": {"a": "eA==", "b": "eQ=="}});
        assert_eq!(as_stored(written), stored);
    }

    #[test]
    fn other_objects_stay_as_they_are() {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "stringData": {"a": "x"}});
        assert_eq!(as_stored(map.clone()), map);
    }
}
