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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::Health;
    use crate::status::{RollUp, roll_up};

    #[test]
    fn the_wait_is_four_times_the_operation_within_bounds() {
        for (took, expected) in [(0, 1000), (250, 1000), (251, 1004), (500, 2000), (750, 3000), (751, 3000)] {
            let wait = settling_time(Duration::from_millis(took));
            assert_eq!(wait, Duration::from_millis(expected), "{took} ms");
        }
        assert_eq!(settling_time(Duration::MAX), Duration::from_secs(3), "no overflow");
    }

    #[test]
    fn each_condition_alone_prevents_the_wait() {
        use HealthStatus::{Degraded, Healthy, Missing, Progressing, Suspended, Unknown};
        use OperationPhase::{Error, Failed, Running, Succeeded, Terminating};
        for (is_automated, phase, sync, health, expected) in [
            (true, Succeeded, SyncCode::Synced, Progressing, true),
            // A user waits for the end.
            (false, Succeeded, SyncCode::Synced, Progressing, false),
            (true, Failed, SyncCode::Synced, Progressing, false),
            (true, Error, SyncCode::Synced, Progressing, false),
            (true, Running, SyncCode::Synced, Progressing, false),
            (true, Terminating, SyncCode::Synced, Progressing, false),
            (true, Succeeded, SyncCode::OutOfSync, Progressing, false),
            (true, Succeeded, SyncCode::Unknown, Progressing, false),
            // Healthy already, or not about to be.
            (true, Succeeded, SyncCode::Synced, Healthy, false),
            (true, Succeeded, SyncCode::Synced, Suspended, false),
            (true, Succeeded, SyncCode::Synced, Missing, false),
            (true, Succeeded, SyncCode::Synced, Degraded, false),
            (true, Succeeded, SyncCode::Synced, Unknown, false),
        ] {
            let status = AppStatus { sync, health: Health::new(health, ""), ..roll_up(RollUp::default()) };
            let settles = settles_soon(is_automated, phase, &status);
            assert_eq!(settles, expected, "{is_automated} {phase:?} {sync:?} {health}");
        }
    }
}
