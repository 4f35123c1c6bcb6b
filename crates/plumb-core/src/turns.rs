//! Turns of tenants at an amount of something that all of them share: places for renderings, or their memory.
//!
//! Tenants that wait are served in turn, whatever the number of requests of each. Tenants whose work was slow are held
//! back: together they have at most half of the amount, so that the other half serves everybody else. Work that has begun
//! is not stopped, so without that limit a tenant with slow work would hold the whole amount.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Work of up to this long is not slow.
const QUICK: Duration = Duration::from_secs(5);
/// A tenant with more slow time than this is held back.
const MAX_SLOW: Duration = Duration::from_mins(1);
/// More slow time than this is not counted, so that it is forgotten some time later.
const MAX_COUNTED: Duration = Duration::from_mins(3);
/// A second of slow time is forgotten after this many seconds.
const FORGOTTEN_AFTER: u32 = 5;
/// A tenant that did nothing for this long is not there.
const REMEMBERED: Duration = Duration::from_mins(5);
/// How often a request that does not fit is overtaken by smaller ones.
const MAX_OVERTAKEN: u32 = 64;

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(u64);

/// What is shared, who has parts of it, and who waits. Times are since any fixed moment.
#[derive(Debug)]
pub struct Turns {
    total: u64,
    free: u64,
    tenants: BTreeMap<String, Tenant>,
    /// Tenants that wait, each once. The first has the next turn.
    order: VecDeque<String>,
    next_ticket: u64,
}

#[derive(Debug, Default)]
struct Tenant {
    waiting: VecDeque<Waiting>,
    in_use: u64,
    /// Its slow time, as of `slow_at`.
    slow: Duration,
    slow_at: Duration,
    /// When it last asked, or gave something back.
    seen: Duration,
}

#[derive(Debug)]
struct Waiting {
    ticket: Ticket,
    amount: u64,
    n_overtaken: u32,
}

impl Turns {
    /// Nobody has anything of the amount yet.
    pub fn new(total: u64) -> Self {
        Self { total, free: total, tenants: BTreeMap::new(), order: VecDeque::new(), next_ticket: 0 }
    }

    /// The whole amount.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// What nobody has.
    pub fn free(&self) -> u64 {
        self.free
    }

    /// How many requests wait.
    pub fn n_waiting(&self) -> usize {
        self.tenants.values().map(|tenant| tenant.waiting.len()).sum()
    }

    /// Queues a request. One for more than the whole amount is one for the whole amount.
    pub fn ask(&mut self, name: &str, amount: u64, now: Duration) -> Ticket {
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        let tenant = self.tenants.entry(name.to_owned()).or_default();
        tenant.seen = now;
        if tenant.waiting.is_empty() {
            self.order.push_back(name.to_owned());
        }
        tenant.waiting.push_back(Waiting { ticket, amount: amount.min(self.total), n_overtaken: 0 });
        ticket
    }

    /// Serves the next request that can be served now.
    pub fn serve(&mut self, now: Duration) -> Option<Ticket> {
        self.tenants.retain(|_, tenant| {
            tenant.pass(now);
            tenant.is_there(now)
        });
        let position = self.next_position()?;
        let name = self.order.remove(position)?;
        let tenant = self.tenants.get_mut(&name)?;
        let served = tenant.waiting.pop_front()?;
        tenant.in_use += served.amount;
        if !tenant.waiting.is_empty() {
            self.order.push_back(name);
        }
        self.free -= served.amount;
        Some(served.ticket)
    }

    /// The first tenant in the order whose request can be served.
    fn next_position(&mut self) -> Option<usize> {
        let for_slow = if self.tenants.len() < 2 { self.total } else { self.total / 2 };
        let slow_in_use: u64 =
            self.tenants.values().filter(|tenant| tenant.is_slow()).map(|tenant| tenant.in_use).sum();
        let mut too_large = Vec::new();
        let mut found = None;
        for (index, name) in self.order.iter().enumerate() {
            let Some((tenant, first)) =
                self.tenants.get(name).and_then(|tenant| Some((tenant, tenant.waiting.front()?)))
            else {
                continue;
            };
            if tenant.is_slow() && slow_in_use > 0 && slow_in_use + first.amount > for_slow {
                continue;
            }
            if first.amount <= self.free {
                found = Some(index);
                break;
            }
            if first.n_overtaken >= MAX_OVERTAKEN {
                return None;
            }
            too_large.push(name.clone());
        }
        if found.is_some() {
            for name in too_large {
                if let Some(first) = self.tenants.get_mut(&name).and_then(|tenant| tenant.waiting.front_mut())
                {
                    first.n_overtaken += 1;
                }
            }
        }
        found
    }

    /// Takes back what a request was served, which was used for this long.
    pub fn give_back(&mut self, name: &str, amount: u64, used_for: Duration, now: Duration) {
        let amount = amount.min(self.total);
        self.free = self.free.saturating_add(amount).min(self.total);
        let tenant = self.tenants.entry(name.to_owned()).or_default();
        tenant.pass(now);
        tenant.seen = now;
        tenant.in_use = tenant.in_use.saturating_sub(amount);
        if used_for > QUICK {
            tenant.slow = (tenant.slow + used_for).min(MAX_COUNTED);
        }
    }

    /// Takes a request back that was not served. Returns whether it still waited.
    pub fn withdraw(&mut self, name: &str, ticket: Ticket) -> bool {
        let Some(tenant) = self.tenants.get_mut(name) else { return false };
        let before = tenant.waiting.len();
        tenant.waiting.retain(|waiting| waiting.ticket != ticket);
        if tenant.waiting.is_empty() {
            self.order.retain(|waiting| waiting != name);
        }
        tenant.waiting.len() < before
    }
}

