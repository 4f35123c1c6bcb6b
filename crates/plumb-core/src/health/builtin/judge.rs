//! Which function judges which built-in kind.

use serde_json::Value;

use super::super::read::Read;
use super::super::{Answer, Health};
use super::{
    api_service, cron_job, custom_resource_definition, daemon_set, deployment, horizontal_pod_autoscaler,
    ingress, job, namespace, node, persistent_volume, persistent_volume_claim, pod, pod_disruption_budget,
    replica_set, service, stateful_set, workflow,
};
use crate::object::Manifest;

type Judge = fn(&Value) -> Read<Health>;

/// Judges a built-in kind.
pub(in crate::health) fn judge(object: &Manifest) -> Answer {
    let (group, version) = object.api_version().rsplit_once('/').unwrap_or(("", object.api_version()));
    let (versions, judge): (&[&str], Judge) = match (group, object.kind()) {
        ("apps", "Deployment") => (&["v1"], deployment::judge),
        ("apps", "StatefulSet") => (&["v1"], stateful_set::judge),
        ("apps", "DaemonSet") => (&["v1"], daemon_set::judge),
        ("apps" | "extensions", "ReplicaSet") => (&["v1"], replica_set::judge),
        ("", "Pod") => (&["v1"], pod::judge),
        ("batch", "Job") => (&["v1"], job::judge),
        ("batch", "CronJob") => (ANY, cron_job::judge),
        ("", "Service") => (&["v1"], service::judge),
        ("networking.k8s.io" | "extensions", "Ingress") => (ANY, ingress::judge),
        ("", "PersistentVolumeClaim") => (&["v1"], persistent_volume_claim::judge),
        ("", "PersistentVolume") => (&["v1"], persistent_volume::judge),
        ("autoscaling", "HorizontalPodAutoscaler") => {
            let judge = if version == "v1" {
                horizontal_pod_autoscaler::judge_v1
            } else {
                horizontal_pod_autoscaler::judge_v2
            };
            (&["v1", "v2"], judge)
        }
        ("policy", "PodDisruptionBudget") => (ANY, pod_disruption_budget::judge),
        ("apiregistration.k8s.io", "APIService") => (&["v1", "v1beta1"], api_service::judge),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => (ANY, custom_resource_definition::judge),
        ("", "Namespace") => (&["v1"], namespace::judge),
        ("", "Node") => (&["v1"], node::judge),
        ("argoproj.io", "Workflow") => (ANY, workflow::judge),
        // The webhook configurations say nothing about themselves: `assess_webhook` asks for their services.
        (
            "admissionregistration.k8s.io",
            "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration",
        )
        // As in Argo CD: an app has a health, but its Application object has none until its owner says so.
        | ("argoproj.io", "Application" | "AppProject") => return Answer::NoOpinion,
        _ => return Answer::NotMine,
    };
    if !versions.is_empty() && !versions.contains(&version) {
        return Answer::Judged(Health::unknown(format!(
            "the health of {} is known in {} only, this is {}",
            object.kind(),
            versions.join(" and "),
            object.api_version(),
        )));
    }
    Answer::Judged(judge(object.value()).unwrap_or_else(|malformed| malformed.judge()))
}

/// Any version of the group.
const ANY: &[&str] = &[];
