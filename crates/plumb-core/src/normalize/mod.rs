//! The named rewrites that objects go through before they are compared or applied.

mod apply;
mod keep;
mod keep_ignored;
mod kept;
mod secret;
mod secret_values;

#[cfg(test)]
mod tests;

pub use apply::{manifest_to_apply, unknown_fields};
pub use keep::{keep_live, leave_out};
pub(crate) use keep_ignored::is_item_without_key;
pub use keep_ignored::keep_ignored;
pub use kept::{LAST_APPLIED, is_kept_annotation, is_kept_label, is_kept_metadata};
pub use secret::{Redactor, is_secret, without_sensitive_values};
pub(crate) use secret::{has_mark, respelled_keys};
pub use secret_values::{change_secret_values, has_secret_values, is_copy_annotation};
