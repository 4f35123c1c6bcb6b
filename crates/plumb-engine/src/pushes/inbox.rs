//! Pushes that wait to be delivered. Any client can report one, so pushes to the same repository are merged, and each
//! repository has a budget: a flood of requests causes a bounded amount of work.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::push::{RepositoryAddress, RepositoryPush};

/// Most repositories whose pushes wait. The rest is for verified senders.
const MOST_UNVERIFIED: usize = 256;
const MOST: usize = 2048;

/// A budget: some at once, then one in an interval.
#[derive(Clone, Copy, Debug)]
struct Rate {
    every: Duration,
    at_once: u32,
}

const VERIFIED: Rate = Rate { every: Duration::from_secs(1), at_once: 10 };
const UNVERIFIED: Rate = Rate { every: Duration::from_secs(5), at_once: 5 };
/// Of all repositories together.
const ALL_UNVERIFIED: Rate = Rate { every: Duration::from_millis(100), at_once: 50 };

/// How much of a budget is used: the time at which it is full again.
#[derive(Clone, Copy, Debug)]
struct Used(Instant);

impl Rate {
    /// When one more is within the budget.
    fn next(self, used: Option<Used>, now: Instant) -> Instant {
        let Some(Used(full)) = used else { return now };
        let ahead = self.every * self.at_once.saturating_sub(1);
        full.checked_sub(ahead).map_or(now, |next| next.max(now))
    }

    fn spend(self, used: Option<Used>, now: Instant) -> Used {
        Used(used.map_or(now, |Used(full)| full.max(now)) + self.every)
    }
}

/// Pushes that wait, by repository.
#[derive(Debug, Default)]
pub(super) struct PushInbox {
    waiting: HashMap<RepositoryAddress, RepositoryPush>,
    used: HashMap<RepositoryAddress, Used>,
    used_by_unverified: Option<Used>,
}

impl PushInbox {
    /// Adds a push. False if there is no room for another repository; then only the next poll finds the commit.
    pub(super) fn add(&mut self, push: RepositoryPush) -> bool {
        let most = if push.verified { MOST } else { MOST_UNVERIFIED };
        if let Some(waiting) = self.waiting.get_mut(&push.repository) {
            waiting.merge(push);
            return true;
        }
        let has_room = self.waiting.len() < most;
        if has_room {
            self.waiting.insert(push.repository.clone(), push);
        }
        has_room
    }

    /// When the next push can be delivered; `None` if no push waits.
    pub(super) fn next_due(&self, now: Instant) -> Option<Instant> {
        self.waiting.values().map(|push| self.due(push, now)).min()
    }

    /// The pushes that are due now, in the order of their repositories.
    pub(super) fn take_due(&mut self, now: Instant) -> Vec<RepositoryPush> {
        self.used.retain(|_, used| used.0 > now);
        let due = self.waiting.values().filter(|push| self.due(push, now) <= now);
        let mut keys: Vec<RepositoryAddress> = due.map(|push| push.repository.clone()).collect();
        keys.sort();
        let mut taken = Vec::new();
        for key in keys {
            let Some(push) = self.waiting.get(&key).filter(|push| self.due(push, now) <= now) else {
                continue;
            };
            let rate = if push.verified { VERIFIED } else { UNVERIFIED };
            if !push.verified {
                self.used_by_unverified = Some(ALL_UNVERIFIED.spend(self.used_by_unverified, now));
            }
            let used = rate.spend(self.used.get(&key).copied(), now);
            taken.extend(self.waiting.remove(&key));
            self.used.insert(key, used);
        }
        taken
    }

    fn due(&self, push: &RepositoryPush, now: Instant) -> Instant {
        let used = self.used.get(&push.repository).copied();
        if push.verified {
            return VERIFIED.next(used, now);
        }
        UNVERIFIED.next(used, now).max(ALL_UNVERIFIED.next(self.used_by_unverified, now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pushes::push::Push;

    fn push(path: &str, verified: bool) -> RepositoryPush {
        let push = Push { repositories: vec![format!("https://h/{path}")], ..Push::default() };
        push.by_repository(verified).remove(0)
    }

    /// How many pushes are delivered when one is added every 10 ms for so many seconds.
    fn delivered(seconds: u64, path: impl Fn(u64) -> String, verified: bool) -> (usize, usize) {
        let (mut inbox, start) = (PushInbox::default(), Instant::now());
        let (mut n_delivered, mut n_waiting) = (0, 0);
        for tick in 0..seconds * 100 {
            let now = start + Duration::from_millis(tick * 10);
            inbox.add(push(&path(tick), verified));
            n_delivered += inbox.take_due(now).len();
            n_waiting = n_waiting.max(inbox.waiting.len()).max(inbox.used.len() / 10);
        }
        (n_delivered, n_waiting)
    }

    #[test]
    fn a_single_push_is_delivered_at_once() {
        let (mut inbox, now) = (PushInbox::default(), Instant::now());
        assert!(inbox.next_due(now).is_none() && inbox.add(push("a", false)));
        assert_eq!((inbox.next_due(now), inbox.take_due(now).len()), (Some(now), 1));
        assert!(inbox.take_due(now).is_empty());
    }

    #[test]
    fn a_flood_is_merged_and_the_last_push_is_not_lost() {
        let (mut inbox, now) = (PushInbox::default(), Instant::now());
        let mut n_delivered = 0;
        for _ in 0..1000 {
            inbox.add(push("a", true));
            n_delivered += inbox.take_due(now).len();
        }
        assert_eq!((n_delivered, inbox.waiting.len()), (10, 1));
        let due = inbox.next_due(now).unwrap();
        assert_eq!(due - now, Duration::from_secs(1));
        assert_eq!((inbox.take_due(now).len(), inbox.take_due(due).len()), (0, 1));
    }

    #[test]
    fn floods_cost_a_bounded_number_of_deliveries() {
        let one = |_| "a".to_owned();
        let many = |tick: u64| format!("r{tick}");
        assert_eq!(delivered(60, one, true).0, 10 + 59, "verified, one repository");
        assert_eq!(delivered(60, one, false).0, 5 + 11, "one repository");
        let (n_delivered, n_waiting) = delivered(20, many, false);
        assert!((200..=260).contains(&n_delivered), "any repositories: {n_delivered}");
        assert!(n_waiting <= MOST_UNVERIFIED, "{n_waiting}");
    }

    #[test]
    fn a_flood_of_unknown_senders_leaves_room_for_verified_ones() {
        let (mut inbox, now) = (PushInbox::default(), Instant::now());
        let kept = (0..5000).filter(|n| inbox.add(push(&format!("r{n}"), false))).count();
        assert_eq!(kept, MOST_UNVERIFIED);
        assert!(inbox.add(push("honest", true)) && inbox.add(push("r1", false)));
        let taken = inbox.take_due(now);
        assert!(taken.iter().any(|push| push.verified), "it does not wait for the others");
        assert_eq!(taken.len(), 50 + 1);
    }
}
