//! `v1` `PersistentVolume`: can it be used? Argo CD has no opinion on it.

use serde_json::Value;

use super::super::Health;
use super::super::read::{Read, text};

pub(super) fn judge(object: &Value) -> Read<Health> {
    let message = text(object, "status.message")?;
    Ok(match text(object, "status.phase")? {
        "Available" | "Bound" => Health::healthy(message),
        // The normal rest of a volume whose claim is gone and whose policy is `Retain`.
        "Released" => Health::healthy("its claim is gone; the volume is kept"),
        "" | "Pending" => Health::progressing(message),
        "Failed" => {
            Health::degraded(if message.is_empty() { "reclaiming the volume failed" } else { message })
        }
        phase => Health::unknown(format!("the volume's phase is {phase:?}")),
    })
}
