//! Triggers for a later time, for all apps in one place: one timer serves them all.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use plumb_core::app::AppId;
use tokio::time::Instant;

use super::Trigger;

/// Triggers with the times at which they are due.
#[derive(Debug, Default)]
pub(super) struct Delayed {
    by_time: BTreeSet<(Instant, AppId)>,
    by_app: HashMap<AppId, BTreeMap<Instant, Trigger>>,
}

impl Delayed {
    /// Adds a trigger for a time. Two triggers of one app for the same time become one.
    pub(super) fn add(&mut self, app: AppId, trigger: Trigger, due: Instant) {
        self.by_time.insert((due, app.clone()));
        let waiting = self.by_app.entry(app).or_default();
        waiting.entry(due).and_modify(|waiting| *waiting = waiting.merged(trigger)).or_insert(trigger);
    }

    /// Adds a trigger that may fire earlier: what it tells of has happened already. A trigger of the same app that is due
    /// before takes it in, so that the events of one change cause one run.
    pub(super) fn add_within(&mut self, app: AppId, trigger: Trigger, now: Instant, delay: Duration) {
        let due = now + delay;
        let sooner = self.by_app.get_mut(&app).and_then(|waiting| waiting.range_mut(..=due).next());
        match sooner {
            Some((_, waiting)) => *waiting = waiting.merged(trigger),
            None => self.add(app, trigger, due),
        }
    }

    /// When the next trigger is due.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.by_time.first().map(|(due, _)| *due)
    }

    /// Takes every trigger that is due.
    pub(super) fn take_due(&mut self, now: Instant) -> Vec<(AppId, Trigger)> {
        let mut taken = Vec::new();
        while let Some((due, app)) = self.by_time.pop_first() {
            if due > now {
                self.by_time.insert((due, app));
                break;
            }
            let Some(waiting) = self.by_app.get_mut(&app) else { continue };
            let trigger = waiting.remove(&due);
            if waiting.is_empty() {
                self.by_app.remove(&app);
            }
            taken.extend(trigger.map(|trigger| (app, trigger)));
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::{RefreshDepth, TriggerReason};

    fn app(name: &str) -> AppId {
        AppId { namespace: "argocd".into(), name: name.into() }
    }

    fn live() -> Trigger {
        Trigger::live(TriggerReason::Live)
    }

    #[test]
    fn triggers_are_taken_when_they_are_due_and_in_order() {
        let start = Instant::now();
        let after = |ms| start + Duration::from_millis(ms);
        let mut delayed = Delayed::default();
        assert_eq!(delayed.next_due(), None);
        delayed.add(app("b"), live(), after(20));
        delayed.add(app("a"), live(), after(10));
        delayed.add(app("a"), Trigger::new(RefreshDepth::Git, TriggerReason::Retry), after(30));
        assert_eq!(delayed.next_due(), Some(after(10)));
        assert!(delayed.take_due(after(9)).is_empty());
        let taken: Vec<AppId> = delayed.take_due(after(25)).into_iter().map(|(app, _)| app).collect();
        assert_eq!(taken, [app("a"), app("b")]);
        let last = delayed.take_due(after(30));
        assert_eq!(last.iter().map(|(_, trigger)| trigger.depth).collect::<Vec<_>>(), [RefreshDepth::Git]);
        assert_eq!((delayed.next_due(), delayed.by_app.len()), (None, 0));
    }

    #[test]
    fn events_of_one_change_become_one_trigger_and_a_later_time_stays() {
        let start = Instant::now();
        let batch = Duration::from_millis(2);
        let mut delayed = Delayed::default();
        let retry = start + Duration::from_secs(3);
        delayed.add(app("a"), Trigger::live(TriggerReason::Retry), retry);
        for n in 0..5 {
            let now = start + Duration::from_micros(100 * n);
            delayed.add_within(app("a"), live(), now, batch);
        }
        assert_eq!(delayed.by_time.len(), 2);
        assert_eq!(delayed.take_due(start + batch).len(), 1);
        assert_eq!(delayed.next_due(), Some(retry));
    }
}
