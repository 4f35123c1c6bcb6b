//! What one state of a repository changes against another: which objects come, go and change, and what that does in the
//! cluster: data that is lost, pods that restart, fields that the API server refuses to change.
//!
//! `between` decides, `text`, `markdown` and `data` print. Nothing here reads Git.

mod object_change;
mod immutable;
mod restart;
mod fields;
mod unstable;
mod between;
mod summary;
mod formats;

#[cfg(test)]
mod tests;

pub use between::{AppState, RepositoryChange, between};
pub use formats::{data, markdown, text};
pub use object_change::{FieldChange, ObjectChange, Outcome};
pub use summary::Summary;
pub use unstable::unstable_fields;
