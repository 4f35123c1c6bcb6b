//! How often one caller may call.

use std::collections::HashMap;
use std::time::Instant;

use parking_lot::Mutex;

/// Calls that a caller may make at once, and per second from then on. A page of Argo CD makes some dozens at once.
const AT_ONCE: f64 = 400.0;
const PER_SECOND: f64 = 100.0;
/// How many callers are remembered. Beyond that, those who can call freely again are forgotten.
const MOST_CALLERS: usize = 10_000;

/// The calls of each caller.
pub(crate) struct CallRates {
    at_once: f64,
    per_second: f64,
    budgets: Mutex<HashMap<String, Budget>>,
}

impl Default for CallRates {
    fn default() -> Self {
        Self::new(AT_ONCE, PER_SECOND)
    }
}

#[derive(Clone, Copy)]
struct Budget {
    left: f64,
    at: Instant,
}

impl CallRates {
    /// Permits so many calls at once, and so many per second from then on.
    pub(crate) fn new(at_once: f64, per_second: f64) -> Self {
        Self { at_once, per_second, budgets: Mutex::default() }
    }

    fn left_at(&self, budget: Budget, now: Instant) -> f64 {
        let passed = now.saturating_duration_since(budget.at);
        (budget.left + passed.as_secs_f64() * self.per_second).min(self.at_once)
    }

    /// Takes one call from the budget of a caller. Returns false if it is used up.
    pub(crate) fn take(&self, caller: &str, now: Instant) -> bool {
        let mut budgets = self.budgets.lock();
        if budgets.len() >= MOST_CALLERS && !budgets.contains_key(caller) {
            budgets.retain(|_, budget| self.left_at(*budget, now) < self.at_once);
            // Strangers who all call at their limit: a new one has to wait until one of them rests.
            if budgets.len() >= MOST_CALLERS {
                return false;
            }
        }
        let fresh = Budget { left: self.at_once, at: now };
        let budget = budgets.entry(caller.to_owned()).or_insert(fresh);
        let left = self.left_at(*budget, now);
        let may_call = left >= 1.0;
        *budget = Budget { left: if may_call { left - 1.0 } else { left }, at: now };
        may_call
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const TRY_AGAIN: Duration = Duration::from_secs(1);

    #[test]
    fn a_caller_who_calls_too_often_waits_and_others_do_not() {
        let (rates, now) = (CallRates::default(), Instant::now());
        let calls = (0..1000).filter(|_| rates.take("ann", now)).count();
        assert_eq!(calls, 400);
        assert!(rates.take("bob", now));
        let later = now + TRY_AGAIN;
        let calls = (0..1000).filter(|_| rates.take("ann", later)).count();
        assert_eq!(calls, 100);
    }

    #[test]
    fn logins_have_a_smaller_budget() {
        let (rates, now) = (CallRates::new(20.0, 2.0), Instant::now());
        assert_eq!((0..100).filter(|_| rates.take("192.0.2.1", now)).count(), 20);
        let later = now + TRY_AGAIN;
        assert_eq!((0..100).filter(|_| rates.take("192.0.2.1", later)).count(), 2);
    }

    #[test]
    fn many_callers_are_forgotten_when_they_rest() {
        let (rates, now) = (CallRates::default(), Instant::now());
        for n in 0..MOST_CALLERS {
            assert!(rates.take(&n.to_string(), now));
        }
        assert!(!rates.take("one more", now));
        assert!(rates.take("one more", now + TRY_AGAIN));
    }
}
