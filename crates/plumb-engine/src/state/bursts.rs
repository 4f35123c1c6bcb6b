//! Detects the end of a burst of runs.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// Fewer runs leave nothing behind that is worth looking for.
const BURST: u64 = 50;
/// So long without a run is rest.
const QUIET: Duration = Duration::from_secs(3);
/// A cluster in which something happens all the time is never quiet.
const AT_THE_LATEST: Duration = Duration::from_mins(1);

/// Notes runs, and tells when a burst of them is over.
#[derive(Debug, Default)]
pub(crate) struct BurstDetector {
    n_runs: AtomicU64,
    run_ended: Notify,
}

impl BurstDetector {
    /// A run has ended.
    pub(crate) fn note_run(&self) {
        self.n_runs.fetch_add(1, Ordering::Relaxed);
        self.run_ended.notify_one();
    }

    /// Waits until a burst is over.
    pub(crate) async fn end(&self) {
        while self.n_runs.load(Ordering::Relaxed) < BURST {
            self.run_ended.notified().await;
        }
        let latest = Instant::now() + AT_THE_LATEST;
        loop {
            let quiet = (Instant::now() + QUIET).min(latest);
            let one_more = tokio::time::timeout_at(quiet, self.run_ended.notified()).await.is_ok();
            if !one_more || Instant::now() >= latest {
                break;
            }
        }
        self.n_runs.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// Runs at these times (in milliseconds); when bursts comes.
    async fn bursts_after(runs: impl IntoIterator<Item = u64>) -> Option<Duration> {
        let bursts = Arc::new(BurstDetector::default());
        let start = Instant::now();
        let runs: Vec<u64> = runs.into_iter().collect();
        let noted = Arc::clone(&bursts);
        tokio::spawn(async move {
            for at in runs {
                tokio::time::sleep_until(start + Duration::from_millis(at)).await;
                noted.note_run();
            }
        });
        tokio::time::timeout(Duration::from_hours(1), bursts.end()).await.ok()?;
        Some(start.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn bursts_comes_when_a_burst_is_over() {
        assert_eq!(bursts_after(0..100).await, Some(Duration::from_millis(99) + QUIET));
        assert_eq!(bursts_after([0; 49]).await, None, "no burst");
        let again_and_again = (0..100).map(|at| at * 1000);
        let burst = Duration::from_secs(BURST - 1);
        assert_eq!(
            bursts_after(again_and_again).await,
            Some(burst + AT_THE_LATEST.min(Duration::from_secs(50) + QUIET))
        );
        let without_end = (0..1000).map(|at| at * 1000);
        assert_eq!(bursts_after(without_end).await, Some(burst + AT_THE_LATEST));
    }
}
