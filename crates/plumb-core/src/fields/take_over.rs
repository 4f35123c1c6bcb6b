//! Ownership that has to move before an apply can remove something.
//!
//! A server-side apply removes only what its own manager owns. Fields of an earlier client-side apply,
//! fields that another writer set in a list item whose key was edited, and defaults that Git's new choice forbids
//! stay, unless the ownership record is rewritten first. That rewrite is one JSON patch of `metadata.managedFields`, which changes
//! no field of the object itself.

use serde_json::{Map, Value, json};

use super::Entry;
use crate::object::{FieldPath, Manifest, Segment};
use crate::schema::{ListType, Schema, Shape};
use crate::tracking::FIELD_MANAGER;

/// What is to be taken over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TakeOver {
    /// Places of the live object that become owned by plumb alone.
    pub places: Vec<FieldPath>,
    /// Are entries of earlier client-side applies removed? Other fields that they own lose their owner.
    pub end_client_side_apply: bool,
}

/// The `metadata.managedFields` to write before the apply; `None` if nothing has to move.
pub fn take_over(live: &Manifest, schema: Option<Schema<'_>>, what: &TakeOver) -> Option<Value> {
    let before = live.value().get("metadata")?.get("managedFields")?.as_array()?;
    let mut ours: Option<Value> = None;
    let mut others: Vec<Value> = Vec::new();
    for value in before {
        let entry = Entry::read(value);
        match entry {
            Some(entry) if entry.is_ours() => ours = Some(value.clone()),
            Some(entry) if entry.is_client_side_apply() && what.end_client_side_apply => {}
            Some(entry) if entry.subresource == Some("status") => others.push(value.clone()),
            Some(_) => others.extend(without_places(value, live.value(), &what.places)),
            None => others.push(value.clone()),
        }
    }
    let mut ours = ours.unwrap_or_else(|| {
        json!({
            "manager": FIELD_MANAGER, "operation": "Apply", "apiVersion": live.api_version(),
            "fieldsType": "FieldsV1", "fieldsV1": {},
        })
    });
    if let Some(Value::Object(fields)) = ours.get_mut("fieldsV1") {
        for place in &what.places {
            add_place(fields, live.value(), schema, place.segments());
        }
        if fields.is_empty() {
            return None;
        }
    }
    let mut after = vec![ours];
    after.append(&mut others);
    let after = Value::Array(after);
    (after.as_array() != Some(before)).then_some(after)
}

/// The entry without these places; `None` if nothing is left of it.
fn without_places(entry: &Value, live: &Value, places: &[FieldPath]) -> Option<Value> {
    let mut entry = entry.clone();
    if let Some(Value::Object(fields)) = entry.get_mut("fieldsV1") {
        for place in places {
            remove_place(fields, live, place.segments());
        }
        if fields.is_empty() {
            return None;
        }
    }
    Some(entry)
}

/// Removes a place, and what becomes empty above it. An atomic owner above the place is left alone.
fn remove_place(fields: &mut Map<String, Value>, live: &Value, place: &[Segment]) {
    let Some((segment, rest)) = place.split_first() else { return };
    let (Some(element), Some(value)) = (existing_element(fields, live, segment), step(live, segment)) else {
        return;
    };
    if rest.is_empty() {
        fields.remove(&element);
        return;
    }
    let Some(Value::Object(child)) = fields.get_mut(&element) else { return };
    if child.is_empty() {
        return;
    }
    remove_place(child, value, rest);
    if child.is_empty() {
        fields.remove(&element);
    }
}

/// Adds a place with everything that `live` has there.
fn add_place(fields: &mut Map<String, Value>, live: &Value, schema: Option<Schema<'_>>, place: &[Segment]) {
    let Some((segment, rest)) = place.split_first() else {
        add_leaves(fields, live, schema);
        return;
    };
    let Some(value) = step(live, segment) else { return };
    let element = existing_element(fields, live, segment).or_else(|| new_element(live, segment, schema));
    let Some(element) = element else { return };
    let is_new = !fields.contains_key(&element);
    let child = fields.entry(element).or_insert_with(|| Value::Object(Map::new()));
    let Value::Object(child) = child else { return };
    // An atomic place that is ours already covers what is inside.
    if !is_new && child.is_empty() {
        return;
    }
    add_place(child, value, child_schema(schema, segment), rest);
}

