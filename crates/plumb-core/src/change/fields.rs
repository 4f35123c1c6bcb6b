//! The fields in which two states of an object differ.

use serde_json::Value;

use super::FieldChange;
use crate::compare::{Aside, compare};
use crate::normalize::{Redactor, manifest_to_apply};
use crate::object::{FieldPath, Manifest};
use crate::schema::SchemaSet;
use crate::tracking::{LEGACY_LABEL, TRACKING_ANNOTATION};

/// The changes from the old to the new object. Two spellings of one value are no change, as far as the schema says so.
/// Values of Secrets, of their annotations and of sensitive fields are replaced by marks first.
pub(super) fn changed(old: &Manifest, new: &Manifest, schemas: &SchemaSet) -> Vec<FieldChange> {
    let mut redactor = Redactor::default();
    let mut plain = |object: &Manifest| {
        let applied = manifest_to_apply(object, schemas);
        let redacted = redactor.redact_with_annotations(&applied);
        redactor.redact_fields(&redacted, schemas)
    };
    let (old, new) = (plain(old), plain(new));
    let comparison = compare(&new, &old, schemas.kind(&new.gvk()), Aside { status: true });
    let differences = comparison.differences.iter().map(|difference| FieldChange {
        path: difference.desired_path.clone(),
        from: difference.live.cloned(),
        to: difference.desired.cloned(),
    });
    let removed = comparison.additions.iter().map(|addition| FieldChange {
        path: addition.path.clone(),
        from: Some(addition.live.clone()),
        to: None,
    });
    let mut changes: Vec<FieldChange> = differences.chain(removed).collect();
    if old.api_version() != new.api_version() {
        changes.push(FieldChange {
            path: FieldPath::root().field("apiVersion"),
            from: Some(Value::from(old.api_version())),
            to: Some(Value::from(new.api_version())),
        });
    }
    changes.retain(|change| !is_mark(&change.path));
    changes.sort_by(|one, other| one.path.cmp(&other.path));
    changes
}

/// The tracking mark names the app, and says nothing about the object.
fn is_mark(path: &FieldPath) -> bool {
    let metadata = FieldPath::root().field("metadata");
    *path == metadata.field("annotations").field(TRACKING_ANNOTATION)
        || *path == metadata.field("labels").field(LEGACY_LABEL)
}
