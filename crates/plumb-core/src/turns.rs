//! Turns at places that all apps share: places for renderings, or parts of their memory.
//!
//! Projects take turns, and within a project its apps, whatever the number of requests of each. Work that has begun is not
//! stopped, so work that takes long must never have all places: slow apps have at most half of them together, and one
//! place is always left for apps that are not slow.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Work of up to this long is not slow.
const QUICK: Duration = Duration::from_secs(5);
/// How long it counts that an app that was not known turned out to be slow.
const SURPRISED: Duration = Duration::from_mins(5);
/// How long the pace of an app is remembered after it last worked.
const REMEMBERED: Duration = Duration::from_hours(24);
/// With so many places, one is kept for apps that are known to be quick from the start.
const MANY_PLACES: usize = 4;
/// How often slow work waits while other work is served.
const MAX_OVERTAKEN: u32 = 64;

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tenant {
    /// The project of the app.
    pub project: String,
    /// The app, or a part of its work.
    pub app: String,
}

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(u64);

/// The places, who has them, and who waits. Times are since any fixed moment.
#[derive(Debug)]
pub struct Turns {
    n_places: usize,
    working: BTreeMap<Ticket, Working>,
    waiting: BTreeMap<String, Waiting>,
    /// Projects that wait, each once. The first has the next turn.
    order: VecDeque<String>,
    known: BTreeMap<Tenant, Known>,
    next_ticket: u64,
    /// When an app that was not known turned out to be slow.
    surprised_at: Option<Duration>,
    n_overtaken: u32,
    swept_at: Duration,
}

/// What is known about the work of an app.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pace {
    /// Its last work was quick.
    Quick,
    /// It has not worked yet.
    New,
    /// Its last work took long, or the work that it does now.
    Slow,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    pace: Pace,
    seen: Duration,
}

#[derive(Debug)]
struct Working {
    tenant: Tenant,
    /// What it counted as when it was served.
    pace: Pace,
    /// When the work began. Before, the app waited for something that it is not to blame for.
    began: Option<Duration>,
}

/// The requests of one project.
#[derive(Debug, Default)]
struct Waiting {
    quick: Line,
    new: Line,
    slow: Line,
}

/// Requests whose apps take turns.
#[derive(Debug, Default)]
struct Line {
    order: VecDeque<String>,
    by_app: BTreeMap<String, VecDeque<Ticket>>,
}

/// Whose work may begin now.
#[derive(Clone, Copy, Debug)]
struct Room {
    quick: bool,
    new: bool,
    slow: bool,
}

impl Turns {
    /// Nobody has a place yet.
    pub fn new(n_places: usize) -> Self {
        Self {
            n_places: n_places.max(1),
            working: BTreeMap::new(),
            waiting: BTreeMap::new(),
            order: VecDeque::new(),
            known: BTreeMap::new(),
            next_ticket: 0,
            surprised_at: None,
            n_overtaken: 0,
            swept_at: Duration::ZERO,
        }
    }

    /// How many places nobody has.
    pub fn n_free(&self) -> usize {
        self.n_places.saturating_sub(self.working.len())
    }

    /// How many requests wait.
    pub fn n_waiting(&self) -> usize {
        self.waiting.values().flat_map(Waiting::lines).map(Line::len).sum()
    }

    /// Queues a request for one place.
    pub fn ask(&mut self, tenant: &Tenant, now: Duration) -> Ticket {
        self.sweep(now);
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        let pace = self.pace(tenant, now);
        if !self.waiting.contains_key(&tenant.project) {
            self.order.push_back(tenant.project.clone());
        }
        let waiting = self.waiting.entry(tenant.project.clone()).or_default();
        waiting.line_mut(pace).push(&tenant.app, ticket);
        ticket
    }

