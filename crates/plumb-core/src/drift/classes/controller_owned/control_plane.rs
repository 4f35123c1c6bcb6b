//! The fields that the control plane itself writes, by kind.
//!
//! A client chooses the name of its field manager, so the name `kube-controller-manager` proves nothing. It excuses a
//! write only in these fields, where a value of the control plane is expected and a value of another client does no
//! harm.

use serde_json::Value;

use crate::compare::{Addition, Difference, Fill};
use crate::drift::case::{Case, is_under, last_field};
use crate::object::{FieldPath, Segment};

/// API group, kind, and the path of a field in which the control plane replaces a value of Git.
const REPLACED: [(&str, &str, &[&str]); 6] = [
    ("", "Namespace", &["spec", "finalizers"]),
    ("", "Node", &["spec", "podCIDR"]),
    ("", "Node", &["spec", "podCIDRs"]),
    ("", "Node", &["spec", "providerID"]),
    ("", "PersistentVolume", &["spec", "claimRef", "resourceVersion"]),
    ("", "PersistentVolume", &["spec", "claimRef", "uid"]),
];

/// The same for a field that the control plane sets where Git leaves it out.
const FILLED_IN: [(&str, &str, &[&str]); 6] = [
    ("", "Node", &["spec", "taints"]),
    ("", "PersistentVolume", &["spec", "claimRef"]),
    ("", "PersistentVolumeClaim", &["spec", "volumeName"]),
    ("", "Pod", &["spec", "nodeName"]),
    ("", "ServiceAccount", &["secrets"]),
    ("batch", "Job", &["spec", "template", "metadata", "labels"]),
];

/// Is this a value that Git sets and the control plane replaces?
pub(super) fn replaces(case: &Case<'_>, difference: &Difference<'_>) -> bool {
    is_in(&REPLACED, case, &difference.path) || is_label_of_node(case, &difference.path)
}

/// Is this an addition that the control plane makes to objects of this kind, or to the metadata of any object?
pub(in crate::drift) fn is_added_by_control_plane(case: &Case<'_>, addition: &Addition<'_>) -> bool {
    addition.fill == Fill::Allocated
        || is_in(&REPLACED, case, &addition.path)
        || is_in(&FILLED_IN, case, &addition.path)
        || is_under(&addition.path, &["status"])
        || is_metadata_of_kubernetes(&addition.path)
        || is_protection(&addition.path, addition.live)
}

/// A taint that follows the conditions of a node: admission adds it when the node is created, the node controllers
/// afterwards.
pub(super) fn taints(case: &Case<'_>, difference: &Difference<'_>) -> bool {
    const KEYS: [&str; 2] = ["node.kubernetes.io/", "node.cloudprovider.kubernetes.io/"];
    let key = difference.live.and_then(|taint| taint.get("key")).and_then(Value::as_str);
    case.desired.kind() == "Node"
        && is_under(&difference.path, &["spec", "taints"])
        && key.is_some_and(|key| KEYS.iter().any(|prefix| key.starts_with(prefix)))
}

fn is_in(list: &[(&str, &str, &[&str])], case: &Case<'_>, path: &FieldPath) -> bool {
    let gvk = case.desired.gvk();
    let mut of_kind = list.iter().filter(|(group, kind, _)| *group == gvk.group && *kind == gvk.kind);
    of_kind.any(|(_, _, fields)| is_under(path, fields))
}

/// Kubelet and cloud controller set labels such as `topology.kubernetes.io/zone`.
fn is_label_of_node(case: &Case<'_>, path: &FieldPath) -> bool {
    case.desired.kind() == "Node" && case.desired.group().is_empty() && is_metadata_of_kubernetes(path)
}

/// The labels and annotations that the control plane writes. Others below `kubernetes.io` say how something works: an
/// ingress, the security of pods.
const KEYS: [&str; 16] = [
    "autoscaling.alpha.kubernetes.io/",
    "batch.kubernetes.io/",
    "beta.kubernetes.io/",
    "control-plane.alpha.kubernetes.io/",
    "deployment.kubernetes.io/",
    "deprecated.daemonset.template.generation",
    "endpoints.kubernetes.io/",
    "failure-domain.beta.kubernetes.io/",
    "kubernetes.io/arch",
    "kubernetes.io/hostname",
    "kubernetes.io/metadata.name",
    "kubernetes.io/os",
    "node.kubernetes.io/instance-type",
    "pv.kubernetes.io/",
    "topology.kubernetes.io/",
    "volume.",
];

/// A label or annotation that the control plane writes: `deployment.kubernetes.io/revision`.
fn is_metadata_of_kubernetes(path: &FieldPath) -> bool {
    let is_metadata = is_under(path, &["metadata", "annotations"]) || is_under(path, &["metadata", "labels"]);
    is_metadata
        && path.segments().len() == 3
        && last_field(path).is_some_and(|key| KEYS.iter().any(|prefix| key.starts_with(prefix)))
}

/// A finalizer of Kubernetes: `kubernetes.io/pvc-protection`, `foregroundDeletion`.
fn is_protection(path: &FieldPath, live: &Value) -> bool {
    let is_item = matches!(path.segments().last(), Some(Segment::Index(_)));
    let names: Vec<&str> = match live {
        Value::Array(items) if !is_item => items.iter().filter_map(Value::as_str).collect(),
        item => item.as_str().into_iter().collect(),
    };
    is_under(path, &["metadata", "finalizers"])
        && !names.is_empty()
        && names
            .iter()
            .all(|name| matches!(*name, "foregroundDeletion" | "orphan") || is_name_of_kubernetes(name))
}

/// Is the domain of the name one of Kubernetes, as in `kubernetes.io/pvc-protection`?
fn is_name_of_kubernetes(name: &str) -> bool {
    let domain = name.split_once('/').map(|(domain, _)| domain);
    domain.is_some_and(|domain| domain == "kubernetes.io" || domain.ends_with(".kubernetes.io"))
}
