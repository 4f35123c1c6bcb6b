//! Limits how many runs use one cluster at a time. A cluster that answers slowly must not occupy all workers.
//!
//! A run holds a worker for its first seconds. After that its worker serves other apps, so it counts less: as one of the
//! long runs, whose memory is what limits them. Apps whose last run was long have at most half of all slots, so that other
//! apps of the same cluster go on while many wait for a slow admission webhook.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use plumb_core::app::AppId;
use tokio::time::Instant;

use crate::queue::{Queue, Trigger};

/// After this time a run no longer keeps its worker from other apps.
pub(crate) const LONG: Duration = Duration::from_secs(5);
/// Most long runs of one worker. Each holds the memory of a run.
pub(crate) const MOST_LONG: usize = 4;

/// The slots for runs on one cluster. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct RunSlots(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    /// Most runs at a time.
    most: usize,
    /// Most runs at a time that are not long yet.
    most_short: usize,
    /// The runs, with when they began.
    held: HashMap<AppId, Instant>,
    /// Apps whose last run was long.
    slow: HashSet<AppId>,
    /// Apps that wait for a slot, the longest first.
    order: BTreeMap<u64, AppId>,
    waiting: HashMap<AppId, (u64, Trigger)>,
    n_waited: u64,
    /// True while a task waits for runs that become long.
    has_timer: bool,
}

/// A slot in use. Dropping it requests a run of an app that waits for one.
#[derive(Debug)]
pub(crate) struct RunSlot {
    run_slots: RunSlots,
    queue: Queue,
    app: AppId,
}

impl RunSlots {
    /// The slots of the home cluster. Its runs may hold all workers for a moment, and leave room for long runs on others.
    pub(crate) fn home(n_workers: usize) -> Self {
        Self::new(n_workers, n_workers * (MOST_LONG - 1))
    }

    /// The slots of a registered cluster: never all workers.
    pub(crate) fn registered(n_workers: usize) -> Self {
        Self::new(n_workers / 2, n_workers)
    }

    fn new(most_short: usize, most: usize) -> Self {
        let most_short = most_short.max(1);
        Self(Arc::new(Mutex::new(State {
            most: most.max(most_short),
            most_short,
            held: HashMap::new(),
            slow: HashSet::new(),
            order: BTreeMap::new(),
            waiting: HashMap::new(),
            n_waited: 0,
            has_timer: false,
        })))
    }

    /// Takes a slot. If there is none for the app, returns `None`, and a run of the app is requested when there may be one.
    pub(crate) fn take(&self, queue: &Queue, app: &AppId, trigger: Trigger) -> Option<RunSlot> {
        let mut state = self.lock();
        if state.may_take(app, Instant::now()) {
            state.stop_waiting(app);
            state.held.insert(app.clone(), Instant::now());
            return Some(RunSlot { run_slots: self.clone(), queue: queue.clone(), app: app.clone() });
        }
        state.wait(app, trigger);
        if !std::mem::replace(&mut state.has_timer, true) {
            tokio::spawn(self.clone().serve_when_long(queue.clone()));
        }
        None
    }

    /// Forgets an app.
    pub(crate) fn forget(&self, app: &AppId) {
        let mut state = self.lock();
        state.slow.remove(app);
        state.stop_waiting(app);
    }

    /// A run that becomes long makes room for another one. Ends when no app waits.
    async fn serve_when_long(self, queue: Queue) {
        loop {
            tokio::time::sleep(LONG).await;
            let next = {
                let mut state = self.lock();
                if state.waiting.is_empty() {
                    state.has_timer = false;
                    return;
                }
                let n_short = state.n_short(Instant::now());
                let n_free = (state.most_short.saturating_sub(n_short))
                    .min(state.most.saturating_sub(state.held.len()));
                state.take_waiting(n_free)
            };
            push_all(&queue, next);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }
}

impl State {
    fn may_take(&self, app: &AppId, now: Instant) -> bool {
        if self.held.len() >= self.most || self.n_short(now) >= self.most_short {
            return false;
        }
        let n_slow =
            self.held.iter().filter(|(app, since)| is_long(**since, now) || self.slow.contains(*app)).count();
        !self.slow.contains(app) || n_slow < (self.most / 2).max(1)
    }

    fn n_short(&self, now: Instant) -> usize {
        self.held.values().filter(|since| !is_long(**since, now)).count()
    }

    fn wait(&mut self, app: &AppId, trigger: Trigger) {
        if let Some((_, waiting)) = self.waiting.get_mut(app) {
            *waiting = waiting.merged(trigger);
            return;
        }
        self.n_waited += 1;
        self.order.insert(self.n_waited, app.clone());
        self.waiting.insert(app.clone(), (self.n_waited, trigger));
    }

