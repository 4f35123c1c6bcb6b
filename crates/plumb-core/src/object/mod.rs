//! What an object is called, what it contains, and how a place inside it is named.

mod has_all;
mod key;
mod manifest;
mod path;

pub use has_all::has_all;
pub use key::{GroupKind, GroupVersionKind, KeyParts, ObjectKey};
pub use manifest::{Manifest, NotAnObject};
pub use path::{FieldPath, Segment};
