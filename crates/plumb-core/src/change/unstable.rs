//! Values that differ in each render of the same files. They are no change of Git.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::desired::DesiredSet;
use crate::object::{FieldPath, ObjectKey, Segment};

/// The fields in which a second render of the same files differs, by object; the root for an object that the second
/// render does not have.
pub fn unstable_fields(first: &DesiredSet, second: &DesiredSet) -> BTreeMap<ObjectKey, Vec<FieldPath>> {
    let objects = first.objects.iter().filter_map(|(key, object)| {
        let fields = match second.objects.get(key) {
            Some(again) => differing(object.manifest.value(), again.manifest.value()),
            None => vec![FieldPath::root()],
        };
        (!fields.is_empty()).then(|| (key.clone(), fields))
    });
    objects.collect()
}

/// Is a place one of these, or inside one? The API server keeps `stringData` as `data`.
pub(super) fn covers(unstable: &[FieldPath], place: &FieldPath) -> bool {
    let folded = |path: &FieldPath| match path.segments().split_first() {
        Some((Segment::Field(name), rest)) if name == "stringData" => {
            let mut folded = FieldPath::root().field("data");
            for segment in rest {
                folded.push(segment.clone());
            }
            folded
        }
        _ => path.clone(),
    };
    unstable.iter().any(|path| place.starts_with(&folded(path)))
}

/// The innermost places in which two values differ.
fn differing(one: &Value, other: &Value) -> Vec<FieldPath> {
    let mut found = Vec::new();
    walk(one, other, &FieldPath::root(), &mut found);
    found
}

fn walk(one: &Value, other: &Value, path: &FieldPath, found: &mut Vec<FieldPath>) {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            for (name, value) in one {
                match other.get(name) {
                    Some(again) => walk(value, again, &path.field(name.as_str()), found),
                    None => found.push(path.field(name.as_str())),
                }
            }
            let added = other.keys().filter(|name| !one.contains_key(*name));
            found.extend(added.map(|name| path.field(name.as_str())));
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            let both = one.iter().zip(other).enumerate();
            both.for_each(|(index, (one, other))| walk(one, other, &path.index(index), found));
        }
        (one, other) if one == other => {}
        _ => found.push(path.clone()),
    }
}
