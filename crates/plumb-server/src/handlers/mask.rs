//! Objects as they leave: values of Secrets and of sensitive fields are stars.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use plumb_core::normalize::LAST_APPLIED;
use plumb_core::object::GroupVersionKind;
use plumb_crd::settings::{ConfigData, Settings};
use serde_json::{Value, json};

/// Shown instead of a value.
const STARS: &str = "++++++++";

/// What is not shown.
pub(super) struct Masks {
    settings: Settings,
}

impl Masks {
    pub(super) fn of(config: &BTreeMap<String, String>) -> Self {
        let (settings, _) = Settings::read(config, &ConfigData::new());
        Self { settings }
    }

    /// An object with stars instead of its sensitive values. Its own kind decides, not what the caller says.
    pub(super) fn hide(&self, object: Value) -> Value {
        self.hide_beside(object, None)
    }

    /// The same; a value that differs from the one of the other object has more stars, so that the difference shows.
    pub(super) fn hide_beside(&self, mut object: Value, other: Option<&Value>) -> Value {
        let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        let gvk = GroupVersionKind::from_api_version(&text("apiVersion"), &text("kind"));
        let mut is_sensitive = false;
        for field in &self.settings.sensitive_fields {
            if (&field.kind.group, &field.kind.kind) == (&gvk.group, &gvk.kind) {
                is_sensitive = true;
                field.change(&mut object, &mut |value| *value = json!(STARS));
            }
        }
        let is_secret = gvk.group.is_empty() && gvk.kind == "Secret";
        for field in ["data", "stringData"].into_iter().filter(|_| is_secret) {
            let others = other.and_then(|other| other.get(field));
            let values = object.get_mut(field).and_then(Value::as_object_mut);
            for (name, value) in values.into_iter().flatten() {
                let differs = others.and_then(|others| others.get(name)).is_some_and(|other| other != value);
                *value = if differs { json!(format!("{STARS}++++")) } else { json!(STARS) };
            }
        }
        let annotations = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
        for (name, value) in annotations.into_iter().flatten() {
            let is_masked = is_secret && self.settings.mask_annotations.contains(name);
            if is_masked || ((is_secret || is_sensitive) && name == LAST_APPLIED) {
                *value = json!(STARS);
            }
        }
        object
    }
}

/// A Secret as the API server stores it: what `stringData` has is in `data`. Other objects stay as they are.
pub(super) fn as_stored(mut object: Value) -> Value {
    let is_secret = object.get("kind").and_then(Value::as_str) == Some("Secret")
        && object.get("apiVersion").and_then(Value::as_str) == Some("v1");
    let Some(fields) = object.as_object_mut().filter(|_| is_secret) else { return object };
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
    fn a_secret_leaves_without_its_values() {
        let secret = |value: &str| {
            json!({"apiVersion": "v1", "kind": "Secret", "data": {"a": value},
                "metadata": {"annotations": {LAST_APPLIED: value, "x": "y"}}})
        };
        let masks = Masks::of(&BTreeMap::new());
        let shown = masks.hide(secret("czNjcjN0")).to_string();
        assert!(!shown.contains("czNjcjN0") && shown.contains("\"x\":\"y\""), "{shown}");
        let same = masks.hide_beside(secret("a"), Some(&secret("a")));
        let other = masks.hide_beside(secret("a"), Some(&secret("b")));
        assert_ne!(same["data"], other["data"]);
    }

    #[test]
    fn texts_of_a_secret_are_compared_as_they_are_stored() {
        let written =
            json!({"apiVersion": "v1", "kind": "Secret", "stringData": {"a": "x"}, "data": {"b": "eQ=="}});
        let stored = json!({"apiVersion": "v1", "kind": "Secret", "data": {"a": "eA==", "b": "eQ=="}});
        assert_eq!(as_stored(written), stored);
        let masks = Masks::of(&BTreeMap::new());
        let other = json!({"apiVersion": "v1", "kind": "Secret", "data": {"a": "eg==", "b": "eQ=="}});
        let shown = masks.hide_beside(stored, Some(&other));
        assert_eq!(shown["data"], json!({"a": "++++++++++++", "b": "++++++++"}));
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "stringData": {"a": "x"}});
        assert_eq!(as_stored(map.clone()), map);
    }
}
