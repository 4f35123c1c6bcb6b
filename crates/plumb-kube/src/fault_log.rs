//! How often a repeated fault is logged.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

const FIRST_WAIT: Duration = Duration::from_secs(30);
const LONGEST_WAIT: Duration = Duration::from_mins(10);

/// Decides when a repeated fault is logged: the first time at once, then at growing intervals, with a count.
#[derive(Clone, Debug, Default)]
pub struct FaultLog {
    told: Option<(Instant, Duration)>,
    /// Since the fault was last logged.
    since: u64,
    all: u64,
}

impl FaultLog {
    /// Notes a fault. If it is to be logged: how many times it occurred since it was last logged.
    pub fn fault(&mut self, now: Instant) -> Option<u64> {
        self.since += 1;
        self.all += 1;
        let wait = match self.told {
            None => FIRST_WAIT,
            Some((told, wait)) if now.saturating_duration_since(told) >= wait => {
                wait.saturating_mul(2).min(LONGEST_WAIT)
            }
            Some(_) => return None,
        };
        self.told = Some((now, wait));
        Some(std::mem::take(&mut self.since))
    }

    /// Notes a success. If there were faults before: how many.
    pub fn over(&mut self) -> Option<u64> {
        let all = std::mem::take(self).all;
        (all > 0).then_some(all)
    }
}

/// The fault logs of many subjects, such as apps.
#[derive(Debug)]
pub struct FaultLogs<K>(Mutex<HashMap<K, FaultLog>>);

impl<K> Default for FaultLogs<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Eq + Hash> FaultLogs<K> {
    /// Notes a fault of this subject. If it is to be logged: how many times it occurred since it was last logged.
    pub fn fault(&self, subject: K, now: Instant) -> Option<u64> {
        self.0.lock().entry(subject).or_default().fault(now)
    }

    /// Notes a success. If there were faults before: how many.
    pub fn over(&self, subject: &K) -> Option<u64> {
        self.0.lock().remove(subject)?.over()
    }

    /// Forgets subjects that are gone.
    pub fn forget(&self, is_gone: impl Fn(&K) -> bool) {
        self.0.lock().retain(|subject, _| !is_gone(subject));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_fault_is_logged_at_growing_intervals() {
        let (mut log, start) = (FaultLog::default(), Instant::now());
        let told: Vec<(u64, u64)> = (0..7200)
            .step_by(3)
            .filter_map(|second| log.fault(start + Duration::from_secs(second)).map(|times| (second, times)))
            .collect();
        assert_eq!(told[..5], [(0, 1), (30, 10), (90, 20), (210, 40), (450, 80)]);
        assert!(told.len() < 20, "two hours: {told:?}");
        assert_eq!(log.over(), Some(2400));
        assert_eq!((log.over(), log.fault(start)), (None, Some(1)), "a later fault is logged at once");
    }

    #[test]
    fn each_subject_is_logged_by_itself() {
        let (logs, now) = (FaultLogs::default(), Instant::now());
        assert_eq!(
            (logs.fault("a", now), logs.fault("a", now), logs.fault("b", now)),
            (Some(1), None, Some(1))
        );
        assert_eq!((logs.over(&"a"), logs.over(&"a")), (Some(2), None));
        logs.forget(|subject| *subject == "b");
        assert_eq!(logs.fault("b", now), Some(1));
    }
}
