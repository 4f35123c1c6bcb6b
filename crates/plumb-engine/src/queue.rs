//! Which app is looked at next. Requests for one app are merged while they wait, and an app is never in the
//! hands of two workers: what comes in while it runs is handed out when that run is done.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use plumb_core::app::AppId;
use tokio::sync::Notify;

/// How far a run has to look. Ordered: the later includes the earlier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Look {
    /// The cluster changed: compare with the commit that is known.
    #[default]
    Live,
    /// Resolve the revision again, as every so often.
    Git,
    /// The same because somebody asked for it.
    GitNow,
    /// Ask the repository now and use no cached render or verdict.
    Hard,
}

/// Why an app is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trigger {
    /// How far to look.
    pub look: Look,
    /// For logs and metrics.
    pub reason: &'static str,
    /// When the reason arose. What a server said after that is new enough, whoever asked it.
    pub at: Instant,
    /// Does it tell of a change? A poll does not, nor does a time that has come.
    pub is_news: bool,
    /// Did a run for it give way to others once, since servers took long? It does so only once.
    pub gave_way: bool,
}

impl Trigger {
    /// A trigger whose reason arises now.
    pub fn new(look: Look, reason: &'static str) -> Self {
        Self { look, reason, at: Instant::now(), is_news: true, gave_way: false }
    }

    /// Time to ask Git, though nobody told of a change.
    pub(crate) fn poll() -> Self {
        Self { is_news: false, ..Self::new(Look::Git, "poll") }
    }

    /// Time alone may have changed something: the run that asked for it says what.
    pub(crate) fn due(reason: &'static str) -> Self {
        Self { is_news: false, ..Self::new(Look::Live, reason) }
    }

    /// Both together: the farthest look wins.
    pub(crate) fn merged(self, other: Self) -> Self {
        let farther = if other.look > self.look { other } else { self };
        // Looks at the cluster alone do not make what Git said any older.
        let asks_git = |trigger: &Self| trigger.look > Look::Live;
        let at = [self, other].into_iter().filter(asks_git).map(|trigger| trigger.at).max();
        Self {
            at: at.unwrap_or(farther.at),
            is_news: self.is_news || other.is_news,
            gave_way: self.gave_way && other.gave_way,
            ..farther
        }
    }
}

#[derive(Debug, Default)]
struct State {
    /// Apps in the order in which they are handed out. Every app in here has an entry in `waiting`.
    order: VecDeque<AppId>,
    waiting: HashMap<AppId, Waiting>,
    running: HashMap<AppId, Running>,
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
pub struct Load {
    /// Apps that wait.
    pub n_waiting: usize,
    /// Requests that were not merged with one that waited already, since the start.
    pub n_added: u64,
    /// How long all runs together have been under way.
    pub unfinished: Duration,
    /// How long the longest of them has.
    pub longest: Duration,
}

/// A deduplicating queue of apps. Cheap to clone; all clones are one queue.
#[derive(Clone, Debug, Default)]
pub struct Queue {
    state: Arc<Mutex<State>>,
    arrived: Arc<Notify>,
}

/// An app in the hands of one worker. Dropping it gives the app back, also when the run panicked.
#[derive(Debug)]
pub struct Job {
    /// Which app.
    pub app: AppId,
    /// Why.
    pub trigger: Trigger,
    /// How long it waited for a worker.
    pub waited: Duration,
    queue: Queue,
}

impl Queue {
    /// Asks for a run.
    pub fn push(&self, app: AppId, trigger: Trigger) {
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

    /// Asks for a run after some time. Used for backoff and polling, and to gather events of one change.
    pub fn push_after(&self, app: AppId, trigger: Trigger, delay: Duration) {
        let queue = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(delay).await;
            queue.push(app, trigger);
        });
    }

    /// The next app; `None` once the queue is closed.
    pub async fn next(&self) -> Option<Job> {
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
    pub fn close(&self) {
        self.with(|state| {
            state.closed = true;
            state.order.clear();
            state.waiting.clear();
        });
        self.arrived.notify_one();
    }

    /// How busy it is.
    pub fn load(&self, now: Instant) -> Load {
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
        // A panic while the lock was held cannot leave half a change behind: each is one map operation.
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
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

    fn app(name: &str) -> AppId {
        AppId { namespace: "argocd".into(), name: name.into() }
    }

    fn live() -> Trigger {
        Trigger::new(Look::Live, "live")
    }

    #[tokio::test]
    async fn requests_for_one_app_are_merged_and_the_farthest_look_wins() {
        let queue = Queue::default();
        queue.push(app("a"), live());
        queue.push(app("b"), live());
        queue.push(app("a"), Trigger::new(Look::Hard, "annotation"));
        queue.push(app("a"), live());
        let first = queue.next().await.unwrap();
        assert_eq!((first.app.name.as_str(), first.trigger.look), ("a", Look::Hard));
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
            assert_eq!((job.trigger.look, job.trigger.is_news), (Look::Git, others > 0), "{app_name}");
        }
    }

    #[tokio::test]
    async fn an_app_is_never_in_two_hands_and_nothing_is_lost() {
        let queue = Queue::default();
        queue.push(app("a"), live());
        let job = queue.next().await.unwrap();
        queue.push(app("a"), Trigger::new(Look::Git, "commit"));
        assert_eq!(queue.depth(), 0, "not handed out while it runs");
        drop(job);
        let again = queue.next().await.unwrap();
        assert_eq!(again.trigger.look, Look::Git);
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
