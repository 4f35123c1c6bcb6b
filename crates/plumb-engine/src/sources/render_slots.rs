//! Places for renderings that run at the same time. Projects take turns.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use plumb_core::turns::{Ticket, Turns};
use tokio::sync::oneshot;

/// A number of places. Clones share them.
#[derive(Clone)]
pub(super) struct RenderSlots(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    created: Instant,
}

struct State {
    turns: Turns,
    waiting: HashMap<Ticket, oneshot::Sender<()>>,
}

/// A place, free again on drop.
pub(super) struct RenderSlot {
    slots: RenderSlots,
    project: String,
    /// When the rendering began. Before, it waited for memory, which is nothing that its project is to blame for.
    began: Option<Instant>,
}

/// A request for a place, withdrawn on drop.
struct Asked<'a> {
    slots: &'a RenderSlots,
    project: &'a str,
    ticket: Ticket,
    is_answered: bool,
}

impl RenderSlots {
    pub(super) fn new(n_slots: usize) -> Self {
        let state = State { turns: Turns::new(n_slots as u64), waiting: HashMap::new() };
        Self(Arc::new(Shared { state: Mutex::new(state), created: Instant::now() }))
    }

    /// Waits until a place is free and it is the project's turn.
    pub(super) async fn take(&self, project: &str) -> RenderSlot {
        let (sender, served) = oneshot::channel();
        let ticket = {
            let mut state = self.0.state.lock();
            let ticket = state.turns.ask(project, 1, self.0.created.elapsed());
            state.waiting.insert(ticket, sender);
            self.serve(&mut state);
            ticket
        };
        let mut asked = Asked { slots: self, project, ticket, is_answered: false };
        // The sender is dropped only after it sent.
        let _ = served.await;
        asked.is_answered = true;
        RenderSlot { slots: self.clone(), project: project.to_owned(), began: None }
    }

    fn serve(&self, state: &mut State) {
        let now = self.0.created.elapsed();
        while let Some(ticket) = state.turns.serve(now) {
            if let Some(waiting) = state.waiting.remove(&ticket) {
                // A receiver that is gone gives the place back on its own drop.
                let _ = waiting.send(());
            }
        }
    }

    fn give_back(&self, project: &str, used_for: Duration) {
        let mut state = self.0.state.lock();
        let now = self.0.created.elapsed();
        state.turns.give_back(project, 1, used_for, now);
        self.serve(&mut state);
    }
}

impl RenderSlot {
    /// The rendering has its memory and begins.
    pub(super) fn begin(&mut self) {
        self.began.get_or_insert_with(Instant::now);
    }
}

impl Drop for RenderSlot {
    fn drop(&mut self) {
        let used_for = self.began.map(|began| began.elapsed()).unwrap_or_default();
        self.slots.give_back(&self.project, used_for);
    }
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        if self.is_answered {
            return;
        }
        let still_waits = {
            let mut state = self.slots.0.state.lock();
            state.waiting.remove(&self.ticket);
            state.turns.withdraw(self.project, self.ticket)
        };
        if !still_waits {
            self.slots.give_back(self.project, Duration::ZERO);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::Poll;

    use super::*;

    #[tokio::test]
    async fn a_request_that_is_dropped_takes_no_place() {
        let slots = RenderSlots::new(1);
        let first = slots.take("a").await;
        let mut second = Box::pin(slots.take("a"));
        let mut third = Box::pin(slots.take("b"));
        assert!(matches!(futures::poll!(&mut second), Poll::Pending));
        assert!(matches!(futures::poll!(&mut third), Poll::Pending));
        // The second is served, but its future ends before it notices.
        drop(first);
        assert!(matches!(futures::poll!(&mut third), Poll::Pending));
        drop(second);
        drop(third.await);
        // One that still waits is withdrawn.
        let held = slots.take("a").await;
        let mut waiting = Box::pin(slots.take("b"));
        assert!(matches!(futures::poll!(&mut waiting), Poll::Pending));
        drop(waiting);
        drop(held);
        let state = slots.0.state.lock();
        assert_eq!((state.turns.free(), state.turns.n_waiting(), state.waiting.len()), (1, 0, 0));
    }
}
