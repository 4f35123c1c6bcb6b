//! Fields that an apply keeps as they are in the cluster.

use serde_json::{Map, Value};

use crate::object::{FieldPath, Manifest, Segment};
use crate::schema::{ListType, Schema, SchemaSet, Shape};

/// A copy of `desired` in which these places of the live object have what `live` has there, or are absent, as
/// in `live`. Used for fields that a controller or each render sets to a new value.
///
/// Of a list with keys, and of a set, only the order is kept: its items belong to the client that applied them, and plumb must not
/// become an owner of the items of others.
pub fn keep_live(desired: &Manifest, live: &Manifest, places: &[FieldPath], schemas: &SchemaSet) -> Manifest {
    let schema = schemas.kind(&desired.gvk()).map(|kind| kind.root);
    let mut value = desired.value().clone();
    for place in places {
        copy_place(&mut value, Some(live.value()), place.segments(), schema, take_value_or_order);
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

/// What becomes of Git's value at the place itself, given the live value and the schema.
type Take = fn(&mut Value, &Value, Option<Schema<'_>>);

/// The live value.
pub(super) fn take_value(desired: &mut Value, live: &Value, _: Option<Schema<'_>>) {
    desired.clone_from(live);
}

/// The live value; of a list with keys and of a set only the live order.
fn take_value_or_order(desired: &mut Value, live: &Value, schema: Option<Schema<'_>>) {
    let list_type = match schema.map(Schema::shape) {
        Some(Shape::List { list_type, .. }) => Some(list_type),
        Some(Shape::Any | Shape::Map { .. } | Shape::Scalar(_)) | None => None,
    };
    match (desired, live, list_type) {
        (Value::Array(items), Value::Array(live), Some(ListType::Map(keys))) => {
            order_as(items, live, |item, found| has_keys_of(item, found, keys));
        }
        (Value::Array(items), Value::Array(live), Some(ListType::Set)) => {
            order_as(items, live, |item, found| item == found);
        }
        (desired, live, _) => desired.clone_from(live),
    }
}

/// Puts the items in the order of their live twins; those without one come last.
fn order_as(items: &mut [Value], live: &[Value], is_twin: impl Fn(&Value, &Value) -> bool) {
    let position = |item: &Value| live.iter().position(|found| is_twin(item, found)).unwrap_or(live.len());
    items.sort_by_cached_key(position);
}

/// Is it the item with these keys? A key that Git leaves out may be any.
fn has_keys_of(item: &Value, live: &Value, keys: &[String]) -> bool {
    keys.iter().all(|key| item.get(key).is_none_or(|value| Some(value) == live.get(key)))
}

/// Gives `desired` at `place` what `live` has there.
pub(super) fn copy_place(
    desired: &mut Value,
    live: Option<&Value>,
    place: &[Segment],
    schema: Option<Schema<'_>>,
    take: Take,
) {
    let Some((segment, rest)) = place.split_first() else {
        if let Some(live) = live {
            take(desired, live, schema);
        }
        return;
    };
    match (desired, segment) {
        (Value::Object(map), Segment::Field(name)) => copy_field(map, live, name, rest, schema, take),
        (Value::Array(items), Segment::Index(index)) => copy_item(items, live, *index, rest, schema, take),
        // A JSON pointer writes an index as digits.
        (Value::Array(items), Segment::Field(digits)) => {
            if let Ok(index) = digits.parse() {
                copy_item(items, live, index, rest, schema, take);
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
    take: Take,
) {
    let live = live.and_then(|live| live.get(name)).filter(|live| !live.is_null());
    let schema = schema.and_then(|schema| schema.known(name));
    match (live, rest.is_empty()) {
        (None, true) => {
            map.remove(name);
        }
        (None, false) => {
            if let Some(child) = map.get_mut(name) {
                copy_place(child, None, rest, schema, take);
            }
        }
        (Some(live), _) => {
            let empty = if live.is_array() { Value::Array(Vec::new()) } else { Value::Object(Map::new()) };
            let is_absent = !map.contains_key(name);
            let child = map.entry(name.to_owned()).or_insert(empty);
            // There is no order to keep of what Git does not have.
            let take = if is_absent { take_value } else { take };
            copy_place(child, Some(live), rest, schema, take);
        }
    }
}

fn copy_item(
    items: &mut Vec<Value>,
    live: Option<&Value>,
    index: usize,
    rest: &[Segment],
    schema: Option<Schema<'_>>,
    take: Take,
) {
    let live_item = live.and_then(|live| live.get(index));
    let (item_schema, keys) = match schema.map(Schema::shape) {
        Some(Shape::List { items, list_type: ListType::Map(keys) }) => (Some(items), Some(keys)),
        Some(Shape::List { items, list_type: ListType::Atomic | ListType::Set }) => (Some(items), None),
        Some(Shape::Any | Shape::Map { .. } | Shape::Scalar(_)) | None => (None, None),
    };
    let at = match (keys, live_item) {
        (Some(keys), Some(live_item)) => items.iter().position(|item| has_keys_of(item, live_item, keys)),
        _ => Some(index).filter(|index| *index < items.len()),
    };
    match (at.and_then(|at| items.get_mut(at)), live_item) {
        (Some(item), live_item) => copy_place(item, live_item, rest, item_schema, take),
        (None, Some(live_item)) => items.push(live_item.clone()),
        (None, None) => {}
    }
}
