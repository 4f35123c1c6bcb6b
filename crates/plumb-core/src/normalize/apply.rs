//! What is sent to the server.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::kept::{is_kept_annotation, is_kept_metadata};
use super::secret::{fold_string_data, is_secret};
use crate::fields::Owners;
use crate::ignore::Ignored;
use crate::object::{FieldPath, Manifest, Segment};
use crate::schema::{Field, ListType, Schema, SchemaSet, Shape};

/// What to apply (and to dry-run) for a desired object: nulls dropped, `stringData` folded into `data`, base64
/// unwrapped, server-kept metadata and annotations left out, `status` too where it is a subresource.
///
/// Fields that the schema does not have are left out as well: a server-side apply that contains one is refused
/// as a whole, whatever `fieldValidation` says. Who wants to refuse the object (`Validate=true`) asks
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

/// A copy of `desired` in which these places of the live object have what `live` has there, or are absent, as
/// in `live`. Used for `RespectIgnoreDifferences`, and for fields that a controller or a render makes anew.
pub fn keep_live(desired: &Manifest, live: &Manifest, places: &[FieldPath], schemas: &SchemaSet) -> Manifest {
    let schema = schemas.kind(&desired.gvk()).map(|kind| kind.root);
    let mut value = desired.value().clone();
    for place in places {
        copy_place(&mut value, Some(live.value()), place.segments(), schema);
    }
    Manifest::new(value).unwrap_or_else(|_| desired.clone())
}

/// The same for what the rules ignore, on either side, and for what belongs to managers whose fields they ignore.
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
        copy_place(&mut value, Some(live.value()), place.segments(), schema);
    }
    Manifest::new(value).unwrap_or_else(|_| desired.clone())
}

/// Is it a whole item of a list that has no keys, and that stands in no other list? A pointer's digits may name it.
pub(crate) fn is_item_without_key(place: &FieldPath, object: &Value, schema: Option<Schema<'_>>) -> bool {
    let Some((last, parents)) = place.segments().split_last() else { return false };
    let mut schema = schema;
    for segment in parents {
        let Segment::Field(name) = segment else { return false };
        schema = schema.and_then(|schema| match schema.field(name) {
            Field::Known(schema) => Some(schema),
            Field::Open | Field::Unknown => None,
        });
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

/// Places of the live object that differ from Git's and are somebody's.
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
                let schema = schema.and_then(|schema| match schema.field(name) {
                    Field::Known(schema) => Some(schema),
                    Field::Open | Field::Unknown => None,
                });
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

fn copy_place(desired: &mut Value, live: Option<&Value>, place: &[Segment], schema: Option<Schema<'_>>) {
    let Some((segment, rest)) = place.split_first() else {
        if let Some(live) = live {
            desired.clone_from(live);
        }
        return;
    };
    match (desired, segment) {
        (Value::Object(map), Segment::Field(name)) => {
            let live = live.and_then(|live| live.get(name.as_str())).filter(|live| !live.is_null());
            let schema = schema.and_then(|schema| match schema.field(name) {
                Field::Known(schema) => Some(schema),
                Field::Open | Field::Unknown => None,
            });
            match (live, rest.is_empty()) {
                (None, true) => {
                    map.remove(name.as_str());
                }
                (None, false) => {
                    if let Some(child) = map.get_mut(name.as_str()) {
                        copy_place(child, None, rest, schema);
                    }
                }
                (Some(live), _) => {
                    let empty =
                        if live.is_array() { Value::Array(Vec::new()) } else { Value::Object(Map::new()) };
                    let child = map.entry(name.clone()).or_insert(empty);
                    copy_place(child, Some(live), rest, schema);
                }
            }
        }
        (Value::Array(items), segment) => {
            let index = match segment {
                Segment::Index(index) => Some(*index),
                Segment::Field(digits) => digits.parse().ok(),
            };
            let Some(index) = index else { return };
            let live_item = live.and_then(|live| live.get(index));
            let (item_schema, keys) = match schema.map(Schema::shape) {
                Some(Shape::List { items, list_type: ListType::Map(keys) }) => (Some(items), Some(keys)),
                Some(Shape::List { items, list_type: ListType::Atomic | ListType::Set }) => {
                    (Some(items), None)
                }
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
        (
            Value::Object(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_),
            Segment::Index(_) | Segment::Field(_),
        ) => {}
    }
}
