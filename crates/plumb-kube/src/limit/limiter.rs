//! The number of slots, and how answers change it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::pace::{Paces, Sort};
use super::places::{Place, SlowPlaces};

const START: usize = 16;
const LEAST: usize = 2;
const MOST: usize = 256;
/// Slow answers alone never shrink the limit below this: so few requests do not slow each other down.
const LEAST_FOR_LATENESS: usize = 6;
/// A smaller limit has an effect only after the requests in flight are answered; a second cut before that
/// would count them twice.
const CUT_PAUSE: Duration = Duration::from_millis(500);
/// Answers may take this many times the fastest one before they count as slow. Requests of one sort are not
/// all the same work, and a server is best used when a few requests always wait for it.
const TOLERANCE: f64 = 2.0;

/// Shared by all requests to one cluster.
pub(crate) struct Limiter {
    slots: Arc<Semaphore>,
    state: Mutex<LimitState>,
    /// Tells requests that wait for a slot of a slow place that one may be free.
    slow_slot_freed: Notify,
}

struct LimitState {
    /// How many slots there should be.
    limit: usize,
    /// How many there are; above `limit` while requests that were in flight at a cut still run.
    slots: usize,
    /// Answers since the limit was last adjusted.
    round: Round,
    paces: Paces,
    slow: SlowPlaces,
    last_cut: Option<Instant>,
    /// No new request before this moment: the server asked for a pause.
    hold_until: Option<Instant>,
}

/// What happened between two adjustments of the limit.
#[derive(Default)]
struct Round {
    answers: usize,
    /// By place: the answers that can be compared with others of their sort, and the sum of their speeds (1: as fast as
    /// the fastest). Each place counts once, so that many late answers of one do not make the server look slow.
    speeds: HashMap<Option<Place>, (u32, f64)>,
    /// True if all slots were in use at some moment.
    was_full: bool,
}

/// How a request ended, for the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Done. `sort` is `None` if its time cannot be compared, as for a list.
    Done { sort: Option<Sort>, after: Duration },
    /// Refused. Its time is not compared with that of others: a refusal is faster than the work.
    Refused { after: Duration },
    /// 429, or 503 of an overloaded server, with the wait it asked for.
    Overloaded { wait: Option<Duration> },
    /// No answer in time.
    Lost,
}

/// The right to have one request in flight.
pub(crate) struct Slot<'limiter> {
    limiter: &'limiter Limiter,
    permit: Option<OwnedSemaphorePermit>,
    /// `None` if requests of this sort are never taken for slow, as lists.
    place: Option<Place>,
    /// True if it counts among the requests to slow places.
    is_slow: bool,
}

