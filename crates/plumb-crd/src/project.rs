//! `argoproj.io/v1alpha1` `AppProject`.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::application::ApplicationDestination;
use crate::metadata::Metadata;
use crate::wire::{Wire, WireError, read_map, wire};

wire! {
    /// Restrictions for a group of Applications.
    pub struct AppProject {
        /// Name and labels.
        "metadata" metadata: Metadata = required,
        /// The rules.
        "spec" spec: AppProjectSpec = required,
        /// Token metadata.
        "status" status: AppProjectStatus,
    }

    /// `spec` of an `AppProject`.
    pub struct AppProjectSpec {
        /// Repositories that apps may use, as globs; `!` forbids.
        "sourceRepos" source_repos: Vec<String>,
        /// Clusters and namespaces that apps may use, as globs; `!` forbids.
        "destinations" destinations: Vec<ApplicationDestination>,
        /// A description for users.
        "description" description: String where {"maxLength": 255},
        /// Roles with their policies and tokens.
        "roles" roles: Vec<ProjectRole>,
        /// Cluster-scoped kinds that are permitted; none if empty.
        "clusterResourceWhitelist" cluster_resource_whitelist: Vec<ClusterResourceRestriction>,
        /// Namespaced kinds that are forbidden.
        "namespaceResourceBlacklist" namespace_resource_blacklist: Vec<GroupKindRestriction>,
        /// Report objects that belong to no app.
        "orphanedResources" orphaned_resources: Option<OrphanedResources>,
        /// When syncs may run.
        "syncWindows" sync_windows: Vec<SyncWindow>,
        /// Namespaced kinds that are permitted; all if absent, none if empty.
        "namespaceResourceWhitelist" namespace_resource_whitelist: Option<Vec<GroupKindRestriction>>,
        /// Deprecated: keys that commits must be signed with.
        "signatureKeys" signature_keys: Vec<SignatureKey>,
        /// Cluster-scoped kinds that are forbidden.
        "clusterResourceBlacklist" cluster_resource_blacklist: Vec<ClusterResourceRestriction>,
        /// Namespaces whose Applications may use this project.
        "sourceNamespaces" source_namespaces: Vec<String>,
        /// Only clusters that are registered for this project.
        "permitOnlyProjectScopedClusters" permit_only_project_scoped_clusters: bool,
        /// Service accounts that syncs act as, by destination.
        "destinationServiceAccounts" destination_service_accounts: Vec<DestinationServiceAccount>,
        /// Verification of sources.
        "sourceIntegrity" source_integrity: Option<SourceIntegrity>,
    }

    /// `status` of an `AppProject`.
    pub struct AppProjectStatus {
        /// Tokens of each role.
        "jwtTokensByRole" jwt_tokens_by_role: BTreeMap<String, JwtTokens>,
    }

    /// Tokens of one role.
    pub struct JwtTokens {
        /// The tokens.
        "items" items: Vec<JwtToken>,
    }

    /// One role.
    pub struct ProjectRole {
        /// Its name.
        "name" name: String = required,
        /// A description for users.
        "description" description: String,
        /// Casbin policies.
        "policies" policies: Vec<String>,
        /// Tokens that were issued.
        "jwtTokens" jwt_tokens: Vec<JwtToken>,
        /// Groups of the identity provider that have this role.
        "groups" groups: Vec<String>,
    }

    /// Metadata of a token.
    pub struct JwtToken {
        /// When it was issued, in Unix seconds.
        "iat" iat: i64 = required,
        /// When it ends, in Unix seconds.
        "exp" exp: i64,
        /// Its id.
        "id" id: String,
    }

    /// A kind, as globs.
    pub struct GroupKindRestriction {
        /// API group.
        "group" group: String = required,
        /// Kind.
        "kind" kind: String = required,
    }

    /// A kind and name, as globs.
    pub struct ClusterResourceRestriction {
        /// API group.
        "group" group: String = required,
        /// Kind.
        "kind" kind: String = required,
        /// Name; empty matches any.
        "name" name: String,
    }

    /// `orphanedResources`.
    pub struct OrphanedResources {
        /// Put a warning on the apps.
        "warn" warn: Option<bool>,
        /// Objects that are no orphans.
        "ignore" ignore: Vec<OrphanedResourceKey>,
    }

    /// Objects that are no orphans, as globs.
    pub struct OrphanedResourceKey {
        /// API group; empty matches only the core group.
        "group" group: String,
        /// Kind; empty matches any.
        "kind" kind: String,
        /// Name; empty matches any.
        "name" name: String,
    }

    /// When syncs may or may not run.
    pub struct SyncWindow {
        /// `allow` or `deny`.
        "kind" kind: String,
        /// When it opens, as a cron line of five fields.
        "schedule" schedule: String,
        /// How long it stays open, such as `1h30m`.
        "duration" duration: String,
        /// Apps that it concerns, as globs.
        "applications" applications: Vec<String>,
        /// Destination namespaces that it concerns, as globs.
        "namespaces" namespaces: Vec<String>,
        /// Clusters that it concerns, by name or address, as globs.
        "clusters" clusters: Vec<String>,
        /// Allow manual syncs.
        "manualSync" manual_sync: bool,
        /// Time zone of the schedule; empty means UTC.
        "timeZone" time_zone: String,
        /// All lists must match, not just one.
        "andOperator" and_operator: bool,
        /// A description for users.
        "description" description: String,
        /// Let a sync that started before the window closed continue.
        "syncOverrun" sync_overrun: bool,
    }

    /// A key that commits must be signed with.
    pub struct SignatureKey {
        /// Its id.
        "keyID" key_id: String = required,
    }

    /// The service account that a sync impersonates.
    pub struct DestinationServiceAccount {
        /// Address of the cluster, as a glob.
        "server" server: String = required,
        /// Destination namespace, as a glob.
        "namespace" namespace: String,
        /// `name`, or `namespace:name`.
        "defaultServiceAccount" default_service_account: String = required,
    }

    /// Verification of sources.
    pub struct SourceIntegrity {
        /// Verification of Git sources.
        "git" git: SourceIntegrityGit = required,
    }

    /// Verification of Git sources.
    pub struct SourceIntegrityGit {
        /// One rule per set of repositories.
        "policies" policies: Vec<SourceIntegrityGitPolicy> = required,
    }

    /// One rule for a set of repositories.
    pub struct SourceIntegrityGitPolicy {
        /// The repositories.
        "repos" repos: Vec<SourceIntegrityGitRepo> = required,
        /// Signatures that are asked for.
        "gpg" gpg: SourceIntegrityGpg = required,
    }

    /// A set of repositories.
    pub struct SourceIntegrityGitRepo {
        /// Address, as a glob.
        "url" url: String = required,
    }

    /// Signatures that are asked for.
    pub struct SourceIntegrityGpg {
        /// `none`, `head` or `strict`.
        "mode" mode: String = required,
        /// Ids of the keys.
        "keys" keys: Vec<String> = required,
    }
}

impl AppProject {
    /// `apiVersion` of an `AppProject`.
    pub const API_VERSION: &'static str = "argoproj.io/v1alpha1";
    /// `kind` of an `AppProject`.
    pub const KIND: &'static str = "AppProject";

    /// Reads an `AppProject`.
    pub fn from_json(object: &Value) -> Result<Self, WireError> {
        read_map(object)?;
        Self::read(object)
    }

    /// The whole object.
    pub fn to_json(&self) -> Value {
        let mut object = self.write();
        object["apiVersion"] = Value::from(Self::API_VERSION);
        object["kind"] = Value::from(Self::KIND);
        object
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_survives_reading_and_writing() {
        let object: Value = serde_json::from_str(include_str!("project_complete.json")).expect("JSON");
        let project = AppProject::from_json(&object).expect("readable");
        assert_eq!(project.to_json(), object);
        assert_eq!(project.spec.namespace_resource_whitelist, Some(Vec::new()), "empty is not absent");
    }
}
