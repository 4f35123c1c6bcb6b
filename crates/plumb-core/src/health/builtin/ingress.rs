//! `networking.k8s.io` and `extensions` Ingress: does it have an address?

use serde_json::Value;

use super::super::Health;
use super::super::read::{Read, list};

pub(super) fn judge(object: &Value) -> Read<Health> {
    Ok(if list(object, "status.loadBalancer.ingress")?.is_empty() {
        Health::progressing("no ingress controller has assigned an address yet")
    } else {
        Health::healthy("")
    })
}
