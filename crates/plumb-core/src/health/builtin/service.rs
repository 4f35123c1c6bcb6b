//! `v1` Service: does a load balancer have its address?

use serde_json::Value;

use super::super::Health;
use super::super::read::{Read, list, text};

pub(super) fn judge(object: &Value) -> Read<Health> {
    let waits_for_address = text(object, "spec.type")? == "LoadBalancer"
        && list(object, "status.loadBalancer.ingress")?.is_empty();
    Ok(if waits_for_address {
        Health::progressing("the load balancer has no address yet")
    } else {
        Health::healthy("")
    })
}
