//! What an Application asks for.

use std::collections::BTreeMap;

use super::operation::RetryStrategy;
use super::source::{ApplicationSource, SourceHydrator};
use crate::wire::{Wire as _, wire};

wire! {
    /// `spec` of an Application.
    pub struct ApplicationSpec {
        /// The source of the manifests. Ignored when `sources` has entries.
        "source" source: Option<Box<ApplicationSource>>,
        /// Several sources of manifests; takes precedence over `source`.
        "sources" sources: Vec<ApplicationSource>,
        /// Render to a branch first and sync from there; takes precedence over `source` and `sources`.
        "sourceHydrator" source_hydrator: Option<Box<SourceHydrator>>,
        /// The cluster and namespace that the objects are applied to.
        "destination" destination: ApplicationDestination = required,
        /// The `AppProject` that decides what is permitted; empty means `default`.
        "project" project: String = required,
        /// When and how syncs happen.
        "syncPolicy" sync_policy: Option<SyncPolicy>,
        /// Differences to ignore.
        "ignoreDifferences" ignore_differences: Vec<ResourceIgnoreDifferences>,
        /// For display only.
        "info" info: Vec<Info>,
        /// How many entries `status.history` keeps; 10 if not set, 0 keeps none.
        "revisionHistoryLimit" revision_history_limit: Option<i64>,
    }

    /// A cluster and namespace.
    pub struct ApplicationDestination {
        /// URL of the API server; either this or `name`.
        "server" server: String,
        /// Namespace of namespaced objects that set none.
        "namespace" namespace: String,
        /// Name of a registered cluster; either this or `server`.
        "name" name: String,
    }

    /// A line for display.
    pub struct Info {
        /// The label.
        "name" name: String = required,
        /// The text.
        "value" value: String = required,
    }

    /// `spec.syncPolicy`.
    pub struct SyncPolicy {
        /// If set, sync automatically, unless `enabled` is false.
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
        /// Allow an automated sync to delete objects.
        "prune" prune: Option<bool>,
        /// Revert live drift at a revision that was already synced.
        "selfHeal" self_heal: Option<bool>,
        /// Allow an automated sync to delete all objects.
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
        /// RFC 6901 pointers to fields to ignore.
        "jsonPointers" json_pointers: Vec<String>,
        /// jq paths of fields to ignore.
        "jqPathExpressions" jq_path_expressions: Vec<String>,
        /// Field managers whose fields are ignored.
        "managedFieldsManagers" managed_fields_managers: Vec<String>,
    }
}

impl ApplicationSpec {
    /// The spec as Argo CD stores it: with a project, and without empty tool blocks and policies.
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
