//! Limits log lines that any client can cause.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// One line of a sort in this time. The next line says how many were omitted.
const EVERY: Duration = Duration::from_secs(10);

/// When a line of each sort was last written.
#[derive(Default)]
pub(super) struct LogPace(Mutex<HashMap<&'static str, Last>>);

struct Last {
    written: Instant,
    omitted: u64,
}

impl LogPace {
    /// How many lines of this sort were omitted since the last one, if a line may be written now.
    pub(super) fn may_write(&self, sort: &'static str, now: Instant) -> Option<u64> {
        let mut sorts = self.0.lock();
        match sorts.get_mut(sort) {
            Some(last) if now.saturating_duration_since(last.written) < EVERY => {
                last.omitted += 1;
                None
            }
            Some(last) => {
                last.written = now;
                Some(std::mem::take(&mut last.omitted))
            }
            None => {
                sorts.insert(sort, Last { written: now, omitted: 0 });
                Some(0)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_of_a_sort_in_ten_seconds() {
        let (pace, start) = (LogPace::default(), Instant::now());
        let at = |sort, seconds| pace.may_write(sort, start + Duration::from_secs(seconds));
        assert_eq!((at("a", 0), at("a", 1), at("b", 1), at("a", 9)), (Some(0), None, Some(0), None));
        assert_eq!((at("a", 10), at("a", 11), at("a", 30)), (Some(2), None, Some(1)));
    }
}
