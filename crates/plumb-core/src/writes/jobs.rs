//! Jobs that finish and are deleted by the TTL controller before plumb sees their end.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::health::HealthStatus;
use crate::object::{Manifest, ObjectKey};
use crate::status::SyncCode;

/// How long an API server keeps events by default (`--event-ttl`).
pub const EVENT_RETENTION: SignedDuration = SignedDuration::from_hours(1);

/// What the Application's status said about a Job when an earlier process last wrote it.
#[derive(Clone, Copy, Debug)]
pub struct LastSeenJob {
    /// Its sync status.
    pub sync: SyncCode,
    /// Its health, if the status has one.
    pub health: Option<HealthStatus>,
}

/// True for `batch` Jobs.
pub fn is_job(key: &ObjectKey) -> bool {
    key.kind == "Job" && key.group == "batch"
}

/// Whether and when a Job finished, by its conditions: success, and the time of the condition if it has one.
pub fn finished(job: &Manifest) -> Option<(bool, Option<Timestamp>)> {
    let conditions = job.value().pointer("/status/conditions")?.as_array()?;
    conditions.iter().find_map(|condition| {
        let succeeded = match condition["type"].as_str()? {
            "Complete" => true,
            "Failed" => false,
            _ => return None,
        };
        let at = condition["lastTransitionTime"].as_str().and_then(|at| at.parse().ok());
        (condition["status"] == "True").then_some((succeeded, at))
    })
}

/// True if a Job that is gone is taken to have completed while plumb was down, although no event says so.
///
/// The last status must say that the Job existed. If it also said that the Job had completed, that is enough.
/// Otherwise plumb must have been down for longer than the Job's TTL and the cluster's event retention: a Job that
/// asks to be deleted a day after its end and is gone after two hours was deleted by someone. What remains is the
/// usual end of a Job, and running it again because plumb was down would be plumb's mistake.
pub fn has_finished_unseen(
    last_seen: Option<LastSeenJob>,
    desired: &Manifest,
    down_for: Option<SignedDuration>,
) -> bool {
    let Some(last_seen) = last_seen.filter(|job| job.sync == SyncCode::Synced) else { return false };
    let field = |pointer: &str| desired.value().pointer(pointer);
    match last_seen.health {
        Some(HealthStatus::Healthy) => true,
        Some(HealthStatus::Progressing) | None => {
            let ttl = field("/spec/ttlSecondsAfterFinished").and_then(Value::as_i64);
            let is_suspended = field("/spec/suspend").and_then(Value::as_bool) == Some(true);
            let had_time = |ttl| down_for > Some(EVENT_RETENTION.max(SignedDuration::from_secs(ttl)));
            !is_suspended && ttl.is_some_and(had_time)
        }
        Some(
            HealthStatus::Degraded | HealthStatus::Suspended | HealthStatus::Missing | HealthStatus::Unknown,
        ) => false,
    }
}
