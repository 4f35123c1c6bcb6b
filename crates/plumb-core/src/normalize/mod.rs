//! The named rewrites that Git's side goes through before it is compared or applied.

mod apply;

pub use apply::{keep_live, manifest_to_apply};
