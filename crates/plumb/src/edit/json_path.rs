//! Reading and setting fields inside a JSON value.

use serde_json::{Map, Value};

use crate::error::CommandError;

/// The value as a map. Anything else is replaced by an empty map.
pub(crate) fn map(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(map) => map,
        _ => unreachable_map(),
    }
}

/// The value as a list. Anything else is replaced by an empty list.
pub(crate) fn list(value: &mut Value) -> &mut Vec<Value> {
    if !value.is_array() {
        *value = Value::Array(Vec::new());
    }
    match value {
        Value::Array(list) => list,
        _ => unreachable_list(),
    }
}

#[expect(clippy::unreachable, reason = "the line above made it a map")]
fn unreachable_map() -> ! {
    unreachable!("a map was put there")
}

#[expect(clippy::unreachable, reason = "the line above made it a list")]
fn unreachable_list() -> ! {
    unreachable!("a list was put there")
}

/// A field of a map, created as null if it is missing.
pub(crate) fn field<'a>(value: &'a mut Value, name: &str) -> &'a mut Value {
    map(value).entry(name).or_insert(Value::Null)
}

/// Sets a field if a value is given.
pub(crate) fn set<T: Clone + Into<Value>>(value: &mut Value, name: &str, given: Option<&T>) {
    if let Some(given) = given {
        *field(value, name) = given.clone().into();
    }
}

/// Sets a list of strings if it is not empty.
pub(super) fn set_list(value: &mut Value, name: &str, given: &[String]) {
    if !given.is_empty() {
        *field(value, name) = given.to_vec().into();
    }
}

/// Replaces the entry of a list with the same key, or adds it.
pub(crate) fn upsert(entries: &mut Vec<Value>, key: &str, entry: Value) {
    match entries.iter_mut().find(|known| known.get(key) == entry.get(key)) {
        Some(known) => *known = entry,
        None => entries.push(entry),
    }
}

/// Splits `name=value`.
pub(crate) fn pair<'a>(flag: &str, text: &'a str) -> Result<(&'a str, &'a str), CommandError> {
    text.split_once('=')
        .filter(|(name, _)| !name.is_empty())
        .ok_or_else(|| CommandError::usage(format!("{flag} {text}: expected NAME=VALUE")))
}

/// Removes a field that has become empty, as Argo CD stores it.
pub(crate) fn remove_empty(value: &mut Value, name: &str) {
    let map = map(value);
    let is_empty = match map.get(name) {
        Some(Value::Object(inner)) => inner.is_empty(),
        Some(Value::Array(inner)) => inner.is_empty(),
        Some(Value::Null) => true,
        Some(Value::String(_) | Value::Bool(_) | Value::Number(_)) | None => false,
    };
    if is_empty {
        map.remove(name);
    }
}
