//! Large apps take turns.
//!
//! Manifests take ten to twenty times the memory of their text while an app is compared: once as Git asks for them, once
//! as the cluster has them, and once more as the API server would make them. A chart with a dozen CRDs takes a hundred
//! megabytes for some seconds, and two dozen workers could run as many of them at the same time. So apps whose manifests
//! are large take turns: as many run at once as fit into a budget, and at least one. An app that waits holds no worker
//! and no slot for renderings. Small apps never wait.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use plumb_core::app::AppId;
use tokio::time::Instant;

use crate::queue::{Queue, Trigger};

/// Bytes of manifests from which on an app is large.
const LARGE: u64 = 256 << 10;
/// Bytes of manifests of all large apps that run at the same time.
const BUDGET: u64 = 2 << 20;
/// An app waits no longer than this: memory is less important than an app that stands still, for example because another
/// one waits for a server that does not answer.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// The large apps. Clones share them.
#[derive(Clone)]
pub(crate) struct LargeApps(Arc<Shared>);

struct Shared {
    queue: Queue,
    state: Mutex<State>,
    has_room: Condvar,
}

#[derive(Default)]
struct State {
    /// The size of each large app, as it was last rendered.
    sizes: HashMap<AppId, u64>,
    /// The large apps that run now.
    running: HashMap<AppId, Running>,
    /// Apps that wait for their turn, and since when.
    waiting: BTreeMap<AppId, (Trigger, Instant)>,
}

#[derive(Default)]
struct Running {
    bytes: u64,
    n_turns: usize,
}

/// The turn of a large app. It ends when the last one of the app is dropped.
pub(crate) struct Turn {
    apps: LargeApps,
    app: AppId,
}

impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Turn").field(&self.app).finish()
    }
}

impl LargeApps {
    pub(crate) fn new(queue: Queue) -> Self {
        Self(Arc::new(Shared { queue, state: Mutex::default(), has_room: Condvar::new() }))
    }

    /// The turn of an app that is to run; nothing for a small app. If the app has to wait, returns an error, and a run of
    /// the app is requested when its turn comes.
    pub(crate) fn take_turn(&self, app: &AppId, trigger: Trigger) -> Result<Option<Turn>, Waiting> {
        let mut state = self.0.state.lock();
        let Some(bytes) = state.sizes.get(app).copied() else { return Ok(None) };
        let now = Instant::now();
        let since = state.waiting.get(app).map_or(now, |(_, since)| *since);
        if !state.has_room(app, bytes) && now.duration_since(since) < LONGEST_WAIT {
            let waiting = state.waiting.entry(app.clone()).or_insert((trigger, now));
            waiting.0 = waiting.0.merged(trigger);
            drop(state);
            self.0.queue.push_after(app.clone(), trigger, LONGEST_WAIT);
            return Err(Waiting);
        }
        state.waiting.remove(app);
        state.begin(app, bytes);
        Ok(Some(Turn { apps: self.clone(), app: app.clone() }))
    }

    /// Waits until there is room for manifests of this size, on a thread that may block. `before_waiting` is called first
    /// if it has to wait. An app whose turn it is does not wait: it may have several sources, or render a second time.
    pub(crate) fn wait_for_turn(
        &self,
        app: &AppId,
        bytes: usize,
        before_waiting: impl FnOnce(),
    ) -> Option<Turn> {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let mut state = self.0.state.lock();
        if bytes < LARGE {
            // Another source of the app may be large.
            if !state.running.contains_key(app) {
                state.sizes.remove(app);
            }
            return None;
        }
        state.sizes.insert(app.clone(), bytes);
        if !state.has_room(app, bytes) {
            drop(state);
            before_waiting();
            state = self.0.state.lock();
            let deadline = std::time::Instant::now() + LONGEST_WAIT;
            while !state.has_room(app, bytes) {
                if self.0.has_room.wait_until(&mut state, deadline).timed_out() {
                    break;
                }
            }
        }
        state.begin(app, bytes);
        Some(Turn { apps: self.clone(), app: app.clone() })
    }

    /// Forgets an app.
    pub(crate) fn forget(&self, app: &AppId) {
        let mut state = self.0.state.lock();
        state.sizes.remove(app);
        state.waiting.remove(app);
    }

    /// Ends the turn of an app, and requests runs of apps that wait.
    fn end(&self, app: &AppId) {
        for (app, (trigger, _)) in self.next_after(app) {
            self.0.queue.push(app, trigger);
        }
    }