/// All fields below: a map or keyed list by its parts, anything else as one leaf.
fn add_leaves(fields: &mut Map<String, Value>, live: &Value, schema: Option<Schema<'_>>) {
    let is_atomic_map = matches!(schema.map(Schema::shape), Some(Shape::Map { atomic: true }));
    match live {
        Value::Object(map) if !is_atomic_map => {
            fields.insert(".".to_owned(), json!({}));
            for (name, value) in map {
                let segment = Segment::Field(name.into());
                let child = fields.entry(format!("f:{name}")).or_insert_with(|| json!({}));
                if let Value::Object(child) = child {
                    let schema = child_schema(schema, &segment);
                    if matches!(value, Value::Object(_)) {
                        add_leaves(child, value, schema);
                        child.remove(".");
                    } else if is_keyed(schema) {
                        add_leaves(child, value, schema);
                    }
                }
            }
        }
        Value::Array(items) if is_keyed(schema) => {
            for index in 0..items.len() {
                add_place(fields, live, schema, &[Segment::Index(index)]);
            }
        }
        Value::Object(_)
        | Value::Array(_)
        | Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_) => {}
    }
}

fn is_keyed(schema: Option<Schema<'_>>) -> bool {
    matches!(schema.map(Schema::shape), Some(Shape::List { list_type: ListType::Map(_), .. }))
}

fn step<'a>(value: &'a Value, segment: &Segment) -> Option<&'a Value> {
    match segment {
        Segment::Field(name) => value.get(name.as_str()),
        Segment::Index(index) => value.get(*index),
    }
}

fn child_schema<'a>(schema: Option<Schema<'a>>, segment: &Segment) -> Option<Schema<'a>> {
    match (schema?.shape(), segment) {
        (Shape::List { items, .. }, Segment::Index(_)) => Some(items),
        (_, Segment::Field(name)) => schema?.known(name),
        (_, Segment::Index(_)) => None,
    }
}

/// The element by which `fields` already names this place.
fn existing_element(fields: &Map<String, Value>, live: &Value, segment: &Segment) -> Option<String> {
    match segment {
        Segment::Field(name) => Some(format!("f:{name}")).filter(|element| fields.contains_key(element)),
        Segment::Index(index) => {
            let item = live.get(*index)?;
            match element_like_first(fields, item) {
                Some(element) => Some(element).filter(|element| fields.contains_key(element)),
                None => {
                    fields.keys().find(|element| super::owners::element_is(element, item, *index)).cloned()
                }
            }
        }
    }
}

/// The element of an item with the same keys as the first element of the list has. All elements of a list have the same
/// keys, so a long list is not searched for each of its items. `None` if the item lacks one of them: it may have its
/// default.
fn element_like_first(fields: &Map<String, Value>, item: &Value) -> Option<String> {
    let keys = fields.keys().find_map(|element| element.strip_prefix("k:"))?;
    let Ok(Value::Object(mut keys)) = serde_json::from_str::<Value>(keys) else { return None };
    for (name, key) in &mut keys {
        *key = item.get(name)?.clone();
    }
    Some(format!("k:{}", Value::Object(keys)))
}

/// The element by which the server would name this place; `None` inside lists that have no keys.
fn new_element(live: &Value, segment: &Segment, schema: Option<Schema<'_>>) -> Option<String> {
    match segment {
        Segment::Field(name) => Some(format!("f:{name}")),
        Segment::Index(index) => {
            let item = live.get(*index)?;
            match schema?.shape() {
                Shape::List { list_type: ListType::Map(keys), .. } => {
                    let keys: Map<String, Value> = keys
                        .iter()
                        .filter_map(|name| Some((name.clone(), item.get(name)?.clone())))
                        .collect();
                    Some(format!("k:{}", Value::Object(keys)))
                }
                Shape::List { list_type: ListType::Set, .. } => Some(format!("v:{item}")),
                Shape::List { list_type: ListType::Atomic, .. }
                | Shape::Any
                | Shape::Map { .. }
                | Shape::Scalar(_) => None,
            }
        }
    }
}
