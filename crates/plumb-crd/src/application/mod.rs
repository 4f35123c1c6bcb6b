//! `argoproj.io/v1alpha1` `Application`.

mod operation;
mod source;
mod status;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::BTreeMap;

use plumb_core::app::AppId;
use serde_json::Value;

pub use operation::{
    Operation, OperationInitiator, RetryBackoff, RetryStrategy, SyncOperation, SyncOperationResource,
    SyncStrategy, SyncStrategyKind,
};
pub use source::{
    ApplicationSource, DirectorySource, DrySource, EnvEntry, HelmFileParameter, HelmParameter, HelmSource,
    HydrateTo, Jsonnet, JsonnetVariable, KustomizePatch, KustomizeReplica, KustomizeSource, KustomizeTarget,
    PluginParameter, PluginSource, SourceHydrator, SyncSource,
};
pub use status::{
    ApplicationStatus, ApplicationSummary, ComparedTo, Condition, HealthStatus, HydrateOperation,
    OperationState, ResourceResult, ResourceStatus, RevisionHistory, SourceHydratorStatus,
    SuccessfulHydrateOperation, SyncOperationResult, SyncStatus,
};

use crate::metadata::{Metadata, identify};
use crate::wire::{Wire, WireError, read_field, read_map, wire};

/// An Application as it stands in the cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Application {
    /// Names, annotations, finalizers.
    pub metadata: Metadata,
    /// What is wanted.
    pub spec: ApplicationSpec,
    /// The operation that is asked for or under way. Its presence is the lock against a second one.
    pub operation: Option<Operation>,
    /// What was seen.
    pub status: ApplicationStatus,
    /// Fields of `status` that could not be read and count as absent. Status is ours to rewrite: a broken
    /// one must not keep an app from being reconciled.
    pub unreadable_status: Vec<WireError>,
}

impl Application {
    /// `apiVersion` of an Application.
    pub const API_VERSION: &'static str = "argoproj.io/v1alpha1";
    /// `kind` of an Application.
    pub const KIND: &'static str = "Application";

    /// Reads an Application. Metadata, spec and operation must be readable as a whole; a field of `status`
    /// that is not counts as absent and is named in [`Application::unreadable_status`].
    pub fn from_json(object: &Value) -> Result<Self, WireError> {
        let map = read_map(object)?;
        let mut unreadable_status = Vec::new();
        let status = ApplicationStatus::read_what_is_readable(map.get("status"), &mut unreadable_status);
        Ok(Self {
            metadata: read_field(map, "metadata")?,
            spec: read_field(map, "spec")?,
            operation: read_field(map, "operation")?,
            status,
            unreadable_status,
        })
    }

    /// The whole object.
    pub fn to_json(&self) -> Value {
        let mut object = serde_json::json!({
            "apiVersion": Self::API_VERSION,
            "kind": Self::KIND,
            "metadata": self.metadata.write(),
            "spec": self.spec.write(),
        });
        if let Some(operation) = &self.operation {
            object["operation"] = operation.write();
        }
        if !self.status.is_unset() {
            object["status"] = self.status.write();
        }
        object
    }

    /// Namespace and name.
    pub fn id(&self) -> AppId {
        AppId { namespace: self.metadata.namespace.clone(), name: self.metadata.name.clone() }
    }

    /// Namespace and name of an Application that [`Application::from_json`] refuses, so that its condition
    /// can still be written.
    pub fn id_of(object: &Value) -> Option<AppId> {
        identify(object).map(|(namespace, name)| AppId { namespace, name })
    }

    /// One annotation.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.metadata.annotations.get(key).map(String::as_str)
    }

    /// Is it on its way out?
    pub fn is_terminating(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }
}

