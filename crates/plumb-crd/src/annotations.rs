//! Annotations of Applications that more than one crate uses.

/// When a user last approved the deletion of objects that need confirmation, as a time.
pub const DELETION_APPROVED: &str = "argocd.argoproj.io/deletion-approved";
