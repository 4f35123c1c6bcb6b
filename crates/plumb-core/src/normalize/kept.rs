//! Marks that controllers keep on objects for themselves.

use crate::tracking::ADOPTED_ANNOTATION;
use crate::witness::LAST_WRITER_ANNOTATION;

/// The record of a client-side apply.
pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// An annotation that the cluster's own controllers write. In Git it is a leftover of an export.
pub fn is_kept_annotation(key: &str) -> bool {
    matches!(
        key,
        LAST_APPLIED
            | LAST_WRITER_ANNOTATION
            | ADOPTED_ANNOTATION
            | "deployment.kubernetes.io/revision"
            | "deployment.kubernetes.io/desired-replicas"
            | "deployment.kubernetes.io/max-replicas"
            | "deployment.kubernetes.io/revision-history"
            | "deprecated.daemonset.template.generation"
            | "endpoints.kubernetes.io/last-change-trigger-time"
            | "control-plane.alpha.kubernetes.io/leader"
            | "autoscaling.alpha.kubernetes.io/conditions"
            | "autoscaling.alpha.kubernetes.io/current-metrics"
            | "batch.kubernetes.io/job-tracking"
            | "pv.kubernetes.io/bind-completed"
            | "pv.kubernetes.io/bound-by-controller"
            | "pv.kubernetes.io/provisioned-by"
            | "volume.beta.kubernetes.io/storage-provisioner"
            | "volume.kubernetes.io/storage-provisioner"
            | "volume.kubernetes.io/selected-node"
    )
}

/// A label that the API server writes.
pub fn is_kept_label(key: &str) -> bool {
    key == "kubernetes.io/metadata.name"
}

/// Metadata that only the server writes.
pub fn is_kept_metadata(name: &str) -> bool {
    matches!(
        name,
        "uid"
            | "resourceVersion"
            | "generation"
            | "creationTimestamp"
            | "managedFields"
            | "selfLink"
            | "deletionTimestamp"
            | "deletionGracePeriodSeconds"
    )
}