    fn stop_waiting(&mut self, app: &AppId) -> Option<(AppId, Trigger)> {
        let (number, trigger) = self.waiting.remove(app)?;
        self.order.remove(&number);
        Some((app.clone(), trigger))
    }

    /// The apps that have waited longest, up to so many of those that may take a slot now.
    fn take_waiting(&mut self, most: usize) -> Vec<(AppId, Trigger)> {
        let now = Instant::now();
        let next: Vec<AppId> =
            self.order.values().filter(|app| self.may_take(app, now)).take(most).cloned().collect();
        next.iter().filter_map(|app| self.stop_waiting(app)).collect()
    }
}

fn is_long(since: Instant, now: Instant) -> bool {
    now.saturating_duration_since(since) >= LONG
}

fn push_all(queue: &Queue, apps: Vec<(AppId, Trigger)>) {
    for (app, trigger) in apps {
        queue.push(app, trigger);
    }
}

impl Drop for RunSlot {
    fn drop(&mut self) {
        let next = {
            let mut state = self.run_slots.lock();
            let since = state.held.remove(&self.app);
            if since.is_some_and(|since| is_long(since, Instant::now())) {
                state.slow.insert(self.app.clone());
            } else {
                state.slow.remove(&self.app);
            }
            // The next app may no longer need a slot, and then it never frees one. So the last slot to become
            // free requests runs of all waiting apps.
            let n_next = if state.held.is_empty() { usize::MAX } else { 1 };
            state.take_waiting(n_next)
        };
        push_all(&self.queue, next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::{RefreshDepth, TriggerReason};

    fn live() -> Trigger {
        Trigger::live(TriggerReason::Live)
    }

    fn app(name: &str) -> AppId {
        AppId { namespace: "argocd".into(), name: name.into() }
    }

    #[tokio::test]
    async fn an_app_without_a_slot_runs_when_one_is_free() {
        let (queue, run_slots) = (Queue::default(), RunSlots::new(1, 1));
        let first = run_slots.take(&queue, &app("a"), live());
        assert!(first.is_some());
        assert!(run_slots.take(&queue, &app("b"), live()).is_none());
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
        let (queue, run_slots) = (Queue::default(), RunSlots::new(1, 1));
        let first = run_slots.take(&queue, &app("a"), live());
        for name in ["gone", "here"] {
            assert!(run_slots.take(&queue, &app(name), live()).is_none());
        }
        drop(first);
        assert_eq!(
            queue.depth(),
            2,
            "`gone` may never take a slot, so nothing would request a run of `here` later"
        );
    }

    #[tokio::test]
    async fn apps_are_served_in_the_order_in_which_they_came() {
        let (queue, run_slots) = (Queue::default(), RunSlots::new(2, 2));
        let first = run_slots.take(&queue, &app("x"), live());
        let _held = run_slots.take(&queue, &app("y"), live());
        for name in ["m", "a", "z"] {
            assert!(run_slots.take(&queue, &app(name), live()).is_none());
        }
        drop(first);
        let next = queue.next().await.unwrap();
        assert_eq!((next.app.name.as_str(), queue.depth()), ("m", 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_run_makes_room_for_another_one() {
        let (queue, run_slots) = (Queue::default(), RunSlots::new(1, 2));
        let _long = run_slots.take(&queue, &app("a"), live());
        assert!(run_slots.take(&queue, &app("b"), live()).is_none());
        let next = queue.next().await.unwrap();
        assert_eq!(next.app.name, "b", "requested when the first run became long");
        let _second = run_slots.take(&queue, &next.app, live()).unwrap();
        tokio::time::advance(LONG).await;
        assert!(run_slots.take(&queue, &app("c"), live()).is_none(), "there are two long runs");
    }

    #[tokio::test(start_paused = true)]
    async fn apps_with_long_runs_leave_half_of_the_slots_to_others() {
        let (queue, run_slots) = (Queue::default(), RunSlots::new(4, 8));
        let slow: Vec<AppId> = (0..6).map(|n| app(&format!("slow-{n}"))).collect();
        for id in &slow {
            let taken = run_slots.take(&queue, id, live());
            assert!(taken.is_some());
            tokio::time::advance(LONG).await;
        }
        let mut held = Vec::new();
        for id in &slow {
            held.extend(run_slots.take(&queue, id, live()));
            tokio::time::advance(LONG).await;
        }
        assert_eq!(held.len(), 4, "half of eight");
        for name in ["b", "c", "d", "e"] {
            held.push(run_slots.take(&queue, &app(name), live()).unwrap());
        }
        assert!(run_slots.take(&queue, &app("f"), live()).is_none());
        // A quick run of another app ends: the next one is served, not one of those that have their half.
        held.pop();
        let next = queue.next().await.unwrap();
        assert_eq!((next.app.name.as_str(), queue.depth()), ("f", 0));
    }
}
