//! The kinds of Kubernetes itself, one file each.
//!
//! Where Argo CD has a rule for a kind, ours gives the same status. It has none for `PersistentVolume`, Namespace,
//! Node and the webhook configurations; ours read what Kubernetes documents.

mod api_service;
mod cron_job;
mod custom_resource_definition;
mod daemon_set;
mod deployment;
mod horizontal_pod_autoscaler;
mod ingress;
mod job;
mod namespace;
mod node;
mod persistent_volume;
mod persistent_volume_claim;
mod pod;
mod pod_disruption_budget;
mod replica_set;
mod service;
mod stateful_set;
pub(super) mod webhook;
mod workflow;

use serde_json::Value;

use super::read::Read;
use super::{Answer, Health};
use crate::object::Manifest;

type Judge = fn(&Value) -> Read<Health>;

/// Judges a built-in kind.
pub(super) fn judge(object: &Manifest) -> Answer {
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