    fn next_after(&self, app: &AppId) -> BTreeMap<AppId, (Trigger, Instant)> {
        let mut state = self.0.state.lock();
        // It may have begun another turn in the meantime.
        if state.running.get(app).is_some_and(|running| running.n_turns == 0) {
            state.running.remove(app);
        }
        self.0.has_room.notify_all();
        // The next app may no longer need its turn, and then it never ends one. So the last turn requests runs of all.
        if state.running.is_empty() {
            return std::mem::take(&mut state.waiting);
        }
        let longest = state.waiting.iter().min_by_key(|(_, (_, since))| *since).map(|(app, _)| app.clone());
        let next = longest.and_then(|app| state.waiting.get(&app).map(|waiting| (app.clone(), *waiting)));
        next.into_iter().collect()
    }
}

/// An app has to wait for its turn.
#[derive(Debug)]
pub(crate) struct Waiting;

impl State {
    fn has_room(&self, app: &AppId, bytes: u64) -> bool {
        let in_use: u64 = self.running.values().map(|running| running.bytes).sum();
        self.running.contains_key(app) || in_use == 0 || in_use.saturating_add(bytes) <= BUDGET
    }

    fn begin(&mut self, app: &AppId, bytes: u64) {
        let running = self.running.entry(app.clone()).or_default();
        running.bytes = running.bytes.max(bytes);
        running.n_turns += 1;
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let is_last = {
            let mut state = self.apps.0.state.lock();
            state.running.get_mut(&self.app).is_none_or(|running| {
                running.n_turns = running.n_turns.saturating_sub(1);
                running.n_turns == 0
            })
        };
        if !is_last {
            return;
        }
        let (apps, app) = (self.apps.clone(), self.app.clone());
        let end = move || {
            // The next large app needs what this one has left behind, and the allocator would keep it for this thread.
            plumb_heap::give_back();
            apps.end(&app);
        };
        match tokio::runtime::Handle::try_current() {
            // Returning memory blocks for some milliseconds.
            Ok(runtime) => drop(runtime.spawn_blocking(end)),
            Err(_) => end(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::TriggerReason;

    fn app(name: &str) -> AppId {
        AppId { namespace: "argocd".into(), name: name.into() }
    }

    const MIB: usize = 1 << 20;

    fn live() -> Trigger {
        Trigger::live(TriggerReason::Live)
    }

    #[test]
    fn small_apps_never_wait() {
        let apps = LargeApps::new(Queue::default());
        let _large = apps.wait_for_turn(&app("large"), 10 * MIB, || panic!("it waits")).unwrap();
        assert!(apps.wait_for_turn(&app("small"), 1000, || panic!("it waits")).is_none());
        assert!(apps.take_turn(&app("small"), live()).unwrap().is_none());
        assert!(apps.take_turn(&app("unknown"), live()).unwrap().is_none());
    }

    #[test]
    fn an_app_does_not_wait_for_itself() {
        let apps = LargeApps::new(Queue::default());
        let first = apps.wait_for_turn(&app("a"), MIB, || panic!("it waits"));
        let second = apps.wait_for_turn(&app("a"), 10 * MIB, || panic!("it waits"));
        let third = apps.take_turn(&app("a"), live()).unwrap();
        assert!(first.is_some() && second.is_some() && third.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_large_app_runs_when_its_turn_comes() {
        let queue = Queue::default();
        let apps = LargeApps::new(queue.clone());
        for name in ["a", "b"] {
            drop(apps.wait_for_turn(&app(name), 3 * MIB / 2, || ()));
        }
        until(|| apps.0.state.lock().running.is_empty()).await;
        let first = apps.take_turn(&app("a"), live()).unwrap();
        assert!(first.is_some());
        assert!(apps.take_turn(&app("b"), live()).is_err());
        assert_eq!(queue.depth(), 0);
        drop(first);
        assert_eq!(queue.next().await.unwrap().app, app("b"));
        assert!(apps.take_turn(&app("b"), live()).unwrap().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn no_large_app_waits_for_ever() {
        let apps = LargeApps::new(Queue::default());
        drop(apps.wait_for_turn(&app("b"), 3 * MIB / 2, || ()));
        until(|| apps.0.state.lock().running.is_empty()).await;
        let _hangs = apps.wait_for_turn(&app("a"), 3 * MIB / 2, || ());
        assert!(apps.take_turn(&app("b"), live()).is_err());
        tokio::time::advance(LONGEST_WAIT).await;
        assert!(apps.take_turn(&app("b"), live()).unwrap().is_some());
    }

    #[test]
    fn a_rendering_waits_until_there_is_room() {
        let apps = LargeApps::new(Queue::default());
        let first = apps.wait_for_turn(&app("a"), 3 * MIB / 2, || panic!("it waits"));
        let (sender, waits) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let second =
                scope.spawn(|| apps.wait_for_turn(&app("b"), 3 * MIB / 2, || sender.send(()).unwrap()));
            waits.recv().unwrap();
            drop(first);
            assert!(second.join().unwrap().is_some());
        });
    }

    async fn until(is_so: impl Fn() -> bool) {
        while !is_so() {
            tokio::task::yield_now().await;
        }
    }
}
