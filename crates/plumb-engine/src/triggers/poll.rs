//! Looks at apps from time to time, where no webhook tells and no watch can.

use std::sync::Arc;
use std::time::Duration;

use plumb_crd::settings::ReconciliationSettings;
use tokio::time::Instant;

use crate::engine::Engine;
use crate::queue::{RefreshDepth, Trigger, TriggerReason};

/// How often apps are looked at although nobody told of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rhythm {
    /// How often Git is asked; `None`: never.
    git: Option<Duration>,
    /// How often nothing that was kept counts; `None`: never.
    hard: Option<Duration>,
    /// The apps of a round are looked at within this time, so that not all ask at once.
    spread: Duration,
}

impl Rhythm {
    /// What was asked for when plumb was started counts more than the settings.
    fn new(asked: Option<Duration>, settings: ReconciliationSettings) -> Self {
        let hard = settings.hard_interval;
        if let Some(asked) = asked {
            let spread = (asked / 2).min(Duration::from_mins(1));
            return Self { git: Some(asked).filter(|asked| !asked.is_zero()), hard, spread };
        }
        let spread = settings.interval.map_or(settings.jitter, |git| git.min(settings.jitter));
        Self { git: settings.interval, hard, spread }
    }
}

/// When the last rounds were.
struct Rounds {
    git: Instant,
    hard: Instant,
}

impl Rounds {
    /// The next round: when, and how far it looks; `None`: never.
    fn next(&self, rhythm: &Rhythm) -> Option<(Instant, RefreshDepth)> {
        let git = rhythm.git.and_then(|every| Some((self.git.checked_add(every)?, RefreshDepth::Git)));
        let hard = rhythm.hard.and_then(|every| Some((self.hard.checked_add(every)?, RefreshDepth::Hard)));
        match (git, hard) {
            (Some(git), Some(hard)) => Some(if git.0 < hard.0 { git } else { hard }),
            (git, hard) => git.or(hard),
        }
    }

    /// Notes a round; one that looks farther is the other one, too.
    fn note(&mut self, look: RefreshDepth, now: Instant) {
        self.git = now;
        if look == RefreshDepth::Hard {
            self.hard = now;
        }
    }
}

/// Looks at all apps again and again, as often as the settings say by then.
pub(crate) async fn poll(engine: Arc<Engine>) {
    let mut changes = engine.config.settings_changes();
    let mut rounds = Rounds { git: Instant::now(), hard: Instant::now() };
    loop {
        changes.mark_unchanged();
        let rhythm = Rhythm::new(engine.options.poll, engine.config.settings().reconciliation);
        let due = async {
            match rounds.next(&rhythm) {
                Some((at, look)) => {
                    tokio::time::sleep_until(at).await;
                    look
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            look = due => {
                rounds.note(look, Instant::now());
                look_at_all(&engine, look, rhythm.spread);
            }
            Ok(()) = changes.changed() => {}
        }
    }
}

fn look_at_all(engine: &Engine, look: RefreshDepth, spread: Duration) {
    let apps = engine.registry.all();
    let n_apps = u32::try_from(apps.len().max(1)).unwrap_or(u32::MAX);
    // One trigger for all: what one app of the round asks a server, the others need not ask again.
    let trigger =
        if look == RefreshDepth::Hard { Trigger::new(look, TriggerReason::Poll) } else { Trigger::poll() };
    for (position, known) in (0u32..).zip(apps) {
        engine.queue.push_after(known.id.clone(), trigger, spread * position / n_apps);
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
    fn check(asked: Option<u64>, settings: ReconciliationSettings, wanted: &str) {
        let rhythm = Rhythm::new(asked.map(Duration::from_secs), settings);
        let every = |every: Option<Duration>| every.map_or("never".to_owned(), |every| format!("{every:?}"));
        let found =
            format!("git {}, hard {}, spread {:?}", every(rhythm.git), every(rhythm.hard), rhythm.spread);
        assert_eq!(found, wanted);
    }

    #[test]
    fn the_settings_count_unless_something_else_was_asked_for() {
        check(None, minutes(2, 1, 0), "git 120s, hard never, spread 60s");
        check(None, minutes(1, 5, 0), "git 60s, hard never, spread 60s");
        check(None, minutes(0, 1, 0), "git never, hard never, spread 60s");
        check(None, minutes(0, 0, 90), "git never, hard 5400s, spread 0ns");
        check(Some(30), minutes(2, 1, 90), "git 30s, hard 5400s, spread 15s");
        check(Some(0), minutes(2, 1, 0), "git never, hard never, spread 0ns");
    }

    #[test]
    fn a_hard_round_is_a_round_of_git_too() {
        let start = Instant::now();
        let at = |minutes| start + Duration::from_mins(minutes);
        let mut rounds = Rounds { git: start, hard: start };
        let rhythm = Rhythm::new(None, minutes(2, 0, 5));
        assert_eq!(rounds.next(&rhythm), Some((at(2), RefreshDepth::Git)));
        rounds.note(RefreshDepth::Git, at(2));
        rounds.note(RefreshDepth::Git, at(4));
        assert_eq!(rounds.next(&rhythm), Some((at(5), RefreshDepth::Hard)));
        rounds.note(RefreshDepth::Hard, at(5));
        assert_eq!(rounds.next(&rhythm), Some((at(7), RefreshDepth::Git)));
        // Another rhythm counts from the last round on.
        assert_eq!(rounds.next(&Rhythm::new(None, minutes(1, 0, 0))), Some((at(6), RefreshDepth::Git)));
        assert_eq!(rounds.next(&Rhythm::new(None, minutes(0, 0, 0))), None);
    }
}
