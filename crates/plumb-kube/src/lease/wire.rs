//! The Lease as the API server sends it.

use serde::{Deserialize, Serialize};

/// A Lease, with the parts that we do not know kept as they are.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Lease {
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) metadata: LeaseMeta,
    pub(super) spec: LeaseSpec,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct LeaseMeta {
    pub(super) name: String,
    pub(super) namespace: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) resource_version: Option<String>,
    #[serde(flatten)]
    rest: serde_json::Map<String, serde_json::Value>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct LeaseSpec {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) holder_identity: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) lease_duration_seconds: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) acquire_time: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) renew_time: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) lease_transitions: Option<i32>,
    #[serde(flatten)]
    rest: serde_json::Map<String, serde_json::Value>,
}
