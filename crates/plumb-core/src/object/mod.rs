//! What an object is called, what it contains, and how a place inside it is named.

mod key;
mod manifest;
mod path;

pub use key::{GroupKind, GroupVersionKind, KeyParts, ObjectKey};
pub use manifest::{Manifest, NotAnObject};
pub use path::{FieldPath, Segment};
