//! `v1` `PersistentVolumeClaim`: is it bound?

use serde_json::Value;

use super::super::Health;
use super::super::read::{Read, text};

pub(super) fn judge(object: &Value) -> Read<Health> {
    Ok(match text(object, "status.phase")? {
        "Bound" => Health::healthy(""),
        "Pending" => Health::progressing("waiting for a volume"),
        "Lost" => Health::degraded("its volume is gone"),
        phase => Health::unknown(format!("the claim's phase is {phase:?}")),
    })
}
