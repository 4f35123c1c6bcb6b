//! The observed state of an Application.

use jiff::Timestamp;
use serde_json::Value;

use super::{
    ApplicationDestination, ApplicationSource, ApplicationSpec, ManagedNamespaceMetadata, Operation,
    OperationInitiator, ResourceIgnoreDifferences, SourceHydrator,
};
use crate::wire::{Wire, WireError, wire};

wire! {
    /// `status` of an Application.
    pub struct ApplicationStatus {
        /// One entry per object, sorted by group, kind, namespace and name.
        "resources" resources: Vec<ResourceStatus>,
        /// Whether the cluster matches Git.
        "sync" sync: SyncStatus,
        /// Health of the app.
        "health" health: HealthStatus,
        /// Past full syncs that succeeded, oldest first.
        "history" history: Vec<RevisionHistory>,
        /// Errors and warnings.
        "conditions" conditions: Vec<Condition>,
        /// When the app was last compared with Git.
        "reconciledAt" reconciled_at: Option<Timestamp>,
        /// The last or running operation.
        "operationState" operation_state: Option<Box<OperationState>>,
        /// Deprecated, not written.
        "observedAt" observed_at: Option<Timestamp>,
        /// `Helm`, `Kustomize`, `Directory` or `Plugin`.
        "sourceType" source_type: String,
        /// Addresses and images of the objects.
        "summary" summary: ApplicationSummary,
        /// `appTree` when health of single objects is not stored here.
        "resourceHealthSource" resource_health_source: String,
        /// The type of each source.
        "sourceTypes" source_types: Vec<String>,
        /// Namespace of the controller that wrote this.
        "controllerNamespace" controller_namespace: String,
        /// State of rendering to a branch.
        "sourceHydrator" source_hydrator: SourceHydratorStatus,
    }

    /// One object of an Application.
    pub struct ResourceStatus {
        /// API group.
        "group" group: String,
        /// API version.
        "version" version: String,
        /// Kind.
        "kind" kind: String,
        /// Namespace.
        "namespace" namespace: String,
        /// Name.
        "name" name: String,
        /// `Synced`, `OutOfSync` or `Unknown`; empty for hooks and objects that are not compared.
        "status" status: String,
        /// Health, where it is stored here.
        "health" health: Option<HealthStatus>,
        /// True for a hook.
        "hook" hook: bool,
        /// True if it is no longer in Git and must be deleted.
        "requiresPruning" requires_pruning: bool,
        /// Sync wave.
        "syncWave" sync_wave: i64,
        /// True if a user must confirm its deletion.
        "requiresDeletionConfirmation" requires_deletion_confirmation: bool,
    }

    /// `status.sync`.
    pub struct SyncStatus {
        /// `Synced`, `OutOfSync` or `Unknown`.
        "status" status: String = required,
        /// What the cluster was compared with.
        "comparedTo" compared_to: ComparedTo,
        /// Resolved revision of a single source.
        "revision" revision: String,
        /// Resolved revisions, one per source.
        "revisions" revisions: Vec<String>,
    }

    /// The parts of the spec that a comparison used.
    pub struct ComparedTo {
        /// The single source.
        "source" source: Option<Box<ApplicationSource>>,
        /// The destination.
        "destination" destination: ApplicationDestination = required,
        /// The sources, if several.
        "sources" sources: Vec<ApplicationSource>,
        /// Differences that were ignored.
        "ignoreDifferences" ignore_differences: Vec<ResourceIgnoreDifferences>,
    }

    /// Health of an app or object.
    pub struct HealthStatus {
        /// `Healthy`, `Progressing`, `Degraded`, `Suspended`, `Missing` or `Unknown`.
        "status" status: String,
        /// Why.
        "message" message: String,
        /// When the status last changed.
        "lastTransitionTime" last_transition_time: Option<Timestamp>,
    }

    /// One past sync.
    pub struct RevisionHistory {
        /// Resolved revision.
        "revision" revision: String,
        /// When the sync ended.
        "deployedAt" deployed_at: Timestamp = required,
        /// Number of this entry; counts up.
        "id" id: i64 = required,
        /// The source that was synced.
        "source" source: Option<Box<ApplicationSource>>,
        /// When the sync began.
        "deployStartedAt" deploy_started_at: Option<Timestamp>,
        /// The sources that were synced.
        "sources" sources: Vec<ApplicationSource>,
        /// Resolved revisions, one per source.
        "revisions" revisions: Vec<String>,
        /// Who requested it.
        "initiatedBy" initiated_by: OperationInitiator,
    }

    /// An error or warning.
    pub struct Condition {
        /// Such as `ComparisonError`; types that end in `Error` are errors.
        "type" condition_type: String = required,
        /// A message for users.
        "message" message: String = required,
        /// Since when.
        "lastTransitionTime" last_transition_time: Option<Timestamp>,
    }

    /// The last or running operation.
    pub struct OperationState {
        /// The request.
        "operation" operation: Operation = required,
        /// `Running`, `Terminating`, `Succeeded`, `Failed` or `Error`.
        "phase" phase: String = required,
        /// A message for users.
        "message" message: String,
        /// The result.
        "syncResult" sync_result: Option<Box<SyncOperationResult>>,
        /// When it began.
        "startedAt" started_at: Timestamp = required,
        /// When it ended. If it is set while the phase is `Running`, the operation waits for a retry.
        "finishedAt" finished_at: Option<Timestamp>,
        /// Number of retries.
        "retryCount" retry_count: i64,
    }

    /// The result of a sync.
    pub struct SyncOperationResult {
        /// One entry per object and phase, in order of their first result.
        "resources" resources: Vec<ResourceResult>,
        /// Resolved revision.
        "revision" revision: String = required,
        /// The source that was synced.
        "source" source: Option<Box<ApplicationSource>>,
        /// The sources that were synced.
        "sources" sources: Vec<ApplicationSource>,
        /// Resolved revisions, one per source.
        "revisions" revisions: Vec<String>,
        /// Metadata that was set on the destination namespace.
        "managedNamespaceMetadata" managed_namespace_metadata: Option<ManagedNamespaceMetadata>,
    }

    /// The result of a sync for one object.
    pub struct ResourceResult {
        /// API group.
        "group" group: String = required,
        /// API version.
        "version" version: String = required,
        /// Kind.
        "kind" kind: String = required,
        /// Namespace.
        "namespace" namespace: String = required,
        /// Name.
        "name" name: String = required,
        /// `Synced`, `SyncFailed`, `Pruned` or `PruneSkipped`.
        "status" status: String,
        /// A message for users.
        "message" message: String,
        /// Phase name for hooks, else empty.
        "hookType" hook_type: String,
        /// Phase of this item: `Running`, `Succeeded` …
        "hookPhase" hook_phase: String,
        /// `PreSync`, `Sync`, `PostSync` or `SyncFail`.
        "syncPhase" sync_phase: String,
        /// Images of the object.
        "images" images: Vec<String>,
    }

    /// Addresses and images of an app's objects.
    pub struct ApplicationSummary {
        /// URLs of the app.
        "externalURLs" external_urls: Vec<String>,
        /// Images of its Pods.
        "images" images: Vec<String>,
        /// True if it contains Applications.
        "isAppOfApps" is_app_of_apps: bool,
    }

    /// State of rendering to a branch.
    pub struct SourceHydratorStatus {
        /// The last rendering that worked.
        "lastSuccessfulOperation" last_successful_operation: Option<Box<SuccessfulHydrateOperation>>,
        /// The last rendering.
        "currentOperation" current_operation: Option<Box<HydrateOperation>>,
        /// The dry revision that was compared last.
        "lastComparedDryRevision" last_compared_dry_revision: String,
    }

    /// A rendering to a branch.
    pub struct HydrateOperation {
        /// When it began.
        "startedAt" started_at: Option<Timestamp>,
        /// When it ended.
        "finishedAt" finished_at: Option<Timestamp>,
        /// `Hydrating`, `Failed` or `Hydrated`.
        "phase" phase: String = required where {"enum": ["Hydrating", "Failed", "Hydrated"]},
        /// A message for users.
        "message" message: String = required,
        /// The commit that was rendered.
        "drySHA" dry_sha: String,
        /// The rendered commit.
        "hydratedSHA" hydrated_sha: String,
        /// The spec that was used.
        "sourceHydrator" source_hydrator: Option<Box<SourceHydrator>>,
    }

    /// A rendering to a branch that worked.
    pub struct SuccessfulHydrateOperation {
        /// The commit that was rendered.
        "drySHA" dry_sha: String,
        /// The rendered commit.
        "hydratedSHA" hydrated_sha: String,
        /// The spec that was used.
        "sourceHydrator" source_hydrator: Option<Box<SourceHydrator>>,
    }
}

