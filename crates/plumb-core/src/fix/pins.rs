//! Setting in Git what the API server fills in, so that a later change of it shows.

use crate::object::{FieldPath, Manifest, Segment};
use crate::schema::is_allocated_field;
use crate::yaml::Operation;

use super::git_path::git_path;

/// The operations that set fields to their live values, and the fields for which there is none: those
/// in list items that Git does not have, and those whose value the cluster chooses for each object.
pub(super) fn pins(
    fields: &[FieldPath],
    desired: &Manifest,
    live: &Manifest,
) -> (Vec<Operation>, Vec<FieldPath>) {
    let (mut operations, mut left) = (Vec::new(), Vec::new());
    for field in fields {
        let is_chosen = match field.segments().last() {
            Some(Segment::Field(name)) => is_allocated_field(name),
            Some(Segment::Index(_)) | None => false,
        };
        let value = field.find(live.value()).filter(|_| !is_chosen);
        match (value, git_path(desired.value(), live.value(), field)) {
            (Some(value), Some(path)) if path.find(desired.value()).is_none() => {
                operations.push(Operation::Set { path, value: value.clone() });
            }
            _ => left.push(field.clone()),
        }
    }
    (operations, left)
}
