//! How long each sort of request takes at best.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

/// Requests of one sort are comparable work: the same verb on the same resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Sort(pub(crate) u64);

/// A fastest answer counts for one to two windows. After that, a permanently higher network latency no longer
/// looks like a busy server.
const WINDOW: Duration = Duration::from_mins(5);

/// The fastest recent answers, by sort of request.
#[derive(Default)]
pub(super) struct Paces(HashMap<Sort, Fastest>);

struct Fastest {
    window_began: Instant,
    in_window: Duration,
    /// The fastest answer of the window before, if there was one.
    before: Duration,
}

impl Paces {
    /// The speed of this answer: 1 is as fast as the fastest of its sort, 0.5 took twice as long.
    pub(super) fn speed(&mut self, sort: Sort, after: Duration, now: Instant) -> f64 {
        // The clock may not advance during a fast request.
        let after = after.max(Duration::from_micros(1));
        let fastest = self.0.entry(sort).or_insert(Fastest {
            window_began: now,
            in_window: after,
            before: Duration::MAX,
        });
        if now.duration_since(fastest.window_began) > WINDOW {
            *fastest = Fastest { window_began: now, in_window: after, before: fastest.in_window };
        }
        fastest.in_window = fastest.in_window.min(after);
        fastest.in_window.min(fastest.before).as_secs_f64() / after.as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_held_against_the_fastest_of_its_sort() {
        let millis = Duration::from_millis;
        let mut paces = Paces::default();
        let mut check = |sort, after, expected: f64| {
            let speed = paces.speed(Sort(sort), millis(after), Instant::now());
            assert!((speed - expected).abs() < 0.001, "{speed}");
        };
        check(1, 10, 1.0);
        check(1, 40, 0.25);
        check(2, 40, 1.0);
        check(1, 5, 1.0);
        check(1, 10, 0.5);
        // The network latency grew: known after two windows at the latest.
        tokio::time::advance(WINDOW + millis(1)).await;
        check(1, 20, 0.25);
        tokio::time::advance(WINDOW + millis(1)).await;
        check(1, 20, 1.0);
    }
}
