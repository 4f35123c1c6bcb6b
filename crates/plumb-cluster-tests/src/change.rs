//! Changes that another writer may make to an object.

use plumb_core::object::{FieldPath, Segment};
use serde_json::{Value, json};

use crate::generate::{Generator, schema_at};
use crate::kind::Kind;

/// Other values for a field, those that the server probably accepts first.
pub fn alternatives(kind: &Kind, object: &Value, path: &[Segment]) -> Vec<Value> {
    let Some(present) = FieldPath::from(path.to_vec()).find(object) else { return Vec::new() };
    let schema = schema_at(kind, path);
    let mut found: Vec<Value> = Vec::new();
    if let Some(choices) = schema.and_then(|schema| schema.schema["enum"].as_array()) {
        found.extend(choices.iter().cloned());
    } else {
        for salt in [1, 2, 5, 11] {
            found.extend(Generator::new(kind, 11, 0).value_at(path, salt));
        }
    }
    match present {
        Value::Bool(value) => found = vec![json!(!value)],
        Value::Number(number) => {
            found.retain(Value::is_number);
            let near = number.as_i64().into_iter().flat_map(|number| [number + 1, number - 1, number * 2]);
            found.extend(near.map(Value::from));
            if number.is_f64() {
                found.push(json!(number.as_f64().unwrap_or_default() + 1.0));
            }
        }
        Value::String(text) => {
            found.retain(|value| value.is_string() || value.is_number());
            if schema.is_none_or(|schema| schema.schema["enum"].is_null()) {
                found.push(json!(format!("{text}2")));
                found.push(json!(format!("{text}x")));
                // Base64 texts and times must stay valid.
                found.push(json!("eHl6"));
                found.push(json!("2027-01-01T00:00:00Z"));
                found.push(json!("7"));
            }
        }
        Value::Object(_) => found = vec![json!({"added": "here"})],
        Value::Array(_) | Value::Null => {}
    }
    let mut seen: Vec<Value> = Vec::new();
    found.retain(|value| {
        let is_new = value != present && !seen.contains(value);
        seen.push(value.clone());
        is_new
    });
    found
}

/// A JSON patch of one field.
pub fn replace(path: &[Segment], value: &Value) -> Value {
    json!([{"op": "replace", "path": pointer(path), "value": value}])
}

/// A JSON patch that removes a field.
pub fn remove(path: &[Segment]) -> Value {
    json!([{"op": "remove", "path": pointer(path)}])
}

fn pointer(path: &[Segment]) -> String {
    FieldPath::from(path.to_vec()).to_string()
}

/// The leaves of `desired` at which two live states differ: the effect of the change on Git's fields.
pub fn touched(desired: &[Vec<Segment>], before: &Value, after: &Value) -> Vec<FieldPath> {
    desired
        .iter()
        .map(|leaf| FieldPath::from(leaf.clone()))
        .filter(|leaf| leaf.find(before) != leaf.find(after))
        .collect()
}
