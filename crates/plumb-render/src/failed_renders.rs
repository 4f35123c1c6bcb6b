//! Renderings that took long or all that they may take, and failed. The same rendering is not tried again at once: it would hold
//! a worker and the memory of others for as long as before.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use plumb_core::source::RepoPath;

use crate::error::RenderError;
use crate::sandbox::SandboxError;

/// How long the first failure counts. Each further one counts for twice as long as the one before.
const FIRST_DELAY: Duration = Duration::from_secs(30);
const MAX_DELAY: Duration = Duration::from_mins(10);

/// A failure after this time is costly, whatever its cause.
const LONG: Duration = Duration::from_secs(2);

/// Most failures in memory. Beyond it, all are dropped.
const MAX_FAILURES: usize = 4096;

/// Failures of tools, by the key of the rendering.
#[derive(Default)]
pub(crate) struct FailedRenders {
    failures: Mutex<HashMap<String, Failure>>,
}

struct Failure {
    tool: &'static str,
    path: RepoPath,
    source: SandboxError,
    delay: Duration,
    until: Instant,
}

impl FailedRenders {
    /// The failure of the same rendering, if it is too early to try again.
    pub(crate) fn recent(&self, key: &str, now: Instant) -> Option<RenderError> {
        let failures = self.failures.lock();
        let failure = failures.get(key).filter(|failure| now < failure.until)?;
        let Failure { tool, path, source, .. } = failure;
        Some(RenderError::Tool { tool, path: path.clone(), source: source.clone() })
    }

    /// Notes how a rendering that started at this moment has ended.
    pub(crate) fn note(&self, key: &str, error: Option<&RenderError>, started: Instant, now: Instant) {
        let mut failures = self.failures.lock();
        let is_long = now.duration_since(started) > LONG;
        let Some(RenderError::Tool { tool, path, source }) =
            error.filter(|error| is_long || error.is_costly())
        else {
            failures.remove(key);
            return;
        };
        if failures.len() >= MAX_FAILURES {
            failures.clear();
        }
        let delay = failures.get(key).map_or(FIRST_DELAY, |failure| (failure.delay * 2).min(MAX_DELAY));
        let failure = Failure { tool, path: path.clone(), source: source.clone(), delay, until: now + delay };
        failures.insert(key.to_owned(), failure);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(source: SandboxError) -> RenderError {
        RenderError::Tool { tool: "helm template", path: RepoPath::root(), source }
    }

    #[test]
    fn a_costly_failure_counts_for_longer_each_time() {
        let failed = FailedRenders::default();
        let timeout = error(SandboxError::Timeout { limit: Duration::from_secs(90) });
        let mut now = Instant::now();
        for delay in [30, 60, 120, 240, 480, 600, 600].map(Duration::from_secs) {
            failed.note("key", Some(&timeout), now, now);
            assert!(failed.recent("key", now + delay / 100 * 99).is_some(), "{delay:?}");
            assert!(failed.recent("other", now).is_none());
            now += delay;
            assert!(failed.recent("key", now).is_none(), "{delay:?}");
        }
        failed.note("key", None, now, now);
        failed.note("key", Some(&timeout), now, now);
        assert!(failed.recent("key", now + FIRST_DELAY).is_none(), "a success ends the series");
        let cheap = error(SandboxError::Failed { code: 1, message: "no".to_owned() });
        failed.note("other", Some(&cheap), now, now + LONG);
        assert!(failed.recent("other", now).is_none(), "a quick failure is tried again");
        failed.note("other", Some(&cheap), now, now + LONG * 2);
        assert!(failed.recent("other", now).is_some(), "a slow one is not");
    }
}
