//! Fields of built-in kinds that the API server does not change after creation.

use serde_json::Value;

use crate::compare::Quantity;
use crate::object::{FieldPath, Manifest};

/// The changed fields that the API server will refuse. `changed` are places of either object.
pub(super) fn refused(old: &Manifest, new: &Manifest, changed: &[FieldPath]) -> Vec<FieldPath> {
    let is_refused = |path: &&FieldPath| is_immutable(old, new, &path.to_string());
    changed.iter().filter(is_refused).cloned().collect()
}

/// Long because it is a table: one arm per kind.
fn is_immutable(old: &Manifest, new: &Manifest, pointer: &str) -> bool {
    let is_below = |places: &[&str]| {
        places.iter().any(|place| {
            pointer.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    };
    match (old.group(), old.kind()) {
        ("apps", "Deployment" | "ReplicaSet" | "DaemonSet") => is_below(&["/spec/selector"]),
        ("apps", "StatefulSet") => {
            is_below(&["/spec"])
                && !is_below(&[
                    "/spec/replicas",
                    "/spec/template",
                    "/spec/updateStrategy",
                    "/spec/persistentVolumeClaimRetentionPolicy",
                    "/spec/minReadySeconds",
                    "/spec/ordinals",
                    "/spec/revisionHistoryLimit",
                ])
        }
        ("batch", "Job") => {
            is_below(&["/spec/template", "/spec/selector", "/spec/completionMode", "/spec/podFailurePolicy"])
        }
        ("", "PersistentVolumeClaim") => {
            let requests = "/spec/resources/requests/storage";
            if is_below(&[requests]) {
                return shrinks(old.value().pointer(requests), new.value().pointer(requests));
            }
            is_below(&["/spec"]) && !is_below(&["/spec/resources", "/spec/volumeAttributesClassName"])
        }
        ("", "PersistentVolume") => is_below(&[
            "/spec/csi",
            "/spec/nfs",
            "/spec/hostPath",
            "/spec/local",
            "/spec/volumeMode",
            "/spec/nodeAffinity",
        ]),
        ("", "Service") => {
            let is_set = |object: &Manifest| {
                let address = object.value().pointer("/spec/clusterIP").and_then(Value::as_str);
                address.is_some_and(|address| !address.is_empty())
            };
            is_below(&["/spec/clusterIP"]) && is_set(old) && is_set(new)
        }
        ("", "Secret") => {
            is_below(&["/type"]) || is_frozen(old) && is_below(&["/data", "/stringData", "/immutable"])
        }
        ("", "ConfigMap") => is_frozen(old) && is_below(&["/data", "/binaryData", "/immutable"]),
        ("", "Pod") => {
            is_below(&["/spec"]) && !pointer.ends_with("/image") && !is_below(&["/spec/tolerations"])
        }
        ("storage.k8s.io", "StorageClass") => {
            is_below(&["/provisioner", "/parameters", "/reclaimPolicy", "/volumeBindingMode"])
        }
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => is_below(&["/roleRef"]),
        ("networking.k8s.io", "IngressClass") => is_below(&["/spec/controller"]),
        ("node.k8s.io", "RuntimeClass") => is_below(&["/handler"]),
        ("scheduling.k8s.io", "PriorityClass") => is_below(&["/value", "/preemptionPolicy"]),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => is_below(&["/spec/scope", "/spec/group"]),
        _ => false,
    }
}

/// A Secret or `ConfigMap` with `immutable: true`.
fn is_frozen(object: &Manifest) -> bool {
    object.value().get("immutable") == Some(&Value::Bool(true))
}

/// A claim may grow, not shrink.
fn shrinks(old: Option<&Value>, new: Option<&Value>) -> bool {
    match (old.and_then(Quantity::of), new.and_then(Quantity::of)) {
        (Some(old), Some(new)) => new < old,
        _ => false,
    }
}