wire! {
    /// `spec` of an Application.
    pub struct ApplicationSpec {
        /// Where the manifests come from. Not looked at when `sources` has entries.
        "source" source: Option<Box<ApplicationSource>>,
        /// Several places that manifests come from; wins over `source`.
        "sources" sources: Vec<ApplicationSource>,
        /// Render to a branch first and sync from there; wins over `source` and `sources`.
        "sourceHydrator" source_hydrator: Option<Box<SourceHydrator>>,
        /// Where the objects go.
        "destination" destination: ApplicationDestination = required,
        /// The `AppProject` that decides what is permitted; empty means `default`.
        "project" project: String = required,
        /// When and how syncs happen.
        "syncPolicy" sync_policy: Option<SyncPolicy>,
        /// Differences that do not count.
        "ignoreDifferences" ignore_differences: Vec<ResourceIgnoreDifferences>,
        /// For display only.
        "info" info: Vec<Info>,
        /// How many entries `status.history` keeps; 10 if not set, 0 keeps none.
        "revisionHistoryLimit" revision_history_limit: Option<i64>,
    }

    /// The cluster and namespace that the objects go to.
    pub struct ApplicationDestination {
        /// URL of the API server; either this or `name`.
        "server" server: String,
        /// Namespace of namespaced objects that name none.
        "namespace" namespace: String,
        /// Name of a registered cluster; either this or `server`.
        "name" name: String,
    }

    /// A line for display.
    pub struct Info {
        /// What it is called.
        "name" name: String = required,
        /// What it says.
        "value" value: String = required,
    }

    /// `spec.syncPolicy`.
    pub struct SyncPolicy {
        /// Present: sync without being asked, unless `enabled` is false.
        "automated" automated: Option<SyncPolicyAutomated>,
        /// Options such as `CreateNamespace=true`; compared exactly.
        "syncOptions" sync_options: Vec<String>,
        /// What happens after a failed sync.
        "retry" retry: Option<RetryStrategy>,
        /// Labels and annotations of the destination namespace, with `CreateNamespace=true`.
        "managedNamespaceMetadata" managed_namespace_metadata: Option<ManagedNamespaceMetadata>,
    }

    /// `spec.syncPolicy.automated`.
    pub struct SyncPolicyAutomated {
        /// May an automated sync delete?
        "prune" prune: Option<bool>,
        /// Is live drift reverted at a revision that was already synced?
        "selfHeal" self_heal: Option<bool>,
        /// May an automated sync delete everything?
        "allowEmpty" allow_empty: Option<bool>,
        /// Explicit switch; absent means true.
        "enabled" enabled: Option<bool>,
    }

    /// `managedNamespaceMetadata`.
    pub struct ManagedNamespaceMetadata {
        /// Labels.
        "labels" labels: BTreeMap<String, String>,
        /// Annotations.
        "annotations" annotations: BTreeMap<String, String>,
    }

    /// One entry of `spec.ignoreDifferences`.
    pub struct ResourceIgnoreDifferences {
        /// Glob; the empty string matches only the core group.
        "group" group: String,
        /// Glob.
        "kind" kind: String = required,
        /// Exact name; empty matches any.
        "name" name: String,
        /// Exact namespace; empty matches any.
        "namespace" namespace: String,
        /// RFC 6901 pointers to fields that do not count.
        "jsonPointers" json_pointers: Vec<String>,
        /// jq paths of fields that do not count.
        "jqPathExpressions" jq_path_expressions: Vec<String>,
        /// Field managers whose fields do not count.
        "managedFieldsManagers" managed_fields_managers: Vec<String>,
    }
}

impl ApplicationSpec {
    /// The spec as Argo CD would store it: a project always named, tool blocks and policies that say nothing
    /// dropped.
    #[must_use]
    pub fn normalized(&self) -> Self {
        let mut spec = self.clone();
        if spec.project.is_empty() {
            "default".clone_into(&mut spec.project);
        }
        spec.source = spec.source.map(|source| Box::new(source.normalized()));
        spec.sources = spec.sources.iter().map(ApplicationSource::normalized).collect();
        spec.sync_policy = spec.sync_policy.filter(|policy| !policy.is_unset());
        spec
    }
}