    /// Serves the next request that can be served now.
    pub fn serve(&mut self, now: Duration) -> Option<Ticket> {
        let room = self.room(now);
        let others = self.order.iter().position(|project| {
            let waiting = self.waiting.get(project);
            waiting.is_some_and(|waiting| waiting.first_of_others(room).is_some())
        });
        let slow = self.order.iter().position(|project| {
            room.slow && self.waiting.get(project).is_some_and(|waiting| !waiting.slow.is_empty())
        });
        let is_turn_of_slow = slow.is_some() && (others.is_none() || self.n_overtaken >= MAX_OVERTAKEN);
        let project = self.order.remove(if is_turn_of_slow { slow? } else { others? })?;
        self.n_overtaken =
            if is_turn_of_slow || slow.is_none() { 0 } else { self.n_overtaken.saturating_add(1) };
        let waiting = self.waiting.get_mut(&project)?;
        let pace = if is_turn_of_slow { Pace::Slow } else { waiting.first_of_others(room)? };
        let (app, ticket) = waiting.line_mut(pace).pop()?;
        if waiting.is_empty() {
            self.waiting.remove(&project);
        } else {
            self.order.push_back(project.clone());
        }
        self.working.insert(ticket, Working { tenant: Tenant { project, app }, pace, began: None });
        Some(ticket)
    }

    /// Notes that the work of a request begins. Called again, it changes nothing.
    pub fn begin(&mut self, ticket: Ticket, now: Duration) {
        if let Some(working) = self.working.get_mut(&ticket) {
            working.began.get_or_insert(now);
        }
    }

    /// Takes back the place of a request that was served.
    pub fn give_back(&mut self, ticket: Ticket, now: Duration) {
        let Some(working) = self.working.remove(&ticket) else { return };
        let Some(began) = working.began else { return };
        let pace = if now.saturating_sub(began) > QUICK { Pace::Slow } else { Pace::Quick };
        if working.pace == Pace::New && pace == Pace::Slow {
            self.surprised_at = Some(now);
        }
        self.known.insert(working.tenant, Known { pace, seen: now });
    }

    /// Takes a request back that was not served. Returns whether it still waited.
    pub fn withdraw(&mut self, tenant: &Tenant, ticket: Ticket) -> bool {
        let Some(waiting) = self.waiting.get_mut(&tenant.project) else { return false };
        let has_waited = [Pace::Quick, Pace::New, Pace::Slow]
            .into_iter()
            .any(|pace| waiting.line_mut(pace).remove(&tenant.app, ticket));
        if waiting.is_empty() {
            self.waiting.remove(&tenant.project);
            self.order.retain(|project| *project != tenant.project);
        }
        has_waited
    }

    /// What an app counts as.
    fn pace(&self, tenant: &Tenant, now: Duration) -> Pace {
        if self.working.values().any(|working| working.tenant == *tenant && working.is_slow(now)) {
            return Pace::Slow;
        }
        self.known.get(tenant).map_or(Pace::New, |known| known.pace)
    }

    /// Whose work may begin now. One place is kept for apps that are known to be quick. Apps that are not known may have it
    /// only where places are few and none of them was slow lately.
    fn room(&self, now: Duration) -> Room {
        let n_free = self.n_free();
        let n_kept = usize::from(self.n_places > 1);
        let is_slow = |working: &&Working| working.pace == Pace::Slow || working.is_slow(now);
        let n_slow = self.working.values().filter(is_slow).count();
        let n_new = self.working.values().filter(|one| one.pace == Pace::New && !is_slow(one)).count();
        let has_place = n_free > 0 && n_slow + n_new < self.n_places - n_kept;
        let is_surprised = self.surprised_at.is_some_and(|at| now.saturating_sub(at) < SURPRISED)
            || self.working.values().any(|one| one.pace == Pace::New && one.is_slow(now));
        Room {
            quick: n_free > 0,
            new: has_place || (n_free > 0 && self.n_places < MANY_PLACES && !is_surprised),
            slow: has_place && n_slow < (self.n_places / 2).max(1),
        }
    }

    /// Forgets apps that have not worked for long.
    fn sweep(&mut self, now: Duration) {
        if now.saturating_sub(self.swept_at) >= REMEMBERED / 24 {
            self.swept_at = now;
            self.known.retain(|_, known| now.saturating_sub(known.seen) < REMEMBERED);
        }
    }
}

