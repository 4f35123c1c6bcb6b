//! Which app an object belongs to, according to its mark.
//!
//! The mark is Argo CD's, so that both can work on the same cluster one after the other: an annotation that
//! names app and object, or a label that names the app. This module builds and reads marks, and
//! recognises a mark that a controller copied from a parent. It does not use owner references: parents and children
//! are known to the live store.

mod tracked_by;
mod adopt;
mod by_marks;
mod id;
mod mark;
mod provenance;
mod settings;

#[cfg(test)]
mod tests;

pub use adopt::{Adoption, adoption};
pub use by_marks::{installation_by_marks, method_by_marks};
pub use id::{NotATrackingId, TrackingId};
pub use mark::{
    ADOPTED_ANNOTATION, INSTALLATION_ANNOTATION, LEGACY_LABEL, TRACKING_ANNOTATION, is_crd, mark,
};
pub use provenance::{Provenance, RecordedObjects, StatusEntry};
pub use settings::{TrackingMethod, TrackingSettings, UnknownMethod};
pub use tracked_by::{FIELD_MANAGER, Owner, TrackedBy, is_our_manager, owner_by_marks, owner_of, tracked_by};
