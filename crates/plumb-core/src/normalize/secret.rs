//! Secrets: folded into one shape, and stripped of their values before anything looks at them.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::kept::LAST_APPLIED;
use crate::object::{FieldPath, Manifest};
use crate::schema::SchemaSet;
use crate::text::BLANK;

/// Is it a core Secret?
pub fn is_secret(manifest: &Manifest) -> bool {
    manifest.kind() == "Secret" && manifest.group().is_empty()
}

/// Replaces the values of Secrets by marks: equal values get equal marks, and a mark reveals nothing else. One
/// redactor serves all objects that are compared with each other.
#[derive(Debug, Default)]
pub struct Redactor {
    marks: BTreeMap<Vec<u8>, usize>,
}

impl Redactor {
    /// A copy of a Secret without its values; anything else as it is.
    pub fn redact(&mut self, manifest: &Manifest) -> Manifest {
        if !is_secret(manifest) {
            return manifest.clone();
        }
        let mut value = manifest.value().clone();
        if let Value::Object(object) = &mut value {
            fold_string_data(object);
            if let Some(Value::Object(data)) = object.get_mut("data") {
                for value in data.values_mut() {
                    *value = self.mark(value);
                }
            }
            if let Some(last_applied) = object
                .get_mut("metadata")
                .and_then(|metadata| metadata.get_mut("annotations"))
                .and_then(|annotations| annotations.get_mut(LAST_APPLIED))
            {
                *last_applied = Value::String(without_values(last_applied));
            }
        }
        Manifest::new(value).unwrap_or_else(|_| manifest.clone())
    }

    /// A copy of a custom resource without the values of its sensitive fields.
    pub fn redact_fields(&mut self, manifest: &Manifest, schemas: &SchemaSet) -> Manifest {
        let gvk = manifest.gvk();
        let mut value = manifest.value().clone();
        schemas.change_sensitive(&gvk, &mut value, &mut |value| {
            if !value.is_null() {
                *value = self.mark_bytes(value.to_string().into_bytes());
            }
        });
        let last_applied =
            value.pointer_mut("/metadata/annotations").and_then(|all| all.get_mut(LAST_APPLIED));
        if let Some(last_applied) = last_applied {
            let parsed = last_applied.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
            *last_applied = Value::String(parsed.map_or_else(String::new, |mut object| {
                schemas
                    .change_sensitive(&gvk, &mut object, &mut |value| *value = Value::String(String::new()));
                object.to_string()
            }));
        }
        Manifest::new(value).unwrap_or_else(|_| manifest.clone())
    }

    fn mark(&mut self, value: &Value) -> Value {
        if value.is_null() {
            return Value::Null;
        }
        let bytes = match value {
            Value::String(text) => decode(text).unwrap_or_else(|| format!("not base64: {text}").into_bytes()),
            other => format!("not text: {other}").into_bytes(),
        };
        self.mark_bytes(bytes)
    }

    fn mark_bytes(&mut self, bytes: Vec<u8>) -> Value {
        let next = self.marks.len() + 1;
        let mark = *self.marks.entry(bytes).or_insert(next);
        Value::String(format!("<secret value {mark}>"))
    }
}

/// The text without the values of the sensitive fields of these objects. The API server quotes values that it refuses.
pub fn without_sensitive_values<'m>(
    text: &str,
    manifests: impl IntoIterator<Item = &'m Manifest>,
    schemas: &SchemaSet,
) -> String {
    let mut text = text.to_owned();
    for manifest in manifests {
        let gvk = manifest.gvk();
        if !schemas.has_sensitive_fields(&gvk) {
            continue;
        }
        let mut values = Vec::new();
        schemas
            .change_sensitive(&gvk, &mut manifest.value().clone(), &mut |value| collect(value, &mut values));
        // The longest first: one value may be a part of another.
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        for value in values.iter().filter(|value| value.len() >= SHORTEST_VALUE) {
            text = text.replace(value.as_str(), BLANK);
        }
    }
    text
}

/// A shorter value is a part of many words.
const SHORTEST_VALUE: usize = 3;

fn collect(value: &Value, values: &mut Vec<String>) {
    match value {
        Value::String(text) => values.push(text.clone()),
        Value::Number(number) => values.push(number.to_string()),
        Value::Array(items) => items.iter().for_each(|item| collect(item, values)),
        Value::Object(map) => map.values().for_each(|item| collect(item, values)),
        Value::Null | Value::Bool(_) => {}
    }
}

/// The keys of `stringData` and `data` that Git spells in another way than the server will.
pub(crate) fn respelled_keys(desired: &Manifest) -> (Vec<FieldPath>, Vec<FieldPath>) {
    let root = FieldPath::root();
    let keys = |field: &str, keep: &dyn Fn(&Value) -> bool| -> Vec<FieldPath> {
        let map = desired.value().get(field).and_then(Value::as_object);
        map.into_iter()
            .flatten()
            .filter(|(_, value)| keep(value))
            .map(|(key, _)| root.field(field).field(key.as_str()))
            .collect()
    };
    let is_wrapped = |value: &Value| {
        value
            .as_str()
            .is_some_and(|text| text.contains(|c: char| c.is_ascii_whitespace()) && decode(text).is_some())
    };
    (keys("stringData", &|value| !value.is_null()), keys("data", &is_wrapped))
}

/// Moves `stringData` into `data`, as the server does, and unwraps base64. Invalid base64 stays: the server
/// will refuse it.
pub(super) fn fold_string_data(object: &mut Map<String, Value>) {
    let folded = object.remove("stringData");
    if let Some(Value::Object(data)) = object.get_mut("data") {
        for value in data.values_mut() {
            if let Value::String(text) = value
                && text.contains(|c: char| c.is_ascii_whitespace())
                && let Some(bytes) = decode(text)
            {
                *text = STANDARD.encode(bytes);
            }
        }
    }
    let Some(Value::Object(folded)) = folded else { return };
    if folded.is_empty() {
        return;
    }
    let data = object.entry("data").or_insert_with(|| Value::Object(Map::new()));
    if !data.is_object() {
        *data = Value::Object(Map::new());
    }
    if let Value::Object(data) = data {
        for (key, value) in folded {
            let value = match value {
                Value::String(text) => Value::String(STANDARD.encode(text)),
                other => other,
            };
            data.insert(key, value);
        }
    }
}

fn decode(text: &str) -> Option<Vec<u8>> {
    let bare: String = text.split_ascii_whitespace().collect();
    STANDARD.decode(bare).ok()
}

/// The last-applied record with its keys but without its values.
fn without_values(last_applied: &Value) -> String {
    let parsed = last_applied.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
    let Some(Value::Object(mut object)) = parsed else { return String::new() };
    for field in ["data", "stringData"] {
        if let Some(Value::Object(data)) = object.get_mut(field) {
            data.values_mut().for_each(|value| *value = Value::String(String::new()));
        }
    }
    Value::Object(object).to_string()
}
