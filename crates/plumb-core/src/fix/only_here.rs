//! What is lost with the copy of an object that one app gives up.

use serde_json::Value;

use crate::object::{FieldPath, Manifest, Segment};
use crate::tracking::{INSTALLATION_ANNOTATION, LEGACY_LABEL, TRACKING_ANNOTATION};

/// Most fields that are named.
const MAX_FIELDS: usize = 10;
/// The label that Argo CD marks objects with by default.
const INSTANCE_LABEL: &str = "app.kubernetes.io/instance";

/// The fields that this copy sets and the other one does not set like this, in words; `None` if there are none. Values are
/// not named: the object may be a Secret.
pub(super) fn only_here(copy: &Manifest, kept: &Manifest) -> Option<String> {
    let mut fields = Vec::new();
    collect(&FieldPath::root(), copy.value(), Some(kept.value()), &mut fields);
    let names: Vec<String> = fields.iter().take(MAX_FIELDS).map(ToString::to_string).collect();
    let more = if fields.len() > MAX_FIELDS {
        format!(" and {} more fields", fields.len() - MAX_FIELDS)
    } else {
        String::new()
    };
    (!names.is_empty()).then(|| format!("only in this copy: {}{more}", names.join(", ")))
}

/// A list is one value: which of its items belong together is not known.
fn collect(place: &FieldPath, copy: &Value, kept: Option<&Value>, found: &mut Vec<FieldPath>) {
    if kept == Some(copy) || is_mark(place) {
        return;
    }
    match (copy, kept) {
        (Value::Object(fields), None | Some(Value::Object(_))) => {
            for (name, value) in fields {
                let other = kept.and_then(|kept| kept.get(name));
                collect(&place.field(name.as_str()), value, other, found);
            }
        }
        _ => found.push(place.clone()),
    }
}

/// Each app marks its own copy.
fn is_mark(place: &FieldPath) -> bool {
    match place.segments().last() {
        Some(Segment::Field(name)) => {
            [TRACKING_ANNOTATION, INSTALLATION_ANNOTATION, LEGACY_LABEL, INSTANCE_LABEL]
                .iter()
                .any(|mark| name == mark)
        }
        Some(Segment::Index(_)) | None => false,
    }
}