impl Working {
    fn is_slow(&self, now: Duration) -> bool {
        self.began.is_some_and(|began| now.saturating_sub(began) > QUICK)
    }
}

impl Waiting {
    fn lines(&self) -> [&Line; 3] {
        [&self.quick, &self.new, &self.slow]
    }

    fn line_mut(&mut self, pace: Pace) -> &mut Line {
        match pace {
            Pace::Quick => &mut self.quick,
            Pace::New => &mut self.new,
            Pace::Slow => &mut self.slow,
        }
    }

    fn is_empty(&self) -> bool {
        self.lines().into_iter().all(Line::is_empty)
    }

    /// Which line has the oldest request that may be served, among apps that are not slow.
    fn first_of_others(&self, room: Room) -> Option<Pace> {
        let quick = self.quick.first().filter(|_| room.quick).map(|ticket| (ticket, Pace::Quick));
        let new = self.new.first().filter(|_| room.new).map(|ticket| (ticket, Pace::New));
        quick.into_iter().chain(new).min_by_key(|(ticket, _)| *ticket).map(|(_, pace)| pace)
    }
}

impl Line {
    fn len(&self) -> usize {
        self.by_app.values().map(VecDeque::len).sum()
    }

    fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    fn first(&self) -> Option<Ticket> {
        self.by_app.get(self.order.front()?)?.front().copied()
    }

    fn push(&mut self, app: &str, ticket: Ticket) {
        let tickets = self.by_app.entry(app.to_owned()).or_default();
        if tickets.is_empty() {
            self.order.push_back(app.to_owned());
        }
        tickets.push_back(ticket);
    }

    fn pop(&mut self) -> Option<(String, Ticket)> {
        let app = self.order.pop_front()?;
        let tickets = self.by_app.get_mut(&app)?;
        let ticket = tickets.pop_front()?;
        if tickets.is_empty() {
            self.by_app.remove(&app);
        } else {
            self.order.push_back(app.clone());
        }
        Some((app, ticket))
    }

