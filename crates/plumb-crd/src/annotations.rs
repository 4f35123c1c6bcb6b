//! Annotations of Applications that more than one crate uses.

/// When a user last approved the deletion of objects that need confirmation, as a time.
pub const DELETION_APPROVED: &str = "argocd.argoproj.io/deletion-approved";

/// Requests a refresh of an Application (`normal` or `hard`) or of a cluster. The engine removes it when it is done.
pub const REFRESH: &str = "argocd.argoproj.io/refresh";

/// Identifies a refresh request, so that a newer one is not removed with an older one.
pub const REFRESH_TIMESTAMP: &str = "argocd.argoproj.io/refresh-timestamp";

/// Prefix of annotations that name a link to show beside an object.
pub const LINK_PREFIX: &str = "link.argocd.argoproj.io/";
