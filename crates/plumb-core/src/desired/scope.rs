//! Which kinds are namespaced.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::object::{GroupKind, Manifest};
use crate::tracking::is_crd;

/// Where the objects of a kind live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// In a namespace.
    Namespaced,
    /// In the cluster.
    Cluster,
}

/// What is known about the scopes of kinds, from a cluster's discovery or from the built-in list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Scopes(BTreeMap<GroupKind, Scope>);

/// The kinds of Kubernetes itself that live in the cluster; its other kinds live in namespaces.
const CLUSTER_KINDS: &[(&str, &[&str])] = &[
    ("", &["ComponentStatus", "Namespace", "Node", "PersistentVolume"]),
    (
        "admissionregistration.k8s.io",
        &[
            "MutatingAdmissionPolicy",
            "MutatingAdmissionPolicyBinding",
            "MutatingWebhookConfiguration",
            "ValidatingAdmissionPolicy",
            "ValidatingAdmissionPolicyBinding",
            "ValidatingWebhookConfiguration",
        ],
    ),
    ("apiextensions.k8s.io", &["CustomResourceDefinition"]),
    ("apiregistration.k8s.io", &["APIService"]),
    ("authentication.k8s.io", &["SelfSubjectReview", "TokenReview"]),
    ("authorization.k8s.io", &["SelfSubjectAccessReview", "SelfSubjectRulesReview", "SubjectAccessReview"]),
    ("certificates.k8s.io", &["CertificateSigningRequest", "ClusterTrustBundle"]),
    ("flowcontrol.apiserver.k8s.io", &["FlowSchema", "PriorityLevelConfiguration"]),
    ("internal.apiserver.k8s.io", &["StorageVersion"]),
    ("networking.k8s.io", &["IPAddress", "IngressClass", "ServiceCIDR"]),
    ("node.k8s.io", &["RuntimeClass"]),
    ("policy", &["PodSecurityPolicy"]),
    ("rbac.authorization.k8s.io", &["ClusterRole", "ClusterRoleBinding"]),
    ("resource.k8s.io", &["DeviceClass", "DeviceTaintRule", "ResourceSlice"]),
    ("scheduling.k8s.io", &["PriorityClass"]),
    (
        "storage.k8s.io",
        &["CSIDriver", "CSINode", "StorageClass", "VolumeAttachment", "VolumeAttributesClass"],
    ),
    ("storagemigration.k8s.io", &["StorageVersionMigration"]),
];

impl Scopes {
    /// What Kubernetes itself brings, for work without a cluster.
    pub fn built_in() -> Self {
        CLUSTER_KINDS
            .iter()
            .flat_map(|(group, kinds)| {
                kinds.iter().map(|kind| (GroupKind::new(*group, *kind), Scope::Cluster))
            })
            .collect()
    }

    /// The scope of a kind; `None` for unknown kinds.
    pub fn get(&self, kind: &GroupKind) -> Option<Scope> {
        self.0.get(kind).copied()
    }

    /// Adds a kind; a later scope replaces an earlier one.
    pub fn insert(&mut self, kind: GroupKind, scope: Scope) {
        self.0.insert(kind, scope);
    }

    /// How many kinds are known.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Is nothing known?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The same, and what the CRDs among these manifests announce.
    #[must_use]
    pub fn with_crds<'manifest>(mut self, manifests: impl Iterator<Item = &'manifest Manifest>) -> Self {
        self.0.extend(manifests.filter_map(announced));
        self
    }

    /// What the CRDs among these manifests announce.
    pub(super) fn of_crds<'manifest>(manifests: impl Iterator<Item = &'manifest Manifest>) -> Self {
        manifests.filter_map(announced).collect()
    }
}

impl FromIterator<(GroupKind, Scope)> for Scopes {
    fn from_iter<I: IntoIterator<Item = (GroupKind, Scope)>>(kinds: I) -> Self {
        Self(kinds.into_iter().collect())
    }
}

fn announced(manifest: &Manifest) -> Option<(GroupKind, Scope)> {
    if !is_crd(manifest) {
        return None;
    }
    let text = |pointer: &str| manifest.value().pointer(pointer).and_then(Value::as_str);
    let scope = match text("/spec/scope")? {
        "Cluster" => Scope::Cluster,
        "Namespaced" => Scope::Namespaced,
        _ => return None,
    };
    Some((GroupKind::new(text("/spec/group")?, text("/spec/names/kind")?), scope))
}