impl Tenant {
    /// Forgets slow time as time passes.
    fn pass(&mut self, now: Duration) {
        self.slow = self.slow.saturating_sub(now.saturating_sub(self.slow_at) / FORGOTTEN_AFTER);
        self.slow_at = now;
    }

    fn is_slow(&self) -> bool {
        self.slow > MAX_SLOW
    }

    fn is_there(&self, now: Duration) -> bool {
        self.in_use > 0
            || !self.waiting.is_empty()
            || self.slow > Duration::ZERO
            || now.saturating_sub(self.seen) < REMEMBERED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(second: u64) -> Duration {
        Duration::from_secs(second)
    }

    fn ask_all(turns: &mut Turns, requests: &[(&str, u64)], now: Duration) -> Vec<Ticket> {
        requests.iter().map(|(tenant, amount)| turns.ask(tenant, *amount, now)).collect()
    }

    fn serve_all(turns: &mut Turns, now: Duration) -> Vec<Ticket> {
        std::iter::from_fn(|| turns.serve(now)).collect()
    }

    #[test]
    fn tenants_are_served_in_turn() {
        let mut turns = Turns::new(1);
        let tickets = ask_all(&mut turns, &[("a", 1), ("a", 1), ("a", 1), ("b", 1), ("c", 1)], at(0));
        let mut served = Vec::new();
        for tenant in ["a", "b", "c", "a", "a"] {
            served.extend(serve_all(&mut turns, at(0)));
            turns.give_back(tenant, 1, at(1), at(0));
        }
        let expected = [0, 3, 4, 1, 2].map(|index| tickets[index]);
        assert_eq!(served, expected);
        assert_eq!((turns.free(), turns.n_waiting()), (1, 0));
    }

    #[test]
    fn slow_tenants_have_at_most_half() {
        let mut turns = Turns::new(4);
        // Nobody else is there: the whole amount is theirs, however slow they are.
        for now in [0, 90] {
            ask_all(&mut turns, &[("slow", 1); 4], at(now));
            assert_eq!(serve_all(&mut turns, at(now)).len(), 4);
            for _ in 0..4 {
                turns.give_back("slow", 1, at(90), at(now + 90));
            }
        }
        let honest = turns.ask("honest", 1, at(200));
        let tickets = ask_all(&mut turns, &[("slow", 1); 9], at(200));
        assert_eq!(serve_all(&mut turns, at(200)), [honest, tickets[0], tickets[1]]);
        // A second slow tenant gets nothing of the other half.
        turns.give_back("other", 0, at(90), at(200));
        let of_other = turns.ask("other", 1, at(200));
        assert_eq!(serve_all(&mut turns, at(200)), []);
        // A third tenant is served at once.
        let third = turns.ask("third", 1, at(200));
        assert_eq!(serve_all(&mut turns, at(200)), [third]);
        // The slow ones take turns with each other.
        turns.give_back("slow", 1, at(90), at(201));
        turns.give_back("slow", 1, at(90), at(201));
        assert_eq!(serve_all(&mut turns, at(201)), [tickets[2], of_other]);
    }

    #[test]
    fn slow_work_is_forgotten() {
        let mut turns = Turns::new(2);
        turns.give_back("slow", 0, at(100), at(0));
        turns.ask("honest", 0, at(0));
        ask_all(&mut turns, &[("slow", 1); 2], at(100));
        assert_eq!(serve_all(&mut turns, at(100)).len(), 2, "one of each: 80 seconds are left");
        assert_eq!(serve_all(&mut turns, at(199)), [], "more than a minute is left");
        assert_eq!(serve_all(&mut turns, at(201)).len(), 1);
    }

    #[test]
    fn a_large_request_is_overtaken_but_not_forever() {
        let mut turns = Turns::new(8);
        ask_all(&mut turns, &[("a", 4), ("a", 8)], at(0));
        assert_eq!(serve_all(&mut turns, at(0)).len(), 1);
        let mut n_served = 0;
        for _ in 0..200 {
            turns.ask("b", 1, at(0));
            for _ in serve_all(&mut turns, at(0)) {
                n_served += 1;
                turns.give_back("b", 1, at(0), at(0));
            }
        }
        assert_eq!(n_served, MAX_OVERTAKEN);
        turns.give_back("a", 4, at(0), at(0));
        turns.serve(at(0));
        assert_eq!(turns.free(), 0, "the large one is served before the small ones that wait");
    }

    #[test]
    fn a_withdrawn_request_is_not_served() {
        let mut turns = Turns::new(1);
        let tickets = ask_all(&mut turns, &[("a", 1), ("b", 1)], at(0));
        assert!(turns.withdraw("a", tickets[0]));
        assert!(!turns.withdraw("a", tickets[0]));
        assert_eq!(serve_all(&mut turns, at(0)), [tickets[1]]);
        assert!(!turns.withdraw("b", tickets[1]), "it was served");
    }

    #[test]
    fn a_tenant_that_is_gone_is_forgotten() {
        let mut turns = Turns::new(1);
        for index in 0..100 {
            turns.ask(&format!("tenant-{index}"), 1, at(0));
            turns.serve(at(0));
            turns.give_back(&format!("tenant-{index}"), 1, at(1), at(1));
        }
        turns.serve(at(400));
        assert!(turns.tenants.is_empty());
    }
}
