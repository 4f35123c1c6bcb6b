//! The Application after validation.

use super::{AppId, CompareOptions, Destination, IgnoreRule, Pause, Source, SyncPolicy};

/// A validated Application. What could not be understood was reported when it was converted, so that the
/// rest of plumb never asks "is this set?" twice.
#[derive(Clone, Debug, PartialEq)]
pub struct App {
    /// Name and namespace of the Application object.
    pub id: AppId,
    /// `metadata.uid`.
    pub uid: String,
    /// `metadata.generation`, to tell one state of the spec from another.
    pub generation: i64,
    /// The project, `default` if none is named.
    pub project: String,
    /// Where the manifests come from, never empty, in order.
    pub sources: Vec<Source>,
    /// Was it written as `spec.source` (one) or `spec.sources` (many)? Status is written back in the same shape.
    pub multi_source: bool,
    /// Where they go.
    pub destination: Destination,
    /// When and how syncs happen.
    pub sync_policy: SyncPolicy,
    /// Differences that do not count for this app.
    pub ignore_differences: Vec<IgnoreRule>,
    /// How many entries `status.history` keeps.
    pub revision_history_limit: usize,
    /// Compare options of the Application's annotation.
    pub compare_options: CompareOptions,
    /// Is reconciling switched off by annotation?
    pub skip_reconcile: bool,
    /// Held by a person, if at all.
    pub pause: Option<Pause>,
    /// `metadata.annotations`, for the features that read their own key.
    pub annotations: std::collections::BTreeMap<String, String>,
}
