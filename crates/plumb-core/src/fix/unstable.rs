//! What a chart makes anew in each render: passwords, certificates, the time.

use std::collections::BTreeMap;

use serde_json::Value;

use super::proof::values;
use crate::desired::DesiredSet;
use crate::object::{FieldPath, ObjectKey, Segment};

/// The fields in which two renders of the same files differ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unstable(BTreeMap<ObjectKey, Vec<FieldPath>>);

impl Unstable {
    /// The fields in which these renders differ. An object that only one of them has is not among them.
    pub fn between(one: &DesiredSet, other: &DesiredSet) -> Self {
        let (one, other) = (values(one), values(other));
        let mut fields = BTreeMap::new();
        for (key, value) in &one {
            let Some(again) = other.get(key) else { continue };
            let mut found = Vec::new();
            collect(&FieldPath::root(), value, again, &mut found);
            if !found.is_empty() {
                fields.insert(key.clone(), found);
            }
        }
        Self(fields)
    }

    /// True if both renders are the same.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Makes these fields equal. One that is not there stays away: its removal is no work of the tool.
    pub(super) fn blank(&self, objects: &mut BTreeMap<ObjectKey, Value>) {
        for (key, fields) in &self.0 {
            let Some(object) = objects.get_mut(key) else { continue };
            for field in fields {
                if let Some(value) = find_mut(object, field) {
                    *value = Value::Null;
                }
            }
        }
    }
}

fn collect(place: &FieldPath, one: &Value, other: &Value, found: &mut Vec<FieldPath>) {
    match (one, other) {
        (Value::Object(fields), Value::Object(others)) if fields.keys().eq(others.keys()) => {
            for (name, value) in fields {
                if let Some(again) = others.get(name) {
                    collect(&place.field(name.as_str()), value, again, found);
                }
            }
        }
        (Value::Array(items), Value::Array(others)) if items.len() == others.len() => {
            for (at, (item, again)) in items.iter().zip(others).enumerate() {
                collect(&place.index(at), item, again, found);
            }
        }
        _ if one != other => found.push(place.clone()),
        _ => {}
    }
}

fn find_mut<'value>(value: &'value mut Value, field: &FieldPath) -> Option<&'value mut Value> {
    field.segments().iter().try_fold(value, |value, segment| match segment {
        Segment::Field(name) => value.get_mut(name.as_str()),
        Segment::Index(index) => value.get_mut(*index),
    })
}
