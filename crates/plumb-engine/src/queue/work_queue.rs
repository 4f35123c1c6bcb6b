//! The queue of apps. Requests for one app are merged while they wait. No app is run by two workers at once: a request
//! that arrives during a run is handed out when that run is done.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use plumb_core::app::AppId;
use tokio::sync::Notify;

use super::Trigger;
use super::delayed::Delayed;

#[derive(Debug, Default)]
struct State {
    /// Apps in the order in which they are handed out. Every app in here has an entry in `waiting`.
    order: VecDeque<AppId>,
    waiting: HashMap<AppId, Waiting>,
    running: HashMap<AppId, Running>,
    delayed: Delayed,
    /// True while the timer task for `delayed` runs.
    has_timer: bool,
    closed: bool,
    n_added: u64,
}

#[derive(Debug)]
struct Waiting {
    trigger: Trigger,
    since: Instant,
}

#[derive(Debug)]
struct Running {
    since: Instant,
    /// What came in meanwhile.
    next: Option<Trigger>,
}

/// How busy the queue is, for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Load {
    /// Apps that wait.
    pub(crate) n_waiting: usize,
    /// Requests that were not merged with one that waited already, since the start.
    pub(crate) n_added: u64,
    /// How long all runs together have been under way.
    pub(crate) unfinished: Duration,
    /// How long the longest of them has.
    pub(crate) longest: Duration,
}

/// A deduplicating queue of apps. Cheap to clone; all clones are one queue.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    state: Arc<Mutex<State>>,
    arrived: Arc<Notify>,
    /// Tells the timer of a delayed trigger that may be due before the others.
    delayed: Arc<Notify>,
}

/// An app in the hands of one worker. Dropping it gives the app back, also when the run panicked.
#[derive(Debug)]
pub(crate) struct Job {
    /// Which app.
    pub(crate) app: AppId,
    /// Why.
    pub(crate) trigger: Trigger,
    /// How long it waited for a worker.
    pub(crate) waited: Duration,
    queue: Queue,
}

impl Queue {
    /// Asks for a run.
    pub(crate) fn push(&self, app: AppId, trigger: Trigger) {
        self.with(|state| {
            if state.closed {
                return;
            }
            if let Some(running) = state.running.get_mut(&app) {
                running.next = Some(running.next.map_or(trigger, |next| next.merged(trigger)));
                return;
            }
            if let Some(waiting) = state.waiting.get_mut(&app) {
                waiting.trigger = waiting.trigger.merged(trigger);
            } else {
                state.n_added += 1;
                state.waiting.insert(app.clone(), Waiting { trigger, since: Instant::now() });
                state.order.push_back(app);
            }
        });
        self.arrived.notify_one();
    }

    /// Requests a run after some time.
    pub(crate) fn push_after(&self, app: AppId, trigger: Trigger, delay: Duration) {
        let due = tokio::time::Instant::now() + delay;
        self.delay(|delayed| delayed.add(app, trigger, due));
    }

    /// Requests a run within some time, to gather the events of one change.
    pub(crate) fn push_within(&self, app: AppId, trigger: Trigger, delay: Duration) {
        let now = tokio::time::Instant::now();
        self.delay(|delayed| delayed.add_within(app, trigger, now, delay));
    }

    /// Adds to the delayed triggers, and starts the timer if it does not run.
    fn delay(&self, add: impl FnOnce(&mut Delayed)) {
        let starts_timer = self.with(|state| {
            if state.closed {
                return false;
            }
            add(&mut state.delayed);
            !std::mem::replace(&mut state.has_timer, true)
        });
        if starts_timer {
            tokio::spawn(self.clone().run_timer());
        } else {
            self.delayed.notify_one();
        }
    }

    /// Hands over delayed triggers when they are due. Ends when there are none.
    async fn run_timer(self) {
        loop {
            let added = self.delayed.notified();
            let (due, next) = self.with(|state| {
                let due = state.delayed.take_due(tokio::time::Instant::now());
                let next = state.delayed.next_due();
                state.has_timer = next.is_some();
                (due, next)
            });
            for (app, trigger) in due {
                self.push(app, trigger);
            }
            let Some(next) = next else { return };
            tokio::select! {
                () = tokio::time::sleep_until(next) => {}
                () = added => {}
            }
        }
    }

    /// The next app; `None` once the queue is closed.
    pub(crate) async fn next(&self) -> Option<Job> {
        loop {
            let arrived = self.arrived.notified();
            let (job, closed) = self.with(|state| {
                let job = state.order.pop_front().and_then(|app| {
                    let Waiting { trigger, since } = state.waiting.remove(&app)?;
                    state.running.insert(app.clone(), Running { since: Instant::now(), next: None });
                    Some(Job { app, trigger, waited: since.elapsed(), queue: self.clone() })
                });
                (job, state.closed)
            });
            if job.is_some() {
                // Another worker may sleep while more is waiting: pass the wake-up on.
                self.arrived.notify_one();
                return job;
            }
            if closed {
                self.arrived.notify_one();
                return None;
            }
            arrived.await;
        }
    }

