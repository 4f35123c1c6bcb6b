//! How many runs may be busy with one cluster: one that answers slowly must not hold all workers.

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
    all: usize,
    /// Apps that found no seat.
    waiting: BTreeMap<AppId, Trigger>,
}

/// A seat in use. Dropping it asks for a run of an app that waits for one.
#[derive(Debug)]
pub(crate) struct Seat {
    run_slots: RunSlots,
    queue: Queue,
}

impl RunSlots {
    pub(crate) fn new(n_seats: usize) -> Self {
        let all = n_seats.max(1);
        Self(Arc::new(Mutex::new(State { free: all, all, waiting: BTreeMap::new() })))
    }

    /// A seat; or none, and then the app is asked for again when one is free.
    pub(crate) fn take(&self, queue: &Queue, app: &AppId, trigger: Trigger) -> Option<Seat> {
        let mut state = self.lock();
        if state.free == 0 {
            let waiting = state.waiting.entry(app.clone()).or_insert(trigger);
            *waiting = waiting.merged(trigger);
            return None;
        }
        state.free -= 1;
        Some(Seat { run_slots: self.clone(), queue: queue.clone() })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let next = {
            let mut state = self.run_slots.lock();
            state.free += 1;
            // The app that is asked for may not want its seat any more. While others sit, one of them asks for the
            // next; the last one to leave asks for all.
            if state.free == state.all {
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
    async fn who_finds_no_seat_is_asked_for_when_one_is_free() {
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
    async fn who_does_not_want_its_seat_any_more_holds_nobody_up() {
        let app = |name: &str| AppId { namespace: "argocd".into(), name: name.into() };
        let (queue, run_slots) = (Queue::default(), RunSlots::new(1));
        let live = Trigger::live(TriggerReason::Live);
        let first = run_slots.take(&queue, &app("a"), live);
        for name in ["gone", "here"] {
            assert!(run_slots.take(&queue, &app(name), live).is_none());
        }
        drop(first);
        assert_eq!(queue.depth(), 2, "`gone` may never sit down, so nobody would ask for `here` later");
    }
}
