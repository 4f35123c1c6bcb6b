//! How long to wait before something is tried again.

use std::time::Duration;

/// Waits that double from `first` up to `most`. As an iterator it never ends.
#[derive(Clone, Debug)]
pub struct Backoff {
    first: Duration,
    most: Duration,
    next: Duration,
}

impl Backoff {
    /// Starts at `first`; no wait is longer than `most`.
    pub fn new(first: Duration, most: Duration) -> Self {
        Self { first, most, next: first.min(most) }
    }

    /// The next wait, exactly.
    pub fn next_wait(&mut self) -> Duration {
        let wait = self.next;
        self.next = wait.saturating_mul(2).min(self.most);
        wait
    }

    /// The next wait, spread at random between half and one and a half of it, so that many clients do not return at
    /// the same moment.
    pub fn next_spread(&mut self) -> Duration {
        let wait = self.next_wait();
        wait / 2 + jitter(wait)
    }

    /// Starts over, after a success.
    pub fn reset(&mut self) {
        self.next = self.first.min(self.most);
    }
}

impl Iterator for Backoff {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        Some(self.next_wait())
    }
}

/// A random part of `most`. The randomness is that of the standard hasher; nothing here is secret.
pub(crate) fn jitter(most: Duration) -> Duration {
    use std::hash::{BuildHasher, RandomState};
    let random = RandomState::new().hash_one(0u8);
    let fraction = u32::try_from(random % 1000).unwrap_or_default();
    most * fraction / 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(waits: impl Iterator<Item = Duration>) -> Vec<u64> {
        waits.map(|wait| wait.as_secs()).collect()
    }

    #[test]
    fn waits_double_up_to_the_limit_and_start_over() {
        let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(5));
        assert_eq!(seconds(backoff.by_ref().take(5)), [1, 2, 4, 5, 5]);
        backoff.reset();
        assert_eq!(seconds(backoff.take(2)), [1, 2]);
    }

    #[test]
    fn no_wait_is_longer_than_the_limit() {
        let backoff = Backoff::new(Duration::from_secs(9), Duration::from_secs(5));
        assert_eq!(seconds(backoff.take(2)), [5, 5]);
        let mut endless = Backoff::new(Duration::MAX, Duration::MAX);
        assert_eq!((endless.next_wait(), endless.next_wait()), (Duration::MAX, Duration::MAX));
    }

    #[test]
    fn a_spread_wait_is_between_half_and_one_and_a_half() {
        let second = Duration::from_secs(1);
        for _ in 0..100 {
            let wait = Backoff::new(second, second).next_spread();
            assert!(wait >= second / 2 && wait < second * 3 / 2, "{wait:?}");
        }
    }
}
