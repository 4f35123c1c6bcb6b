//! Which app an object belongs to, as the object itself says.
//!
//! The mark is Argo CD's, so that both can work on the same cluster one after the other: an annotation that
//! names app and object, or a label that names the app. This module builds marks, reads them, and tells a
//! mark that means this object from one that a controller copied here from a parent. It knows nothing of
//! owner references: whether an object is somebody's child is the live store's knowledge.

mod tracked_by;
mod id;
mod mark;
mod settings;

#[cfg(test)]
mod tests;

pub use id::{NotATrackingId, TrackingId};
pub use mark::{INSTALLATION_ANNOTATION, LEGACY_LABEL, TRACKING_ANNOTATION, is_crd, mark};
pub use settings::{TrackingMethod, TrackingSettings, UnknownMethod};
pub use tracked_by::{FIELD_MANAGER, Owner, TrackedBy, owner_by_marks, owner_of, tracked_by};
