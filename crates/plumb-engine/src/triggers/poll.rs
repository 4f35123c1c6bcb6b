//! Reconciles all apps at regular intervals, because not every repository has a webhook.

use std::sync::Arc;
use std::time::Duration;

use plumb_crd::settings::ReconciliationSettings;
use tokio::time::Instant;

use crate::engine::Engine;
use crate::queue::{RefreshDepth, Trigger, TriggerReason};

/// How often apps are reconciled without a reported change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PollIntervals {
    /// How often Git is polled; `None`: never.
    git: Option<Duration>,
    /// How often caches are bypassed (hard refresh); `None`: never.
    hard: Option<Duration>,
    /// The runs of one round are spread over this time.
    spread: Duration,
}

impl PollIntervals {
    /// The start option takes precedence over the settings.
    fn new(option: Option<Duration>, settings: ReconciliationSettings) -> Self {
        let hard = settings.hard_interval;
        if let Some(every) = option {
            let spread = (every / 2).min(Duration::from_mins(1));
            return Self { git: Some(every).filter(|every| !every.is_zero()), hard, spread };
        }
        let spread = settings.interval.map_or(settings.jitter, |git| git.min(settings.jitter));
        Self { git: settings.interval, hard, spread }
    }
}

/// When the last round of each depth was.
struct LastRounds {
    git: Instant,
    hard: Instant,
}

impl LastRounds {
    /// Time and depth of the next round; `None`: never.
    fn next(&self, intervals: &PollIntervals) -> Option<(Instant, RefreshDepth)> {
        let git = intervals.git.and_then(|every| Some((self.git.checked_add(every)?, RefreshDepth::Git)));
        let hard = intervals.hard.and_then(|every| Some((self.hard.checked_add(every)?, RefreshDepth::Hard)));
        match (git, hard) {
            (Some(git), Some(hard)) => Some(if git.0 < hard.0 { git } else { hard }),
            (git, hard) => git.or(hard),
        }
    }

    /// Records a round. A hard round polls Git too.
    fn note(&mut self, depth: RefreshDepth, now: Instant) {
        self.git = now;
        if depth == RefreshDepth::Hard {
            self.hard = now;
        }
    }
}

/// Reconciles all apps at the intervals of the current settings, forever.
pub(crate) async fn poll(engine: Arc<Engine>) {
    let mut changes = engine.config.settings_changes();
    let mut rounds = LastRounds { git: Instant::now(), hard: Instant::now() };
    loop {
        changes.mark_unchanged();
        let intervals = PollIntervals::new(engine.options.poll, engine.config.settings().reconciliation);
        let due = async {
            match rounds.next(&intervals) {
                Some((at, depth)) => {
                    tokio::time::sleep_until(at).await;
                    depth
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            depth = due => {
                rounds.note(depth, Instant::now());
                enqueue_all(&engine, depth, intervals.spread);
            }
            Ok(()) = changes.changed() => {}
        }
    }
}

fn enqueue_all(engine: &Engine, depth: RefreshDepth, spread: Duration) {
    let apps = engine.registry.all();
    let n_apps = u32::try_from(apps.len().max(1)).unwrap_or(u32::MAX);
    // All apps share one trigger, so that one request to a Git server serves all apps of the round.
    let trigger =
        if depth == RefreshDepth::Hard { Trigger::new(depth, TriggerReason::Poll) } else { Trigger::poll() };
    for (position, app) in (0u32..).zip(apps) {
        engine.queue.push_after(app.id.clone(), trigger, spread * position / n_apps);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn minutes(interval: u64, jitter: u64, hard: u64) -> ReconciliationSettings {
        let some = |minutes| Some(Duration::from_mins(minutes)).filter(|every| !every.is_zero());
        ReconciliationSettings {
            interval: some(interval),
            jitter: Duration::from_mins(jitter),
            hard_interval: some(hard),
        }
    }

    #[track_caller]
    fn check(option: Option<u64>, settings: ReconciliationSettings, wanted: &str) {
        let intervals = PollIntervals::new(option.map(Duration::from_secs), settings);
        let every = |every: Option<Duration>| every.map_or("never".to_owned(), |every| format!("{every:?}"));
        let found = format!(
            "git {}, hard {}, spread {:?}",
            every(intervals.git),
            every(intervals.hard),
            intervals.spread
        );
        assert_eq!(found, wanted);
    }

    #[test]
    fn the_start_option_takes_precedence_over_the_settings() {
        check(None, minutes(2, 1, 0), "git 120s, hard never, spread 60s");
        check(None, minutes(1, 5, 0), "git 60s, hard never, spread 60s");
        check(None, minutes(0, 1, 0), "git never, hard never, spread 60s");
        check(None, minutes(0, 0, 90), "git never, hard 5400s, spread 0ns");
        check(Some(30), minutes(2, 1, 90), "git 30s, hard 5400s, spread 15s");
        check(Some(0), minutes(2, 1, 0), "git never, hard never, spread 0ns");
    }

    #[test]
    fn a_hard_round_polls_git_too() {
        let start = Instant::now();
        let at = |minutes| start + Duration::from_mins(minutes);
        let mut rounds = LastRounds { git: start, hard: start };
        let intervals = PollIntervals::new(None, minutes(2, 0, 5));
        assert_eq!(rounds.next(&intervals), Some((at(2), RefreshDepth::Git)));
        rounds.note(RefreshDepth::Git, at(2));
        rounds.note(RefreshDepth::Git, at(4));
        assert_eq!(rounds.next(&intervals), Some((at(5), RefreshDepth::Hard)));
        rounds.note(RefreshDepth::Hard, at(5));
        assert_eq!(rounds.next(&intervals), Some((at(7), RefreshDepth::Git)));
        // New intervals count from the last round.
        assert_eq!(
            rounds.next(&PollIntervals::new(None, minutes(1, 0, 0))),
            Some((at(6), RefreshDepth::Git))
        );
        assert_eq!(rounds.next(&PollIntervals::new(None, minutes(0, 0, 0))), None);
    }
}
