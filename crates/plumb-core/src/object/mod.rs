//! What an object is called, what it contains, and how a place inside it is named.

mod fingerprint;
mod has_all;
mod images;
mod json_patch;
mod key;
mod manifest;
mod merge_patch;
mod path;

pub use fingerprint::Fingerprint;
pub use has_all::has_all;
pub use images::images;
pub use json_patch::{apply_merge_patch, json_patch};
pub use key::{GroupKind, GroupVersionKind, KeyParts, ObjectKey};
pub use manifest::{Manifest, NotAnObject};
pub use merge_patch::merge_patch;
pub use path::{FieldPath, Segment};
