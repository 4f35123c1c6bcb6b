//! How often the data of a cluster went back in time.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// A restore that is noticed this long after the last one is another one.
const ANOTHER_AFTER: Duration = Duration::from_mins(30);
/// How long plumb waits before it reads everything a second time. Each further time it waits twice as long.
const FIRST_PAUSE: Duration = Duration::from_mins(1);
/// So many times in a row plumb believes that a cluster was restored.
const MOST_BELIEVED: u32 = 3;
/// What it waits when it does not believe it any more.
const DISBELIEF: Duration = Duration::from_hours(1);

/// The clusters that went back in time, for as long as the process lives: a home cluster that did starts a new engine.
#[derive(Default)]
pub(crate) struct TimeTravels(Mutex<HashMap<Arc<str>, Episode>>);

/// Times in a row. An API server whose lists are older than its watches looks as if it had been restored whenever
/// everything was read again.
struct Episode {
    n_times: u32,
    last: Instant,
}

/// What to do about a cluster that seems to have gone back in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Response {
    /// How long to wait before everything is read again.
    pub(crate) pause: Duration,
    /// False if that did not help several times in a row.
    pub(crate) is_believed: bool,
}

impl TimeTravels {
    /// Notes that a cluster seems to have gone back in time.
    pub(crate) fn note(&self, server: &Arc<str>, now: Instant) -> Response {
        let mut episodes = self.0.lock();
        let before =
            episodes.get(server).filter(|one| now.saturating_duration_since(one.last) < ANOTHER_AFTER);
        let n_times = before.map_or(0, |one| one.n_times).saturating_add(1);
        let is_believed = n_times <= MOST_BELIEVED;
        let pause = match n_times {
            1 => Duration::ZERO,
            n if is_believed => FIRST_PAUSE * 2u32.saturating_pow(n - 2),
            _ => DISBELIEF,
        };
        episodes.insert(Arc::clone(server), Episode { n_times, last: now + pause });
        Response { pause, is_believed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_whose_lists_are_always_older_is_believed_three_times() {
        let (travels, server) = (TimeTravels::default(), Arc::from("https://a"));
        let mut now = Instant::now();
        let mut found = Vec::new();
        for _ in 0..6 {
            let Response { pause, is_believed } = travels.note(&server, now);
            found.push((pause.as_secs(), is_believed));
            now += pause + Duration::from_secs(21);
        }
        let expected = [(0, true), (60, true), (120, true), (3600, false), (3600, false), (3600, false)];
        assert_eq!(found, expected);
        let at_once = Response { pause: Duration::ZERO, is_believed: true };
        assert_eq!(travels.note(&Arc::from("https://b"), now), at_once, "another cluster");
        assert_eq!(travels.note(&server, now + ANOTHER_AFTER), at_once, "much later");
    }
}
