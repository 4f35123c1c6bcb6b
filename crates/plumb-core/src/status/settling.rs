//! When the end of a sync is written together with the health that follows it.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::{AppStatus, SyncCode};
use crate::health::HealthStatus;
use crate::sync::OperationPhase;

/// How long the end of a sync may wait to be written while the app becomes healthy, so that one request writes both.
/// Writing an Application costs the API server as much as writing five `ConfigMaps`. Where many apps sync at once a
/// second write delays the controllers that plumb waits for. The longer the operation took, the busier the server is.
const SETTLING: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(3);
/// The wait is this many times as long as the operation took.
const FACTOR: u32 = 4;

/// How long the end of an operation that took this long may wait.
pub fn settling_time(took: Duration) -> Duration {
    took.saturating_mul(FACTOR).clamp(*SETTLING.start(), *SETTLING.end())
}

/// True if the app's health is likely to change in a moment. A user's sync and a failed one are written at once.
pub fn settles_soon(is_automated: bool, phase: OperationPhase, status: &AppStatus) -> bool {
    is_automated
        && phase == OperationPhase::Succeeded
        && status.sync == SyncCode::Synced
        && status.health.status == HealthStatus::Progressing
}
