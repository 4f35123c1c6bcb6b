//! The same place in another copy of an object.

use serde_json::Value;

use super::item_keys::KeyFields;
use crate::object::{FieldPath, Segment};
use crate::schema::{ListType, Schema, Shape};

/// Where `to` has the place that `from` has here: items of keyed lists may have another index. `None` where `to` has no such
/// item; a field that it lacks has its place all the same.
pub(crate) fn twin(
    place: &FieldPath,
    from: &Value,
    to: &Value,
    schema: Option<Schema<'_>>,
) -> Option<FieldPath> {
    let (mut from, mut to, mut schema) = (Some(from), Some(to), schema);
    let mut found = FieldPath::root();
    for segment in place.segments() {
        let items = match schema.map(Schema::shape) {
            Some(Shape::List { items, list_type: ListType::Map(keys) }) => Some((items, keys)),
            _ => None,
        };
        match (segment, items) {
            (Segment::Index(index), Some((items, keys))) => {
                let item = from.and_then(|from| from.get(*index))?;
                let others = to.and_then(Value::as_array)?;
                let fields = KeyFields::of(keys, items);
                let key = fields.key(item);
                let is_it = |other: &Value| fields.key(other) == key;
                // Most lists are in the same order.
                let guess = others.get(*index).is_some_and(is_it).then_some(*index);
                let at = guess.or_else(|| others.iter().position(is_it))?;
                found.push(Segment::Index(at));
                (from, to, schema) = (Some(item), others.get(at), Some(items));
            }
            (Segment::Index(index), None) => {
                found.push(segment.clone());
                from = from.and_then(|from| from.get(*index));
                to = to.and_then(|to| to.get(*index));
                schema = match schema.map(Schema::shape) {
                    Some(Shape::List { items, .. }) => Some(items),
                    _ => None,
                };
            }
            (Segment::Field(name), _) => {
                found.push(segment.clone());
                from = from.and_then(|from| from.get(name.as_str()));
                to = to.and_then(|to| to.get(name.as_str()));
                schema = schema.and_then(|schema| schema.known(name));
            }
        }
    }
    Some(found)
}