    fn remove(&mut self, app: &str, ticket: Ticket) -> bool {
        let Some(tickets) = self.by_app.get_mut(app) else { return false };
        let before = tickets.len();
        tickets.retain(|waiting| *waiting != ticket);
        let has_waited = tickets.len() < before;
        if tickets.is_empty() {
            self.by_app.remove(app);
            self.order.retain(|waiting| waiting != app);
        }
        has_waited
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(second: u64) -> Duration {
        Duration::from_secs(second)
    }

    fn tenant(name: &str) -> Tenant {
        let (project, app) = name.split_once('/').unwrap();
        Tenant { project: project.to_owned(), app: app.to_owned() }
    }

    fn ask_all(turns: &mut Turns, names: &[&str], now: Duration) -> Vec<Ticket> {
        names.iter().map(|name| turns.ask(&tenant(name), now)).collect()
    }

    /// Serves all that can be served. Their work begins.
    fn serve_all(turns: &mut Turns, now: Duration) -> Vec<Ticket> {
        let served: Vec<Ticket> = std::iter::from_fn(|| turns.serve(now)).collect();
        for ticket in &served {
            turns.begin(*ticket, now);
        }
        served
    }

    /// Lets apps work once for so long, one after the other.
    fn work(turns: &mut Turns, names: &[&str], seconds: u64, now: u64) {
        for name in names {
            turns.ask(&tenant(name), at(now));
            for ticket in serve_all(turns, at(now)) {
                turns.give_back(ticket, at(now + seconds));
            }
        }
    }

    #[test]
    fn projects_take_turns_and_then_their_apps() {
        let names = ["p/a", "p/a", "p/a", "p/b", "q/c", "r/d", "q/c"];
        let mut turns = Turns::new(1);
        let tickets = ask_all(&mut turns, &names, at(0));
        let mut served = Vec::new();
        while let Some(ticket) = turns.serve(at(0)) {
            served.push(tickets.iter().position(|one| *one == ticket).map(|index| names[index]).unwrap());
            turns.give_back(ticket, at(0));
        }
        assert_eq!(served, ["p/a", "q/c", "r/d", "p/b", "q/c", "p/a", "p/a"]);
        assert_eq!((turns.n_free(), turns.n_waiting()), (1, 0));
    }

    /// How many of ten apps of each pace are served at once, and whether an app that is known to be quick is served after
    /// that.
    #[test]
    fn slow_apps_leave_room_for_others() {
        for (n_places, pace, n_served, quick_is_served) in [
            (1, "slow", 1, false),
            (2, "slow", 1, true),
            (3, "slow", 1, true),
            (4, "slow", 2, true),
            (12, "slow", 6, true),
            (12, "quick", 10, true),
            (4, "quick", 4, false),
            // Not known yet: all of few places, all but one of many.
            (2, "new", 2, false),
            (3, "new", 3, false),
            (4, "new", 3, true),
        ] {
            let mut turns = Turns::new(n_places);
            let names: Vec<String> = (0..10).map(|n| format!("p/{pace}-{n}")).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            match pace {
                "slow" => work(&mut turns, &names, 6, 0),
                "quick" => work(&mut turns, &names, 5, 0),
                _ => {}
            }
            work(&mut turns, &["p/honest"], 1, 400);
            ask_all(&mut turns, &names, at(800));
            assert_eq!(serve_all(&mut turns, at(800)).len(), n_served, "{n_places} places, {pace}");
            let honest = turns.ask(&tenant("p/honest"), at(801));
            let served = serve_all(&mut turns, at(801));
            assert_eq!(served.contains(&honest), quick_is_served, "{n_places} places, {pace}");
        }
    }

    #[test]
    fn work_that_takes_long_counts_as_slow_before_it_ends() {
        let mut turns = Turns::new(4);
        ask_all(&mut turns, &["p/a", "p/b", "p/c", "p/d", "p/e"], at(0));
        let first = serve_all(&mut turns, at(0));
        assert_eq!(first.len(), 3, "none of them is known");
        turns.give_back(first[2], at(6));
        assert_eq!(serve_all(&mut turns, at(6)).len(), 1, "two are slow by now, and one place is kept");
        // `p/a` asks for something else while it works: it counts as slow, and slow apps have their half.
        let again = turns.ask(&tenant("p/a"), at(7));
        turns.withdraw(&tenant("p/e"), Ticket(4));
        assert_eq!(serve_all(&mut turns, at(7)), []);
        turns.give_back(first[0], at(8));
        assert_eq!(serve_all(&mut turns, at(8)), [again]);
    }

    #[test]
    fn apps_that_are_not_known_have_the_last_of_few_places_unless_one_was_slow() {
        let mut turns = Turns::new(2);
        ask_all(&mut turns, &["p/a", "p/b"], at(0));
        let both = serve_all(&mut turns, at(0));
        assert_eq!(both.len(), 2);
        for ticket in &both {
            turns.give_back(*ticket, at(60));
        }
        ask_all(&mut turns, &["p/c", "p/d"], at(61));
        let one = serve_all(&mut turns, at(61));
        assert_eq!(one.len(), 1, "two were slow a moment ago");
        turns.give_back(one[0], at(62));
        let one = serve_all(&mut turns, at(62));
        turns.give_back(one[0], at(63));
        ask_all(&mut turns, &["p/e", "p/f"], at(400));
        assert_eq!(serve_all(&mut turns, at(400)).len(), 2, "that was long ago");
    }

    #[test]
    fn an_app_is_as_its_last_work_was() {
        let mut turns = Turns::new(2);
        work(&mut turns, &["p/a", "p/b"], 60, 0);
        let tickets = ask_all(&mut turns, &["p/a", "p/b"], at(100));
        assert_eq!(serve_all(&mut turns, at(100)), [tickets[0]]);
        turns.give_back(tickets[0], at(101));
        assert_eq!(serve_all(&mut turns, at(101)), [tickets[1]]);
        let again = turns.ask(&tenant("p/a"), at(102));
        assert_eq!(serve_all(&mut turns, at(102)), [again], "its last work was quick");
        // What waited for something else was not slow.
        turns.give_back(again, at(103));
        let waits = turns.ask(&tenant("p/a"), at(103));
        assert_eq!(turns.serve(at(103)), Some(waits));
        turns.begin(waits, at(170));
        turns.give_back(waits, at(171));
        let again = turns.ask(&tenant("p/a"), at(172));
        assert_eq!(turns.serve(at(172)), Some(again));
    }

    #[test]
    fn slow_work_waits_for_other_work_but_not_forever() {
        let mut turns = Turns::new(1);
        work(&mut turns, &["p/slow"], 60, 0);
        let slow = turns.ask(&tenant("p/slow"), at(100));
        for n in 0..=MAX_OVERTAKEN {
            let other = turns.ask(&tenant("q/quick"), at(100));
            let served = turns.serve(at(100)).unwrap();
            assert_eq!(served, if n < MAX_OVERTAKEN { other } else { slow });
            turns.give_back(served, at(100));
        }
    }

    /// Apps whose work takes a minute ask again as soon as they are done. An app whose work takes a second asks now and then.
    #[test]
    fn an_honest_app_does_not_wait_for_slow_ones() {
        for (n_places, n_slow, longest) in [(2, 24, 60), (4, 24, 0), (12, 24, 0), (12, 200, 0)] {
            let mut turns = Turns::new(n_places);
            let slow: Vec<Tenant> = (0..n_slow).map(|n| tenant(&format!("default/slow-{n}"))).collect();
            let honest = tenant("default/honest");
            work(&mut turns, &["default/honest"], 1, 0);
            let mut asked: BTreeMap<Ticket, (Tenant, u64)> =
                slow.iter().map(|slow| (turns.ask(slow, at(10)), (slow.clone(), 10))).collect();
            let mut ends: Vec<(u64, Ticket)> = Vec::new();
            let (mut waits, mut is_asking) = (Vec::new(), false);
            for now in 10..4000 {
                ends.retain(|(end, ticket)| {
                    if *end == now {
                        turns.give_back(*ticket, at(now));
                        if let Some((tenant, _)) = asked.remove(ticket).filter(|(one, _)| *one != honest) {
                            asked.insert(turns.ask(&tenant, at(now)), (tenant, now));
                        }
                    }
                    *end > now
                });
                if now % 7 == 0 && !is_asking {
                    asked.insert(turns.ask(&honest, at(now)), (honest.clone(), now));
                    is_asking = true;
                }
                for ticket in serve_all(&mut turns, at(now)) {
                    let (tenant, since) = &asked[&ticket];
                    let takes = if *tenant == honest { 1 } else { 60 };
                    if *tenant == honest {
                        waits.push(now - since);
                        is_asking = false;
                    }
                    ends.push((now + takes, ticket));
                }
            }
            assert!(waits.len() > 500, "{n_places} places");
            let n_long = waits.iter().filter(|wait| **wait > 0).count();
            assert!(n_long <= 1, "{n_places} places: at first only: {waits:?}");
            assert!(waits.iter().max() <= Some(&longest), "{n_places} places: {waits:?}");
        }
    }

    #[test]
    fn a_withdrawn_request_is_not_served() {
        let mut turns = Turns::new(1);
        let tickets = ask_all(&mut turns, &["p/a", "p/b"], at(0));
        assert!(turns.withdraw(&tenant("p/a"), tickets[0]));
        assert!(!turns.withdraw(&tenant("p/a"), tickets[0]));
        assert_eq!(serve_all(&mut turns, at(0)), [tickets[1]]);
        assert!(!turns.withdraw(&tenant("p/b"), tickets[1]), "it was served");
    }

    #[test]
    fn an_app_that_is_gone_is_forgotten() {
        let mut turns = Turns::new(1);
        for index in 0..100 {
            work(&mut turns, &[&format!("project-{index}/app")], 1, 0);
        }
        assert_eq!(turns.known.len(), 100);
        let day = 24 * 3600;
        turns.ask(&tenant("p/a"), at(day + 2));
        assert_eq!((turns.known.len(), turns.waiting.len(), turns.order.len()), (0, 1, 1));
    }
}