impl ApplicationStatus {
    /// Reads field by field. An invalid field counts as absent and is added to `unreadable`.
    pub(super) fn read_what_is_readable(status: Option<&Value>, unreadable: &mut Vec<WireError>) -> Self {
        let Some(status) = status else { return Self::default() };
        let error = match Self::read(status) {
            Ok(status) => return status,
            Err(error) => error,
        };
        let Some(fields) = status.as_object() else {
            if !status.is_null() {
                unreadable.push(error.inside_field("status"));
            }
            return Self::default();
        };
        let mut readable = serde_json::Map::new();
        for (key, value) in fields {
            let alone: serde_json::Map<_, _> = [(key.clone(), value.clone())].into_iter().collect();
            match Self::read(&Value::Object(alone)) {
                Ok(_) => {
                    readable.insert(key.clone(), value.clone());
                }
                Err(error) => unreadable.push(error.inside_field("status")),
            }
        }
        Self::read(&Value::Object(readable)).unwrap_or_default()
    }
}

impl ComparedTo {
    /// The parts of this spec that a comparison uses.
    pub fn of(spec: &ApplicationSpec) -> Self {
        let (source, sources) = match (&spec.source_hydrator, spec.sources.is_empty()) {
            (Some(hydrator), _) => (Some(Box::new(hydrator.effective_sync_source())), Vec::new()),
            (None, true) => (spec.source.clone(), Vec::new()),
            (None, false) => (None, spec.sources.clone()),
        };
        Self {
            source,
            destination: spec.destination.clone(),
            sources,
            ignore_differences: spec.ignore_differences.clone(),
        }
    }
}
