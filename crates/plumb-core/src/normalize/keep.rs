//! Fields that an apply keeps as they are in the cluster.

use serde_json::{Map, Value};

use crate::object::{FieldPath, Manifest, Segment};
use crate::schema::{ListType, Schema, SchemaSet, Shape};

/// A copy of `desired` in which these places of the live object have what `live` has there, or are absent, as
/// in `live`. Used for `RespectIgnoreDifferences`, and for fields that a controller or each render sets to a new value.
pub fn keep_live(desired: &Manifest, live: &Manifest, places: &[FieldPath], schemas: &SchemaSet) -> Manifest {
    let schema = schemas.kind(&desired.gvk()).map(|kind| kind.root);
    let mut value = desired.value().clone();
    for place in places {
        copy_place(&mut value, Some(live.value()), place.segments(), schema);
    }
    Manifest::new(value).unwrap_or_else(|_| desired.clone())
}

/// A copy of `desired` without these places of its own.
pub fn leave_out(desired: &Manifest, places: &[FieldPath]) -> Manifest {
    if places.is_empty() {
        return desired.clone();
    }
    let mut places: Vec<&FieldPath> = places.iter().collect();
    // From the back: removing an item shifts the ones after it.
    places.sort();
    places.dedup();
    let mut value = desired.value().clone();
    for place in places.into_iter().rev() {
        let Some((last, parents)) = place.segments().split_last() else { continue };
        let parent = parents.iter().try_fold(&mut value, |value, segment| match segment {
            Segment::Field(name) => value.get_mut(name.as_str()),
            Segment::Index(index) => value.get_mut(*index),
        });
        match (parent, last) {
            (Some(Value::Object(map)), Segment::Field(name)) => {
                map.remove(name.as_str());
            }
            (Some(Value::Array(items)), Segment::Index(index)) if *index < items.len() => {
                items.remove(*index);
            }
            _ => {}
        }
    }
    Manifest::new(value).unwrap_or_else(|_| desired.clone())
}

/// Gives `desired` at `place` what `live` has there.
pub(super) fn copy_place(
    desired: &mut Value,
    live: Option<&Value>,
    place: &[Segment],
    schema: Option<Schema<'_>>,
) {
    let Some((segment, rest)) = place.split_first() else {
        if let Some(live) = live {
            desired.clone_from(live);
        }
        return;
    };
    match (desired, segment) {
        (Value::Object(map), Segment::Field(name)) => copy_field(map, live, name, rest, schema),
        (Value::Array(items), Segment::Index(index)) => copy_item(items, live, *index, rest, schema),
        // A JSON pointer writes an index as digits.
        (Value::Array(items), Segment::Field(digits)) => {
            if let Ok(index) = digits.parse() {
                copy_item(items, live, index, rest, schema);
            }
        }
        (
            Value::Object(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_),
            Segment::Index(_) | Segment::Field(_),
        ) => {}
    }
}

fn copy_field(
    map: &mut Map<String, Value>,
    live: Option<&Value>,
    name: &str,
    rest: &[Segment],
    schema: Option<Schema<'_>>,
) {
    let live = live.and_then(|live| live.get(name)).filter(|live| !live.is_null());
    let schema = schema.and_then(|schema| schema.known(name));
    match (live, rest.is_empty()) {
        (None, true) => {
            map.remove(name);
        }
        (None, false) => {
            if let Some(child) = map.get_mut(name) {
                copy_place(child, None, rest, schema);
            }
        }
        (Some(live), _) => {
            let empty = if live.is_array() { Value::Array(Vec::new()) } else { Value::Object(Map::new()) };
            let child = map.entry(name.to_owned()).or_insert(empty);
            copy_place(child, Some(live), rest, schema);
        }
    }
}

fn copy_item(
    items: &mut Vec<Value>,
    live: Option<&Value>,
    index: usize,
    rest: &[Segment],
    schema: Option<Schema<'_>>,
) {
    let live_item = live.and_then(|live| live.get(index));
    let (item_schema, keys) = match schema.map(Schema::shape) {
        Some(Shape::List { items, list_type: ListType::Map(keys) }) => (Some(items), Some(keys)),
        Some(Shape::List { items, list_type: ListType::Atomic | ListType::Set }) => (Some(items), None),
        Some(Shape::Any | Shape::Map { .. } | Shape::Scalar(_)) | None => (None, None),
    };
    let at = match (keys, live_item) {
        (Some(keys), Some(live_item)) => items.iter().position(|item| {
            keys.iter().all(|key| item.get(key).is_none_or(|value| Some(value) == live_item.get(key)))
        }),
        _ => Some(index).filter(|index| *index < items.len()),
    };
    match (at.and_then(|at| items.get_mut(at)), live_item) {
        (Some(item), live_item) => copy_place(item, live_item, rest, item_schema),
        (None, Some(live_item)) => items.push(live_item.clone()),
        (None, None) => {}
    }
}
