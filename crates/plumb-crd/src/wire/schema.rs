//! Parts of structural schemas.

use serde_json::{Map, Value};

/// An object's schema from its parts.
pub(crate) fn object_schema(properties: Map<String, Value>, required: &[&str]) -> Value {
    let mut schema = serde_json::json!({"type": "object"});
    schema["properties"] = Value::Object(properties);
    if !required.is_empty() {
        schema["required"] = required.iter().copied().collect();
    }
    schema
}

/// A schema with the field's documentation.
pub(crate) fn described(mut schema: Value, description: &str) -> Value {
    let description = description.trim();
    if !description.is_empty() {
        schema["description"] = Value::from(description);
    }
    schema
}

/// A schema with further restrictions.
pub(crate) fn restrict(mut schema: Value, restriction: Value) -> Value {
    if let (Some(schema), Value::Object(restriction)) = (schema.as_object_mut(), restriction) {
        schema.extend(restriction);
    }
    schema
}