    /// Hands out nothing more; workers end when they ask for the next app.
    pub(crate) fn close(&self) {
        self.with(|state| {
            state.closed = true;
            state.order.clear();
            state.waiting.clear();
            state.delayed = Delayed::default();
        });
        self.arrived.notify_one();
        self.delayed.notify_one();
    }

    /// How busy it is.
    pub(crate) fn load(&self, now: Instant) -> Load {
        self.with(|state| {
            let runs = state.running.values().map(|running| now.saturating_duration_since(running.since));
            Load {
                n_waiting: state.order.len(),
                n_added: state.n_added,
                unfinished: runs.clone().sum(),
                longest: runs.max().unwrap_or_default(),
            }
        })
    }

    /// How many apps wait.
    #[cfg(test)]
    pub(crate) fn depth(&self) -> usize {
        self.load(Instant::now()).n_waiting
    }

    fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.state.lock())
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        let again = self.queue.with(|state| state.running.remove(&self.app)?.next);
        if let Some(trigger) = again {
            self.queue.push(self.app.clone(), trigger);
        }
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

    #[tokio::test]
    async fn requests_for_one_app_are_merged_and_the_farthest_look_wins() {
        let queue = Queue::default();
        queue.push(app("a"), live());
        queue.push(app("b"), live());
        queue.push(app("a"), Trigger::new(RefreshDepth::Hard, TriggerReason::Refresh));
        queue.push(app("a"), live());
        let first = queue.next().await.unwrap();
        assert_eq!((first.app.name.as_str(), first.trigger.depth), ("a", RefreshDepth::Hard));
        let second = queue.next().await.unwrap();
        assert_eq!(second.app.name, "b");
        assert_eq!(queue.depth(), 0);
    }

    #[tokio::test]
    async fn a_poll_is_news_once_something_else_tells_of_a_change() {
        let queue = Queue::default();
        for (app_name, others) in [("polled", 0), ("changed", 1)] {
            queue.push(app(app_name), Trigger::poll());
            (0..others).for_each(|_| queue.push(app(app_name), live()));
            queue.push(app(app_name), Trigger::poll());
            let job = queue.next().await.unwrap();
            assert_eq!(
                (job.trigger.depth, job.trigger.is_news),
                (RefreshDepth::Git, others > 0),
                "{app_name}"
            );
        }
    }

    #[tokio::test]
    async fn an_app_is_never_in_two_hands_and_nothing_is_lost() {
        let queue = Queue::default();
        queue.push(app("a"), live());
        let job = queue.next().await.unwrap();
        queue.push(app("a"), Trigger::new(RefreshDepth::Git, TriggerReason::Webhook));
        assert_eq!(queue.depth(), 0, "not handed out while it runs");
        drop(job);
        let again = queue.next().await.unwrap();
        assert_eq!(again.trigger.depth, RefreshDepth::Git);
    }

    #[tokio::test]
    async fn the_load_tells_of_runs_that_are_under_way() {
        let queue = Queue::default();
        for name in ["a", "b", "c"] {
            queue.push(app(name), live());
        }
        queue.push(app("c"), live());
        let (first, second) = (queue.next().await.unwrap(), queue.next().await.unwrap());
        let later = Instant::now() + Duration::from_mins(1);
        let load = queue.load(later);
        assert_eq!((load.n_waiting, load.n_added), (1, 3));
        assert!(load.longest >= Duration::from_mins(1) && load.unfinished >= Duration::from_mins(2));
        drop((first, second));
        let load = queue.load(later);
        assert_eq!((load.longest, load.unfinished), (Duration::ZERO, Duration::ZERO));
    }

    #[tokio::test(start_paused = true)]
    async fn delayed_requests_come_when_they_are_due_and_one_timer_serves_all() {
        let queue = Queue::default();
        queue.push_after(app("late"), live(), Duration::from_mins(1));
        for _ in 0..100 {
            queue.push_within(app("soon"), live(), Duration::from_millis(2));
        }
        queue.push_after(app("late"), live(), Duration::from_secs(1));
        let started = tokio::time::Instant::now();
        for (name, after) in [("soon", 2), ("late", 1_000), ("late", 60_000)] {
            let job = queue.next().await.unwrap();
            let elapsed = started.elapsed().as_millis();
            assert_eq!(job.app.name, name);
            assert!((after..after + 5).contains(&elapsed), "{name} after {elapsed} ms");
        }
        tokio::task::yield_now().await;
        assert!(!queue.with(|state| state.has_timer), "the timer ends with the last delayed request");
        queue.push_after(app("again"), live(), Duration::from_secs(1));
        assert_eq!(queue.next().await.unwrap().app.name, "again");
    }

    #[tokio::test]
    async fn closing_ends_every_worker() {
        let queue = Queue::default();
        let workers: Vec<_> = (0..4)
            .map(|_| {
                tokio::spawn({
                    let queue = queue.clone();
                    async move { queue.next().await.is_none() }
                })
            })
            .collect();
        tokio::task::yield_now().await;
        queue.close();
        // Whoever tells of a change after that is too late.
        queue.push(app("a"), live());
        assert_eq!(queue.depth(), 0);
        for worker in workers {
            assert!(worker.await.unwrap());
        }
    }
}
