//! The first runs of the apps that an `ApplicationSet` creates. They wait until the set has created all of them: their
//! requests would slow down the creation of the others.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use plumb_core::app::AppId;

use super::{Queue, Trigger, TriggerReason};

/// The apps whose first run waits, by set.
#[derive(Debug, Default)]
pub(crate) struct FirstRuns {
    held: Mutex<BTreeMap<AppId, Vec<(AppId, Trigger)>>>,
}

impl FirstRuns {
    /// Holds the first runs of the apps of a set until the answer is dropped.
    pub(crate) fn hold<'a>(&'a self, set: &AppId, queue: &'a Queue) -> Hold<'a> {
        self.held.lock().insert(set.clone(), Vec::new());
        Hold { runs: self, set: set.clone(), queue }
    }

    /// Requests a run, or keeps the request if it is the first one of an app whose set still creates others.
    pub(crate) fn push(&self, set: Option<&AppId>, app: AppId, trigger: Trigger, queue: &Queue) {
        if trigger.reason == TriggerReason::New
            && let Some(set) = set
            && let Some(held) = self.held.lock().get_mut(set)
        {
            held.push((app, trigger));
            return;
        }
        queue.push(app, trigger);
    }
}

/// While it exists, the first runs of a set's apps wait.
#[derive(Debug)]
#[must_use]
pub(crate) struct Hold<'a> {
    runs: &'a FirstRuns,
    set: AppId,
    queue: &'a Queue,
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        let held = self.runs.held.lock().remove(&self.set);
        for (app, trigger) in held.into_iter().flatten() {
            self.queue.push(app, trigger);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> AppId {
        AppId { namespace: "argocd".into(), name: name.into() }
    }

    fn new() -> Trigger {
        Trigger::live(TriggerReason::New)
    }

    #[tokio::test]
    async fn first_runs_wait_for_their_set_and_for_no_other() {
        let (runs, queue) = (FirstRuns::default(), Queue::default());
        let n_waiting = || queue.depth();
        let hold = runs.hold(&id("teams"), &queue);
        runs.push(Some(&id("teams")), id("one"), new(), &queue);
        runs.push(Some(&id("teams")), id("two"), new(), &queue);
        assert_eq!(n_waiting(), 0);
        runs.push(Some(&id("others")), id("three"), new(), &queue);
        runs.push(None, id("four"), new(), &queue);
        assert_eq!(n_waiting(), 2, "of another set, or of none");
        runs.push(Some(&id("teams")), id("one"), Trigger::live(TriggerReason::Refresh), &queue);
        assert_eq!(n_waiting(), 3, "a user asks for it");
        drop(hold);
        assert_eq!(n_waiting(), 4, "one and two, of which one was requested twice");
        runs.push(Some(&id("teams")), id("five"), new(), &queue);
        assert_eq!(n_waiting(), 5, "the set is done");
    }
}
