//! Class H: values of built-in kinds that the API server writes in another way.

use serde_json::Value;

use super::app::Item;
use super::built_in::is_built_in;
use super::{LintApp, LintFinding, LintRule};
use crate::compare::Quantity;
use crate::object::{FieldPath, Segment};
use crate::schema::{Scalar, Schema, SchemaSet, Shape};

pub(super) fn check(app: &LintApp<'_>, schemas: &SchemaSet) -> Vec<LintFinding> {
    app.items().filter_map(|item| of_item(app, &item, schemas)).collect()
}

fn of_item(app: &LintApp<'_>, item: &Item<'_>, schemas: &SchemaSet) -> Option<LintFinding> {
    if !is_built_in(item.manifest, schemas) {
        return None;
    }
    let root = schemas.kind(&item.manifest.gvk()).map(|kind| kind.root);
    let mut found = Vec::new();
    walk(item.manifest.value(), root, &FieldPath::root(), &mut found);
    if found.is_empty() {
        return None;
    }
    let shown: Vec<String> =
        found.iter().map(|(path, from, to)| format!("{path}: {from} is stored as {to:?}")).collect();
    let message = format!("the API server writes values differently: {}", shown.join(", "));
    let fields = found.into_iter().map(|(path, ..)| path).collect();
    Some(
        LintFinding::new(LintRule::EquivalentValue, app.name, message, "use the spelling of the API server")
            .of(item.key(), item.origin)
            .at(fields),
    )
}

fn walk(
    value: &Value,
    schema: Option<Schema<'_>>,
    path: &FieldPath,
    found: &mut Vec<(FieldPath, Value, String)>,
) {
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                let field = schema.and_then(|schema| schema.known(name));
                walk(value, field, &path.field(name.as_str()), found);
            }
        }
        Value::Array(values) => {
            let items = schema.and_then(|schema| match schema.shape() {
                Shape::List { items, .. } => Some(items),
                Shape::Any | Shape::Map { .. } | Shape::Scalar(_) => None,
            });
            values
                .iter()
                .enumerate()
                .for_each(|(index, value)| walk(value, items, &path.index(index), found));
        }
        Value::String(_) | Value::Number(_) if is_quantity(schema, path) => {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let stored = Quantity::canonical(&text).filter(|stored| *stored != text);
            found.extend(stored.map(|stored| (path.clone(), value.clone(), stored)));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Is it a quantity? Without a schema, the names of the fields say so.
fn is_quantity(schema: Option<Schema<'_>>, path: &FieldPath) -> bool {
    if let Some(schema) = schema {
        return matches!(schema.shape(), Shape::Scalar(Scalar::Quantity));
    }
    let names: Vec<&str> = path
        .segments()
        .iter()
        .filter_map(|segment| match segment {
            Segment::Field(name) => Some(name.as_str()),
            Segment::Index(_) => None,
        })
        .collect();
    matches!(
        names.as_slice(),
        [.., "resources", "limits" | "requests", _]
            | ["spec", "hard" | "capacity", _]
            | [.., "emptyDir", "sizeLimit"]
    )
}
