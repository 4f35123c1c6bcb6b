//! Class A: defaults that the API server fills in where Argo CD sees them.
//!
//! Argo CD compares lists of custom resources as a whole, so a default inside a list makes the object `OutOfSync`. A
//! default elsewhere shows nowhere.

use serde_json::Value;

use super::app::Item;
use super::built_in::is_built_in;
use super::{LintApp, LintFinding, LintRule};
use crate::object::FieldPath;
use crate::schema::{Schema, SchemaSet, Shape};

pub(super) fn check(app: &LintApp<'_>, schemas: &SchemaSet) -> Vec<LintFinding> {
    let objects = app.objects().map(|object| Item {
        key: Some(&object.key),
        manifest: &object.manifest,
        origin: object.origin.as_ref(),
    });
    objects.filter_map(|item| of_object(app, &item, schemas)).collect()
}

fn of_object(app: &LintApp<'_>, item: &Item<'_>, schemas: &SchemaSet) -> Option<LintFinding> {
    let kind = schemas.kind(&item.manifest.gvk()).filter(|_| !is_built_in(item.manifest, schemas))?;
    let mut missing = Vec::new();
    let spec = item.manifest.value().as_object()?;
    for (name, value) in spec.iter().filter(|(name, _)| !matches!(name.as_str(), "metadata" | "status")) {
        if let Some(schema) = kind.root.known(name) {
            walk(value, schema, &FieldPath::root().field(name.as_str()), false, &mut missing);
        }
    }
    if missing.is_empty() {
        return None;
    }
    let shown: Vec<String> = missing.iter().map(|(path, value)| format!("{path}: {value}")).collect();
    let message = format!("the API server fills in defaults inside a list: {}", shown.join(", "));
    let fix = "set them in Git, or nothing: plumb does not count them, Argo CD shows the object as OutOfSync";
    let fields = missing.into_iter().map(|(path, _)| path).collect();
    Some(
        LintFinding::new(LintRule::SchemaDefault, app.name, message, fix)
            .of(item.key(), item.origin)
            .at(fields),
    )
}

fn walk(
    value: &Value,
    schema: Schema<'_>,
    path: &FieldPath,
    in_list: bool,
    missing: &mut Vec<(FieldPath, Value)>,
) {
    match (value, schema.shape()) {
        (Value::Object(map), _) => {
            if in_list {
                let absent = schema.fields().filter(|(name, _)| !map.contains_key(*name));
                let filled =
                    absent.filter_map(|(name, field)| Some((path.field(name), field.default()?.clone())));
                missing.extend(filled);
            }
            for (name, value) in map {
                if let Some(field) = schema.known(name) {
                    walk(value, field, &path.field(name.as_str()), in_list, missing);
                }
            }
        }
        (Value::Array(values), Shape::List { items, .. }) => {
            for (index, value) in values.iter().enumerate() {
                walk(value, items, &path.index(index), true, missing);
            }
        }
        _ => {}
    }
}
