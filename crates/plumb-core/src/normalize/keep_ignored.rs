//! What an apply leaves to others because a rule ignores it (`RespectIgnoreDifferences`).

use std::collections::BTreeSet;

use serde_json::Value;

use super::keep::{copy_place, take_value};
use crate::fields::Owners;
use crate::ignore::Ignored;
use crate::object::{FieldPath, Manifest, Segment};
use crate::schema::{ListType, Schema, SchemaSet, Shape};

/// A copy of `desired` in which what the rules ignore, on either side, is as in `live`, and so is what belongs to
/// managers whose fields they ignore.
///
/// A whole item of a list without keys has no place of its own: Git's ignored items go, and the live ones come in where
/// they are. Nothing of Git's that is not ignored gives way to them.
pub fn keep_ignored(desired: &Manifest, live: &Manifest, ignored: &Ignored, schemas: &SchemaSet) -> Manifest {
    let schema = schemas.kind(&desired.gvk()).map(|kind| kind.root);
    let is_item = |place: &&FieldPath| is_item_without_key(place, live.value(), schema);
    let (items, mut places): (Vec<&FieldPath>, Vec<&FieldPath>) = ignored.live.iter().partition(is_item);
    let mut value = desired.value().clone();
    let gone = ignored.desired.iter().filter(|place| is_item_without_key(place, desired.value(), schema));
    // Several rules may name one item, in either spelling, and each item goes and comes once.
    let gone: BTreeSet<(FieldPath, usize)> = gone.filter_map(list_and_position).collect();
    for (list, index) in gone.into_iter().rev() {
        if let Some(list) = list_at(&mut value, &list).filter(|list| index < list.len()) {
            list.remove(index);
        }
    }
    let items: BTreeSet<(FieldPath, usize)> = items.into_iter().filter_map(list_and_position).collect();
    for (list, index) in items {
        let item = list.find(live.value()).and_then(|list| list.get(index));
        if let (Some(list), Some(item)) = (list_at(&mut value, &list), item) {
            list.insert(index.min(list.len()), item.clone());
        }
    }
    let mut owned = Vec::new();
    if !ignored.managers.is_empty() {
        let owners = Owners::of(live);
        let is_theirs = |place: &FieldPath| {
            owners.of_place(place).any(|entry| ignored.managers.iter().any(|name| name == entry.manager))
        };
        note_owned(desired.value(), live.value(), schema, &mut FieldPath::root(), &is_theirs, &mut owned);
    }
    places.extend(&owned);
    for place in places {
        copy_place(&mut value, Some(live.value()), place.segments(), schema, take_value);
    }
    Manifest::new(value).unwrap_or_else(|_| desired.clone())
}

/// Is it a whole item of a list that has no keys, and that is not inside another list? A pointer's digits may name it.
pub(crate) fn is_item_without_key(place: &FieldPath, object: &Value, schema: Option<Schema<'_>>) -> bool {
    let Some((last, parents)) = place.segments().split_last() else { return false };
    let mut schema = schema;
    for segment in parents {
        let Segment::Field(name) = segment else { return false };
        schema = schema.and_then(|schema| schema.known(name));
    }
    let is_list = FieldPath::from(parents.to_vec()).find(object).is_some_and(Value::is_array);
    let has_keys = matches!(schema.map(Schema::shape), Some(Shape::List { list_type: ListType::Map(_), .. }));
    is_list && !has_keys && index_of(last).is_some()
}

fn index_of(segment: &Segment) -> Option<usize> {
    match segment {
        Segment::Index(index) => Some(*index),
        Segment::Field(digits) => digits.parse().ok(),
    }
}

fn list_and_position(item: &FieldPath) -> Option<(FieldPath, usize)> {
    Some((item.parent()?, index_of(item.segments().last()?)?))
}

fn list_at<'v>(value: &'v mut Value, list: &FieldPath) -> Option<&'v mut Vec<Value>> {
    let list = list.segments().iter().try_fold(value, |value, segment| match segment {
        Segment::Field(name) => value.get_mut(name.as_str()),
        Segment::Index(_) => None,
    });
    list?.as_array_mut()
}

/// Places of the live object that differ from Git's and belong to one of these managers.
fn note_owned(
    desired: &Value,
    live: &Value,
    schema: Option<Schema<'_>>,
    path: &mut FieldPath,
    is_theirs: &dyn Fn(&FieldPath) -> bool,
    owned: &mut Vec<FieldPath>,
) {
    match (desired, live, schema.map(Schema::shape)) {
        (Value::Object(desired), Value::Object(live), _) => {
            for (name, desired) in desired {
                let Some(live) = live.get(name) else { continue };
                let schema = schema.and_then(|schema| schema.known(name));
                path.push(Segment::Field(name.into()));
                note_owned(desired, live, schema, path, is_theirs, owned);
                path.pop();
            }
        }
        (
            Value::Array(desired),
            Value::Array(live),
            Some(Shape::List { items, list_type: ListType::Map(keys) }),
        ) => {
            for (index, live) in live.iter().enumerate() {
                let is_same = |item: &&Value| keys.iter().all(|key| item.get(key) == live.get(key));
                let Some(desired) = desired.iter().find(is_same) else { continue };
                path.push(Segment::Index(index));
                note_owned(desired, live, Some(items), path, is_theirs, owned);
                path.pop();
            }
        }
        (desired, live, _) => {
            if desired != live && is_theirs(path) {
                owned.push(path.clone());
            }
        }
    }
}
