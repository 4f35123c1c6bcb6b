//! How many requests to one cluster may be in flight: as many as it answers well.
//!
//! There is no number of requests a second. The limit grows by one for each round of requests that were
//! answered as fast as usual while all slots were in use, shrinks a little when answers become slow, and
//! halves when the server says 429 or gives no answer.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

const START: usize = 32;
const LEAST: usize = 2;
const MOST: usize = 256;
/// Answers below this are never called slow, whatever the fastest one was.
const SLOW: Duration = Duration::from_millis(750);
/// A cut is felt only after the requests in flight came back; a second one before that would count them twice.
const CUT_PAUSE: Duration = Duration::from_millis(500);

/// Shared by all requests to one cluster.
pub(crate) struct Limiter {
    slots: Arc<Semaphore>,
    state: Mutex<State>,
}

struct State {
    /// How many slots there should be.
    limit: usize,
    /// How many there are; above `limit` while requests that were in flight at a cut still run.
    slots: usize,
    /// Good answers since the last growth.
    good: usize,
    last_cut: Option<Instant>,
    /// No new request before this moment: the server asked us to wait.
    hold_until: Option<Instant>,
}

/// How a request went, as far as the limit is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Answered, whatever the answer.
    Answered { after: Duration },
    /// 429, or 503 of an overloaded server, with the wait it asked for.
    Overloaded { wait: Option<Duration> },
    /// No answer in time.
    Lost,
}

/// The right to have one request in flight.
pub(crate) struct Slot<'limiter> {
    limiter: &'limiter Limiter,
    permit: Option<OwnedSemaphorePermit>,
}

impl Limiter {
    pub(crate) fn new() -> Self {
        Self {
            slots: Arc::new(Semaphore::new(START)),
            state: Mutex::new(State {
                limit: START,
                slots: START,
                good: 0,
                last_cut: None,
                hold_until: None,
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The present limit.
    pub(crate) fn limit(&self) -> usize {
        self.state().limit
    }

    /// Waits for a slot, and for the end of a pause that the server asked for.
    pub(crate) async fn slot(&self) -> Slot<'_> {
        let permit = Arc::clone(&self.slots).acquire_owned().await.ok();
        loop {
            let hold_until = self.state().hold_until;
            match hold_until {
                Some(until) if until > Instant::now() => tokio::time::sleep_until(until).await,
                Some(_) | None => break,
            }
        }
        Slot { limiter: self, permit }
    }

    fn note(&self, outcome: Outcome, now: Instant) {
        let all_in_use = self.slots.available_permits() == 0;
        let mut state = self.state();
        match outcome {
            Outcome::Answered { after } if after >= SLOW => {
                state.good = 0;
                if all_in_use {
                    state.cut(now, |limit| limit - limit / 10 - 1);
                }
            }
            Outcome::Answered { .. } => {
                state.good += 1;
                if state.good >= state.limit && all_in_use && state.limit < MOST {
                    state.good = 0;
                    state.limit += 1;
                    if state.slots < state.limit {
                        state.slots += 1;
                        self.slots.add_permits(1);
                    }
                }
            }
            Outcome::Overloaded { wait } => {
                state.cut(now, |limit| limit / 2);
                if let Some(wait) = wait {
                    let until = now + wait;
                    if state.hold_until.is_none_or(|present| present < until) {
                        state.hold_until = Some(until);
                    }
                }
            }
            Outcome::Lost => state.cut(now, |limit| limit / 2),
        }
    }
}

impl State {
    fn cut(&mut self, now: Instant, smaller: impl FnOnce(usize) -> usize) {
        if self.last_cut.is_some_and(|last| now.duration_since(last) < CUT_PAUSE) {
            return;
        }
        self.limit = smaller(self.limit).clamp(LEAST, MOST);
        self.good = 0;
        self.last_cut = Some(now);
    }
}

impl Slot<'_> {
    /// Gives the slot back with what was learnt.
    pub(crate) fn done(self, outcome: Outcome) {
        self.limiter.note(outcome, Instant::now());
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        let Some(permit) = self.permit.take() else { return };
        let mut state = self.limiter.state();
        if state.slots > state.limit {
            state.slots -= 1;
            permit.forget();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAST: Outcome = Outcome::Answered { after: Duration::from_millis(5) };

    #[tokio::test(start_paused = true)]
    async fn a_busy_limiter_grows_and_an_idle_one_does_not() {
        let limiter = Limiter::new();
        for _ in 0..1000 {
            limiter.slot().await.done(FAST);
        }
        assert_eq!(limiter.limit(), START, "one request at a time needs no more slots");

        for _ in 0..4 {
            let mut slots = Vec::new();
            for _ in 0..limiter.limit() {
                slots.push(limiter.slot().await);
            }
            for slot in slots {
                limiter.note(FAST, Instant::now());
                drop(slot);
            }
        }
        assert!(limiter.limit() > START);
    }

    #[tokio::test(start_paused = true)]
    async fn an_overloaded_server_halves_the_limit_and_holds_new_requests() {
        let limiter = Limiter::new();
        let slot = limiter.slot().await;
        slot.done(Outcome::Overloaded { wait: Some(Duration::from_secs(3)) });
        assert_eq!(limiter.limit(), START / 2);
        let before = Instant::now();
        drop(limiter.slot().await);
        assert!(before.elapsed() >= Duration::from_secs(3));
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_of_complaints_about_one_round_counts_once() {
        let limiter = Limiter::new();
        for _ in 0..20 {
            limiter.slot().await.done(Outcome::Lost);
        }
        assert_eq!(limiter.limit(), START / 2);
        for _ in 0..20 {
            tokio::time::advance(Duration::from_secs(1)).await;
            limiter.slot().await.done(Outcome::Lost);
        }
        assert_eq!(limiter.limit(), LEAST);
        // The slots really are gone.
        let held = (limiter.slot().await, limiter.slot().await);
        assert_eq!(limiter.slots.available_permits(), 0);
        drop(held);
    }
}
