//! What is sent to the server.

use serde_json::Value;

use super::kept::{is_kept_annotation, is_kept_metadata};
use super::secret::{fold_string_data, is_secret};
use crate::object::{FieldPath, Manifest, Segment};
use crate::schema::{Field, Schema, SchemaSet, Shape};

/// What to apply (and to dry-run) for a desired object: nulls dropped, `stringData` folded into `data`, base64
/// unwrapped, server-kept metadata and annotations left out, `status` too where it is a subresource.
///
/// Fields that the schema does not have are left out as well: a server-side apply that contains one is refused
/// as a whole, whatever `fieldValidation` says. A caller that refuses such objects (`Validate=true`) calls
/// [`unknown_fields`] first.
pub fn manifest_to_apply(desired: &Manifest, schemas: &SchemaSet) -> Manifest {
    let mut value = desired.value().clone();
    drop_nulls(&mut value);
    if let Some(kind) = schemas.kind(&desired.gvk()) {
        let mut unknown = Vec::new();
        prune(&mut value, kind.root, &mut FieldPath::root(), &mut unknown);
    }
    if let Value::Object(object) = &mut value {
        let has_status = schemas.kind(&desired.gvk()).is_none_or(|kind| kind.has_status_subresource);
        if has_status {
            object.remove("status");
        }
        if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
            metadata.retain(|name, _| !is_kept_metadata(name));
            if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
                annotations.retain(|key, _| !is_kept_annotation(key));
            }
        }
        if is_secret(desired) {
            fold_string_data(object);
        }
    }
    Manifest::new(value).unwrap_or_else(|_| desired.clone())
}

/// The fields of a desired object that the server does not know.
pub fn unknown_fields(desired: &Manifest, schemas: &SchemaSet) -> Vec<FieldPath> {
    let mut unknown = Vec::new();
    if let Some(kind) = schemas.kind(&desired.gvk()) {
        let mut value = desired.value().clone();
        drop_nulls(&mut value);
        if let Value::Object(object) = &mut value
            && kind.has_status_subresource
        {
            object.remove("status");
        }
        prune(&mut value, kind.root, &mut FieldPath::root(), &mut unknown);
    }
    unknown
}

fn prune(value: &mut Value, schema: Schema<'_>, path: &mut FieldPath, unknown: &mut Vec<FieldPath>) {
    match value {
        Value::Object(map) => map.retain(|name, value| {
            path.push(Segment::Field(name.into()));
            let known = match schema.field(name) {
                Field::Known(schema) => {
                    prune(value, schema, path, unknown);
                    true
                }
                Field::Open => true,
                Field::Unknown => {
                    unknown.push(path.clone());
                    false
                }
            };
            path.pop();
            known
        }),
        Value::Array(items) => {
            let Shape::List { items: schema, .. } = schema.shape() else { return };
            for (index, item) in items.iter_mut().enumerate() {
                path.push(Segment::Index(index));
                prune(item, schema, path, unknown);
                path.pop();
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
