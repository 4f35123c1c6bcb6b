//! Reading and changing objects by path.

use jiff::Timestamp;
use serde_json::{Map, Value};

/// The value at a path, if it is there.
pub(super) fn get<'v>(object: &'v Value, path: &[&str]) -> Option<&'v Value> {
    path.iter().try_fold(object, |value, field| value.get(field))
}

/// The text at a path.
pub(super) fn text<'v>(object: &'v Value, path: &[&str]) -> Option<&'v str> {
    get(object, path)?.as_str()
}

/// Is there a `true` at a path?
pub(super) fn is_true(object: &Value, path: &[&str]) -> bool {
    get(object, path) == Some(&Value::Bool(true))
}

/// How many entries the list at a path has.
pub(super) fn length(object: &Value, path: &[&str]) -> usize {
    get(object, path).and_then(Value::as_array).map_or(0, Vec::len)
}

/// Sets the value at a path, with maps on the way where there are none.
pub(super) fn set(object: &mut Value, path: &[&str], value: impl Into<Value>) {
    let Some((last, way)) = path.split_last() else { return };
    let mut at = object;
    for field in way {
        at = entry(at, field);
    }
    *entry(at, last) = value.into();
}

fn entry<'v>(value: &'v mut Value, field: &str) -> &'v mut Value {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    // Indexing a map makes the entry.
    &mut value[field]
}

/// Takes the value at a path away.
pub(super) fn remove(object: &mut Value, path: &[&str]) {
    let Some((last, way)) = path.split_last() else { return };
    let parent = way.iter().try_fold(object, |value, field| value.get_mut(field));
    if let Some(Value::Object(parent)) = parent {
        parent.remove(*last);
    }
}

/// `2026-11-16T00:30:00Z`.
pub(super) fn stamp(now: Timestamp) -> String {
    now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// An owner reference to the object.
pub(super) fn owner(object: &Value) -> Value {
    let mut owner = Map::new();
    for (field, path) in [
        ("apiVersion", ["apiVersion"].as_slice()),
        ("kind", &["kind"]),
        ("name", &["metadata", "name"]),
        ("uid", &["metadata", "uid"]),
    ] {
        if let Some(value) = get(object, path) {
            owner.insert(field.to_owned(), value.clone());
        }
    }
    Value::Object(owner)
}
