//! Questions about a path alone.

use crate::normalize::{is_kept_annotation, is_kept_label};
use crate::object::{FieldPath, Segment};
use crate::tracking::{INSTALLATION_ANNOTATION, TRACKING_ANNOTATION};

/// The last step of a path, if it is a field.
pub(in crate::drift) fn last_field(path: &FieldPath) -> Option<&str> {
    match path.segments().last()? {
        Segment::Field(name) => Some(name),
        Segment::Index(_) => None,
    }
}

/// Does the path consist of exactly these fields?
pub(in crate::drift) fn is_path(path: &FieldPath, fields: &[&str]) -> bool {
    path.segments().len() == fields.len() && is_under(path, fields)
}

/// Does the path start with these fields?
pub(in crate::drift) fn is_under(path: &FieldPath, fields: &[&str]) -> bool {
    let segments = path.segments();
    segments.len() >= fields.len()
        && segments
            .iter()
            .zip(fields)
            .all(|(segment, field)| matches!(segment, Segment::Field(name) if name == field))
}

/// An annotation that says which app the object belongs to.
pub(in crate::drift) fn is_tracking_mark(path: &FieldPath) -> bool {
    is_under(path, &["metadata", "annotations"])
        && last_field(path).is_some_and(|key| key == TRACKING_ANNOTATION || key == INSTALLATION_ANNOTATION)
}

/// Metadata that is not content: tracking marks, and annotations and labels that controllers keep for themselves.
pub(in crate::drift) fn is_bookkeeping(path: &FieldPath) -> bool {
    let Some(key) = last_field(path) else { return false };
    is_tracking_mark(path)
        || (is_under(path, &["metadata", "annotations"]) && is_kept_annotation(key))
        || (is_under(path, &["metadata", "labels"]) && is_kept_label(key))
}

/// The same path for the same field, whatever its positions in lists.
pub(super) fn without_positions(path: &FieldPath) -> FieldPath {
    let segments = path.segments().iter().map(|segment| match segment {
        Segment::Index(_) => Segment::Index(0),
        Segment::Field(_) => segment.clone(),
    });
    FieldPath::from(segments.collect::<Vec<_>>())
}
