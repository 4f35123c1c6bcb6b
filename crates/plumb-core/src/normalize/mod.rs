//! The named rewrites that objects go through before they are compared or applied.

mod apply;
mod kept;
mod secret;

#[cfg(test)]
mod tests;

pub(crate) use apply::is_item_without_key;
pub use apply::{keep_ignored, keep_live, manifest_to_apply, unknown_fields};
pub use kept::{LAST_APPLIED, is_kept_annotation, is_kept_label, is_kept_metadata};
pub(crate) use secret::respelled_keys;
pub use secret::{Redactor, is_secret};
