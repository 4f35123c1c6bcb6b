//! Places for renderings that run at the same time. Projects and their apps take turns, and slow apps leave room for others.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use plumb_core::turns::{Tenant, Ticket, Turns};
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
    ticket: Ticket,
}

/// A request for a place, withdrawn on drop.
struct Asked<'a> {
    slots: &'a RenderSlots,
    tenant: &'a Tenant,
    ticket: Ticket,
    is_answered: bool,
}

impl RenderSlots {
    pub(super) fn new(n_slots: usize) -> Self {
        let state = State { turns: Turns::new(n_slots), waiting: HashMap::new() };
        Self(Arc::new(Shared { state: Mutex::new(state), created: Instant::now() }))
    }

    /// Waits until a place is free and it is the app's turn.
    pub(super) async fn take(&self, tenant: &Tenant) -> RenderSlot {
        let (sender, served) = oneshot::channel();
        let ticket = {
            let mut state = self.0.state.lock();
            let ticket = state.turns.ask(tenant, self.0.created.elapsed());
            state.waiting.insert(ticket, sender);
            self.serve(&mut state);
            ticket
        };
        let mut asked = Asked { slots: self, tenant, ticket, is_answered: false };
        // The sender is dropped only after it sent.
        let _ = served.await;
        asked.is_answered = true;
        RenderSlot { slots: self.clone(), ticket }
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

    fn give_back(&self, ticket: Ticket) {
        let mut state = self.0.state.lock();
        let now = self.0.created.elapsed();
        state.turns.give_back(ticket, now);
        self.serve(&mut state);
    }
}

impl RenderSlot {
    /// The rendering has its memory and begins. Before, it waited, which is nothing that its app is to blame for.
    pub(super) fn begin(&self) {
        let now = self.slots.0.created.elapsed();
        self.slots.0.state.lock().turns.begin(self.ticket, now);
    }
}

impl Drop for RenderSlot {
    fn drop(&mut self) {
        self.slots.give_back(self.ticket);
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
            state.turns.withdraw(self.tenant, self.ticket)
        };
        if !still_waits {
            self.slots.give_back(self.ticket);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::Poll;

    use super::*;

    #[tokio::test]
    async fn a_request_that_is_dropped_takes_no_place() {
        let tenant = |app: &str| Tenant { project: "default".to_owned(), app: app.to_owned() };
        let (a, b) = (tenant("a"), tenant("b"));
        let slots = RenderSlots::new(1);
        let first = slots.take(&a).await;
        let mut second = Box::pin(slots.take(&a));
        let mut third = Box::pin(slots.take(&b));
        assert!(matches!(futures::poll!(&mut second), Poll::Pending));
        assert!(matches!(futures::poll!(&mut third), Poll::Pending));
        // The second is served, but its future ends before it notices.
        drop(first);
        assert!(matches!(futures::poll!(&mut third), Poll::Pending));
        drop(second);
        drop(third.await);
        // One that still waits is withdrawn.
        let held = slots.take(&a).await;
        let mut waiting = Box::pin(slots.take(&b));
        assert!(matches!(futures::poll!(&mut waiting), Poll::Pending));
        drop(waiting);
        drop(held);
        let state = slots.0.state.lock();
        assert_eq!((state.turns.n_free(), state.turns.n_waiting(), state.waiting.len()), (1, 0, 0));
    }
}
