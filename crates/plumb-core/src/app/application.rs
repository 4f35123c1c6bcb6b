//! The Application after validation.

use crate::object::ObjectKey;

use super::{AppId, CompareOptions, Destination, IgnoreRule, Pause, PausedObjects, Source, SyncPolicy};

/// A validated Application. Invalid input was reported during conversion, so the rest of plumb does not
/// validate again.
#[derive(Clone, Debug, PartialEq)]
pub struct App {
    /// Name and namespace of the Application object.
    pub id: AppId,
    /// `metadata.uid`.
    pub uid: String,
    /// `metadata.generation`: changes whenever the spec changes.
    pub generation: i64,
    /// The project, `default` if none is named.
    pub project: String,
    /// Where the manifests come from, never empty, in order.
    pub sources: Vec<Source>,
    /// True for `spec.sources`, false for `spec.source`. Status is written back in the same shape.
    pub multi_source: bool,
    /// Where they go.
    pub destination: Destination,
    /// When and how syncs happen.
    pub sync_policy: SyncPolicy,
    /// Differences that are ignored for this app.
    pub ignore_differences: Vec<IgnoreRule>,
    /// How many entries `status.history` keeps.
    pub revision_history_limit: usize,
    /// Compare options of the Application's annotation.
    pub compare_options: CompareOptions,
    /// Is reconciling switched off by annotation?
    pub skip_reconcile: bool,
    /// The pause that a user set, if any.
    pub pause: Option<Pause>,
    /// The objects that a user paused.
    pub paused_objects: PausedObjects,
    /// `metadata.annotations`, for the features that read their own key.
    pub annotations: std::collections::BTreeMap<String, String>,
}

impl App {
    /// The destination namespace, if the app's options ask for it: `CreateNamespace=true`, or `managedNamespaceMetadata`.
    pub fn asked_namespace(&self) -> Option<ObjectKey> {
        let policy = &self.sync_policy;
        let is_asked_for = policy.has("CreateNamespace=true") || policy.managed_namespace.is_some();
        let name = self.destination.namespace.as_deref().filter(|_| is_asked_for)?;
        Some(ObjectKey::of_namespace(name))
    }
}
