//! Limits how many runs use one cluster at a time. A cluster that answers slowly must not occupy all workers.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use plumb_core::app::AppId;

use crate::queue::{Queue, Trigger};

/// The slots for runs on one cluster. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct RunSlots(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    free: usize,
    total: usize,
    /// Apps that wait for a slot.
    waiting: BTreeMap<AppId, Trigger>,
}

/// A slot in use. Dropping it requests a run of an app that waits for one.
#[derive(Debug)]
pub(crate) struct RunSlot {
    run_slots: RunSlots,
    queue: Queue,
}

impl RunSlots {
    pub(crate) fn new(n_slots: usize) -> Self {
        let total = n_slots.max(1);
        Self(Arc::new(Mutex::new(State { free: total, total, waiting: BTreeMap::new() })))
    }

    /// Takes a slot. If none is free, returns `None`, and a run of the app is requested when one becomes
    /// free.
    pub(crate) fn take(&self, queue: &Queue, app: &AppId, trigger: Trigger) -> Option<RunSlot> {
        let mut state = self.lock();
        if state.free == 0 {
            let waiting = state.waiting.entry(app.clone()).or_insert(trigger);
            *waiting = waiting.merged(trigger);
            return None;
        }
        state.free -= 1;
        Some(RunSlot { run_slots: self.clone(), queue: queue.clone() })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }
}

impl Drop for RunSlot {
    fn drop(&mut self) {
        let next = {
            let mut state = self.run_slots.lock();
            state.free += 1;
            // The next app may no longer need a slot, and then it never frees one. So the last slot to become
            // free requests runs of all waiting apps.
            if state.free == state.total {
                std::mem::take(&mut state.waiting)
            } else {
                state.waiting.pop_first().into_iter().collect()
            }
        };
        for (app, trigger) in next {
            self.queue.push(app, trigger);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::{RefreshDepth, TriggerReason};

    #[tokio::test]
    async fn an_app_without_a_slot_runs_when_one_is_free() {
        let app = |name: &str| AppId { namespace: "argocd".into(), name: name.into() };
        let (queue, run_slots) = (Queue::default(), RunSlots::new(1));
        let first = run_slots.take(&queue, &app("a"), Trigger::live(TriggerReason::Live));
        assert!(first.is_some());
        assert!(run_slots.take(&queue, &app("b"), Trigger::live(TriggerReason::Live)).is_none());
        assert!(
            run_slots
                .take(&queue, &app("b"), Trigger::new(RefreshDepth::Hard, TriggerReason::Refresh))
                .is_none()
        );
        assert_eq!(queue.depth(), 0);
        drop(first);
        let next = queue.next().await.unwrap();
        assert_eq!((next.app.name.as_str(), next.trigger.depth), ("b", RefreshDepth::Hard));
        assert!(run_slots.take(&queue, &next.app, next.trigger).is_some());
    }

    #[tokio::test]
    async fn an_app_that_no_longer_needs_a_slot_does_not_block_others() {
        let app = |name: &str| AppId { namespace: "argocd".into(), name: name.into() };
        let (queue, run_slots) = (Queue::default(), RunSlots::new(1));
        let live = Trigger::live(TriggerReason::Live);
        let first = run_slots.take(&queue, &app("a"), live);
        for name in ["gone", "here"] {
            assert!(run_slots.take(&queue, &app(name), live).is_none());
        }
        drop(first);
        assert_eq!(
            queue.depth(),
            2,
            "`gone` may never take a slot, so nothing would request a run of `here` later"
        );
    }
}