impl Limiter {
    pub(crate) fn new() -> Self {
        Self {
            slots: Arc::new(Semaphore::new(START)),
            state: Mutex::new(LimitState {
                limit: START,
                slots: START,
                round: Round::default(),
                paces: Paces::default(),
                slow: SlowPlaces::default(),
                last_cut: None,
                hold_until: None,
            }),
            slow_slot_freed: Notify::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, LimitState> {
        self.state.lock()
    }

    /// The present limit.
    pub(crate) fn limit(&self) -> usize {
        self.state().limit
    }

    /// Waits for a slot, and for the end of a pause that the server requested.
    pub(crate) async fn slot(&self, place: Option<Place>) -> Slot<'_> {
        let slot = loop {
            if let Some(place) = place.as_ref().filter(|place| self.is_slow(place)) {
                if self.wait_at(place).await {
                    break Slot { limiter: self, permit: None, place: Some(place.clone()), is_slow: true };
                }
                continue;
            }
            let permit = Arc::clone(&self.slots).acquire_owned().await.ok();
            let slot = Slot { limiter: self, permit, place: place.clone(), is_slow: false };
            // The place may have become slow while this waited. Dropping the slot passes it on.
            if !place.as_ref().is_some_and(|place| self.is_slow(place)) {
                break slot;
            }
        };
        loop {
            let hold_until = self.state().hold_until;
            match hold_until {
                Some(until) if until > Instant::now() => tokio::time::sleep_until(until).await,
                Some(_) | None => break,
            }
        }
        slot
    }

    fn is_slow(&self, place: &Place) -> bool {
        self.state().slow.is_slow(place, Instant::now())
    }

    /// Takes a slot of a slow place, or waits until one may be free. Returns whether it has one.
    async fn wait_at(&self, place: &Place) -> bool {
        let freed = self.slow_slot_freed.notified();
        if self.state().slow.enter(place, Instant::now()) {
            return true;
        }
        freed.await;
        false
    }

    /// Notes how a request of a slow place ended. Only a server that is slow as a whole, or that throttles, has a smaller limit
    /// for it.
    fn note_slow(&self, place: &Place, outcome: Outcome, now: Instant) {
        let took = match outcome {
            Outcome::Done { after, .. } => Some(after),
            // To learn that an object is missing takes as long as to read it. A write may be refused before any admission
            // webhook sees it.
            Outcome::Refused { after } if !place.is_write => Some(after),
            Outcome::Refused { .. } | Outcome::Overloaded { .. } | Outcome::Lost => None,
        };
        let is_server_wide = {
            let mut state = self.state();
            let is_server_wide = state.slow.is_server_wide(now);
            state.slow.leave(place, took, now);
            is_server_wide
        };
        self.slow_slot_freed.notify_waiters();
        if is_server_wide || matches!(outcome, Outcome::Overloaded { .. }) {
            self.note(Some(place), outcome, now);
        }
    }

    fn note(&self, place: Option<&Place>, outcome: Outcome, now: Instant) {
        let all_in_use = self.slots.available_permits() == 0;
        let mut state = self.state();
        match outcome {
            Outcome::Done { sort, after } => {
                if let Some(sort) = sort {
                    let speed = state.paces.speed(sort, after, now);
                    let (n, sum) = state.round.speeds.entry(place.cloned()).or_default();
                    *n += 1;
                    *sum += speed;
                }
                self.answered(&mut state, all_in_use);
            }
            Outcome::Refused { .. } => self.answered(&mut state, all_in_use),
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

    /// Counts an answer; adjusts the limit when there were as many answers as slots.
    fn answered(&self, state: &mut LimitState, all_in_use: bool) {
        state.round.answers += 1;
        state.round.was_full |= all_in_use;
        if state.round.answers < state.limit {
            return;
        }
        let round = std::mem::take(&mut state.round);
        state.limit = next_limit(state.limit, &round);
        if state.slots < state.limit {
            self.slots.add_permits(state.limit - state.slots);
            state.slots = state.limit;
        }
    }
}

/// The limit after a round. Its square root is added as room for growth, which is also the queue of a busy
/// server.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "limits are small positive numbers"
)]
fn next_limit(limit: usize, round: &Round) -> usize {
    // If the limit was not reached, the answers say nothing about it.
    if !round.was_full {
        return limit;
    }
    let of_places: Vec<f64> = round.speeds.values().map(|(n, sum)| sum / f64::from(*n)).collect();
    let speed =
        if of_places.is_empty() { 1.0 } else { of_places.iter().sum::<f64>() / of_places.len() as f64 };
    let keep = (TOLERANCE * speed).clamp(0.5, 1.0);
    let next = (limit as f64).mul_add(keep, (limit as f64).sqrt()) as usize;
    let least = limit.min(LEAST_FOR_LATENESS);
    next.clamp(least, MOST)
}

impl LimitState {
    fn cut(&mut self, now: Instant, smaller: impl FnOnce(usize) -> usize) {
        if self.last_cut.is_some_and(|last| now.duration_since(last) < CUT_PAUSE) {
            return;
        }
        self.limit = smaller(self.limit).clamp(LEAST, MOST);
        self.round = Round::default();
        self.last_cut = Some(now);
    }
}

impl Slot<'_> {
    /// The request has been in flight for too long: its place is slow. It no longer counts among the others.
    pub(crate) fn turn_slow(&mut self) {
        let Some(place) = self.place.as_ref().filter(|_| !self.is_slow) else { return };
        self.limiter.state().slow.turn_slow(place, Instant::now());
        self.is_slow = true;
        self.give_back();
    }

    /// Returns the slot and records how the request ended.
    pub(crate) fn done(mut self, outcome: Outcome) {
        let now = Instant::now();
        match self.place.take() {
            Some(place) if self.is_slow => self.limiter.note_slow(&place, outcome, now),
            place => self.limiter.note(place.as_ref(), outcome, now),
        }
    }

