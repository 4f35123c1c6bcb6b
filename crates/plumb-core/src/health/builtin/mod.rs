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
mod judge;
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

pub(super) use judge::judge;
