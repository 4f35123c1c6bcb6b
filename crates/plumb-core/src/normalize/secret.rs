//! Secrets: folded into one shape, and stripped of their values before anything looks at them.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::kept::LAST_APPLIED;
use super::secret_values::{change_secret_values, has_secret_values, is_copy_annotation};
use crate::object::{FieldPath, Manifest};
use crate::schema::SchemaSet;
use crate::text::without_texts;

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
        if !has_secret_values(&manifest.gvk()) {
            return manifest.clone();
        }
        let mut value = manifest.value().clone();
        if let Value::Object(object) = &mut value {
            fold_string_data(object);
            change_secret_values(object, &mut |field, key, value| {
                *value = if (field, key.is_some()) == ("data", true) {
                    self.mark(value)
                } else {
                    self.mark_bytes(value.to_string().into_bytes())
                };
            });
            self.mark_copies(object, without_values);
        }
        Manifest::new(value).unwrap_or_else(|_| manifest.clone())
    }

    /// The same, and without the values of annotations that other tools than plumb and Argo CD read: in Git they can hold
    /// anything.
    pub fn redact_with_annotations(&mut self, manifest: &Manifest) -> Manifest {
        let redacted = self.redact(manifest);
        if !has_secret_values(&redacted.gvk()) {
            return redacted;
        }
        let mut value = redacted.value().clone();
        let annotations = value.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
        for (name, text) in annotations.into_iter().flatten() {
            let is_shown = name.starts_with("argocd.argoproj.io/") || name.starts_with("plumb.dev/");
            if !is_shown && !text.is_null() && !is_mark(text) {
                *text = self.mark_bytes(text.to_string().into_bytes());
            }
        }
        Manifest::new(value).unwrap_or(redacted)
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
        if let Value::Object(object) = &mut value
            && schemas.has_sensitive_fields(&gvk)
        {
            self.mark_copies(object, |copy| {
                let parsed = copy.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
                parsed.map_or_else(String::new, |mut copy| {
                    schemas.change_sensitive(&gvk, &mut copy, &mut |value| {
                        *value = Value::String(String::new());
                    });
                    copy.to_string()
                })
            });
        }
        Manifest::new(value).unwrap_or_else(|_| manifest.clone())
    }

    /// Copies of the object in its annotations. The fields of kubectl's copy stay, because they say what it applied.
    fn mark_copies(&mut self, object: &mut Map<String, Value>, without_values: impl Fn(&Value) -> String) {
        let annotations =
            object.get_mut("metadata").and_then(|metadata| metadata.get_mut("annotations")?.as_object_mut());
        for (name, copy) in annotations.into_iter().flatten().filter(|(name, _)| is_copy_annotation(name)) {
            *copy = if name == LAST_APPLIED {
                Value::String(without_values(copy))
            } else {
                self.mark_bytes(copy.to_string().into_bytes())
            };
        }
    }

    fn mark(&mut self, value: &Value) -> Value {
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

/// Is it, or has it, the mark of a value? Then it cannot be written to Git.
pub(crate) fn has_mark(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(has_mark),
        Value::Object(map) => map.values().any(has_mark),
        text => is_mark(text),
    }
}

fn is_mark(value: &Value) -> bool {
    let number = value.as_str().and_then(|text| text.strip_prefix("<secret value ")?.strip_suffix('>'));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit()))
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
        let values = values.iter().map(String::as_str).filter(|value| value.len() >= SHORTEST_VALUE);
        text = without_texts(&text, values);
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

/// Moves `stringData` into `data`, as the server does, and unwraps base64. Invalid base64 and fields that are no maps stay:
/// the server will refuse them.
pub(super) fn fold_string_data(object: &mut Map<String, Value>) {
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
    let is_refused =
        |field: &str| object.get(field).is_some_and(|value| !value.is_object() && !value.is_null());
    // The server refuses it, and whoever wrote it has to hear that.
    if is_refused("data") || is_refused("stringData") {
        return;
    }
    let Some(Value::Object(folded)) = object.remove("stringData") else { return };
    if folded.is_empty() {
        return;
    }
    let data = object.entry("data").or_insert_with(|| Value::Object(Map::new()));
    if data.is_null() {
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
    change_secret_values(&mut object, &mut |_, _, value| *value = Value::String(String::new()));
    Value::Object(object).to_string()
}