    fn give_back(&mut self) {
        let Some(permit) = self.permit.take() else { return };
        let mut state = self.limiter.state();
        if state.slots > state.limit {
            state.slots -= 1;
            permit.forget();
        }
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.give_back();
        // A request that was given up, as when the lease is lost.
        if let Some(place) = self.place.take().filter(|_| self.is_slow) {
            self.limiter.state().slow.leave(&place, None, Instant::now());
            self.limiter.slow_slot_freed.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const APPLY: Sort = Sort(1);

    fn done(millis: u64) -> Outcome {
        Outcome::Done { sort: Some(APPLY), after: Duration::from_millis(millis) }
    }

    fn refused(millis: u64) -> Outcome {
        Outcome::Refused { after: Duration::from_millis(millis) }
    }

    /// All slots in use, each answered after `millis`.
    async fn full_round(limiter: &Limiter, millis: u64) {
        let mut slots = Vec::new();
        for _ in 0..limiter.limit() {
            slots.push(limiter.slot(None).await);
        }
        for slot in slots {
            limiter.note(None, done(millis), Instant::now());
            drop(slot);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_busy_limiter_grows_and_an_idle_one_does_not() {
        let limiter = Limiter::new();
        for _ in 0..1000 {
            limiter.slot(None).await.done(done(5));
        }
        assert_eq!(limiter.limit(), START, "one request at a time needs no more slots");
        for _ in 0..30 {
            full_round(&limiter, 5).await;
        }
        assert_eq!(limiter.limit(), MOST, "a server that answers as fast as ever can take more");
    }

    /// A server that works on `hands` requests at once, each for `work` milliseconds, and queues the rest.
    async fn settle(hands: usize, work: u64) -> usize {
        let limiter = Limiter::new();
        limiter.slot(None).await.done(done(work));
        for _ in 0..60 {
            let in_flight = limiter.limit();
            let rounds = in_flight.div_ceil(hands) as u64;
            full_round(&limiter, work * rounds).await;
        }
        limiter.limit()
    }

    #[tokio::test(start_paused = true)]
    async fn the_limit_follows_what_the_server_works_on_at_once() {
        let few = settle(2, 4).await;
        assert!((LEAST_FOR_LATENESS..=12).contains(&few), "{few} requests for two hands");
        let many = settle(32, 4).await;
        assert!((32..=140).contains(&many), "{many} requests for thirty-two hands");
        // A distant server is not a busy one: its network latency is the same for each request.
        assert_eq!(settle(1000, 80).await, MOST);
    }

    #[tokio::test(start_paused = true)]
    async fn refusals_and_lists_do_not_make_work_look_slow() {
        let limiter = Limiter::new();
        for _ in 0..20 {
            let mut slots = Vec::new();
            for _ in 0..limiter.limit() {
                slots.push(limiter.slot(None).await);
            }
            for (n, slot) in slots.into_iter().enumerate() {
                let list = Outcome::Done { sort: None, after: Duration::from_secs(3) };
                limiter.note(None, [list, refused(2), done(20)][n % 3], Instant::now());
                drop(slot);
            }
        }
        assert!(limiter.limit() > START);
    }

    #[tokio::test(start_paused = true)]
    async fn an_overloaded_server_halves_the_limit_and_holds_new_requests() {
        let limiter = Limiter::new();
        let slot = limiter.slot(None).await;
        slot.done(Outcome::Overloaded { wait: Some(Duration::from_secs(3)) });
        assert_eq!(limiter.limit(), START / 2);
        let before = Instant::now();
        drop(limiter.slot(None).await);
        assert!(before.elapsed() >= Duration::from_secs(3));
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_of_complaints_about_one_round_counts_once() {
        let limiter = Limiter::new();
        for _ in 0..20 {
            limiter.slot(None).await.done(Outcome::Lost);
        }
        assert_eq!(limiter.limit(), START / 2);
        for _ in 0..20 {
            tokio::time::advance(Duration::from_secs(1)).await;
            limiter.slot(None).await.done(Outcome::Lost);
        }
        assert_eq!(limiter.limit(), LEAST);
        // The slots really are gone.
        let held = (limiter.slot(None).await, limiter.slot(None).await);
        assert_eq!(limiter.slots.available_permits(), 0);
        drop(held);
    }

    fn place(namespace: &str) -> Place {
        Place { is_write: true, resource: "configmaps".to_owned(), namespace: namespace.to_owned() }
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_place_uses_its_own_slots_and_leaves_the_limit_as_it_is() {
        let limiter = Limiter::new();
        let mut held = Vec::new();
        for _ in 0..START {
            held.push(limiter.slot(Some(place("slow"))).await);
        }
        let late = tokio::time::timeout(Duration::from_secs(1), limiter.slot(Some(place("quick")))).await;
        assert!(late.is_err(), "all slots are in use");
        held.iter_mut().for_each(Slot::turn_slow);
        let quick = tokio::time::timeout(Duration::from_secs(1), limiter.slot(Some(place("quick")))).await;
        assert!(quick.is_ok(), "the requests that take long no longer hold them");
        let another = tokio::time::timeout(Duration::from_secs(1), limiter.slot(Some(place("slow")))).await;
        assert!(another.is_err(), "no more of them than a slow place may have");
        for slot in held {
            slot.done(Outcome::Done { sort: Some(APPLY), after: Duration::from_secs(10) });
        }
        assert_eq!(limiter.limit(), START);
        assert!(
            tokio::time::timeout(Duration::from_secs(1), limiter.slot(Some(place("slow")))).await.is_ok()
        );
        limiter.slot(Some(place("slow"))).await.done(Outcome::Lost);
        assert_eq!(limiter.limit(), START, "a webhook that never answers is not a server that never answers");
        limiter.slot(Some(place("slow"))).await.done(Outcome::Overloaded { wait: None });
        assert_eq!(limiter.limit(), START / 2, "a server that throttles is");
    }

    #[tokio::test(start_paused = true)]
    async fn a_quick_refusal_shows_that_reads_are_quick_and_not_that_writes_are() {
        for (is_write, is_slow_after) in [(false, false), (true, true)] {
            let (limiter, place) = (Limiter::new(), Place { is_write, ..place("web") });
            let mut slot = limiter.slot(Some(place.clone())).await;
            slot.turn_slow();
            slot.done(done(1000));
            for _ in 0..4 {
                assert!(limiter.is_slow(&place));
                limiter.slot(Some(place.clone())).await.done(refused(5));
            }
            assert_eq!(limiter.is_slow(&place), is_slow_after, "is a write: {is_write}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn requests_that_waited_for_a_slot_of_a_place_that_became_slow_pass_it_on() {
        let limiter = Arc::new(Limiter::new());
        let mut held = Vec::new();
        for _ in 0..START {
            held.push(limiter.slot(Some(place("slow"))).await);
        }
        let waiting: Vec<_> = (0..40)
            .map(|_| {
                let limiter = Arc::clone(&limiter);
                tokio::spawn(async move { limiter.slot(Some(place("slow"))).await.done(done(5)) })
            })
            .collect();
        tokio::task::yield_now().await;
        held.iter_mut().for_each(Slot::turn_slow);
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(waiting.iter().all(|task| !task.is_finished()), "they wait for a slot of the slow place");
        assert_eq!(limiter.slots.available_permits(), START);
        drop(held);
        for task in waiting {
            task.await.unwrap();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn many_late_answers_of_one_place_do_not_outvote_the_others() {
        let limiter = Limiter::new();
        for namespace in ["slow", "a", "b", "c"] {
            limiter.slot(Some(place(namespace))).await.done(done(5));
        }
        for _ in 0..8 {
            let mut slots = Vec::new();
            for n in 0..limiter.limit() {
                let namespace = ["a", "b", "c"].get(n).copied().unwrap_or("slow");
                slots.push((namespace, limiter.slot(Some(place(namespace))).await));
            }
            for (namespace, slot) in slots {
                limiter.note(
                    Some(&place(namespace)),
                    done(if namespace == "slow" { 500 } else { 5 }),
                    Instant::now(),
                );
                drop(slot);
            }
        }
        assert!(limiter.limit() >= START, "{}", limiter.limit());
    }
}
