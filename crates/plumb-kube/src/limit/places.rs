//! Places whose requests take long, such as the `ConfigMaps` of a namespace that a slow admission webhook looks at.
//!
//! A slow place is not a slow server. Its requests must not use up the slots of all others, so they have a few slots of
//! their own until the place answers quickly again.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use tokio::time::Instant;

/// A request that takes longer makes its place slow. An API server that is only busy answers sooner.
pub(crate) const SLOW_AFTER: Duration = Duration::from_millis(750);
/// Most requests in flight to one slow place, and to all of them together.
const MOST_OF_ONE: usize = 8;
const MOST_OF_ALL: usize = 32;
/// Most requests in flight to slow places if the server as a whole is slow.
const MOST_OF_SLOW_SERVER: usize = 6;
/// The server as a whole is slow if places of this many namespaces and this many resources are, and reads among them: no
/// admission webhook sees a read.
const SERVER_WIDE: usize = 3;
/// A place is quick again after this many quick answers in a row.
const QUICK_ANSWERS: u32 = 4;
/// Reads of a place tell something about the server as a whole for this long after they were slow.
const SLOW_READ_COUNTS: Duration = Duration::from_secs(5);
/// A place without requests for this long is no longer known as slow.
const FORGOTTEN_AFTER: Duration = Duration::from_mins(1);

/// Where a request goes: reads or writes of one resource in one namespace.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    pub(crate) is_write: bool,
    pub(crate) resource: String,
    /// Empty for resources of the cluster.
    pub(crate) namespace: String,
}

#[derive(Debug)]
struct SlowPlace {
    in_flight: usize,
    /// Quick answers in a row.
    n_quick: u32,
    last_used: Instant,
}

/// All slow places, with their requests in flight.
#[derive(Debug, Default)]
pub(super) struct SlowPlaces {
    places: HashMap<Place, SlowPlace>,
    in_flight: usize,
}

impl SlowPlaces {
    /// True if the last requests to this place took long.
    pub(super) fn is_slow(&self, place: &Place, now: Instant) -> bool {
        self.places.get(place).is_some_and(|known| known.n_quick < QUICK_ANSWERS && !known.is_forgotten(now))
    }

    /// True if the server as a whole is slow, and not only some places.
    pub(super) fn is_server_wide(&self, now: Instant) -> bool {
        let is_slow_read =
            |place: &Place, known: &SlowPlace| !place.is_write && known.n_quick < QUICK_ANSWERS;
        let has_slow_read =
            self.places.iter().any(|(place, known)| is_slow_read(place, known) && known.is_recent(now));
        let used = self.places.iter().filter(|(_, known)| known.in_flight > 0);
        let (namespaces, resources): (BTreeSet<&str>, BTreeSet<&str>) =
            used.map(|(place, _)| (place.namespace.as_str(), place.resource.as_str())).unzip();
        has_slow_read && namespaces.len() >= SERVER_WIDE && resources.len() >= SERVER_WIDE
    }

    /// Takes a slot for a request to a slow place, if there is one.
    pub(super) fn enter(&mut self, place: &Place, now: Instant) -> bool {
        let most = if self.is_server_wide(now) { MOST_OF_SLOW_SERVER } else { MOST_OF_ALL };
        if self.in_flight >= most
            || self.places.get(place).is_some_and(|known| known.in_flight >= MOST_OF_ONE)
        {
            return false;
        }
        self.count(place, now);
        true
    }

    /// Notes a request that is in flight for too long. It counts, even if there is no slot.
    pub(super) fn turn_slow(&mut self, place: &Place, now: Instant) {
        self.places.retain(|_, known| known.in_flight > 0 || !known.is_forgotten(now));
        self.count(place, now);
        if let Some(known) = self.places.get_mut(place) {
            known.n_quick = 0;
        }
    }

    fn count(&mut self, place: &Place, now: Instant) {
        self.in_flight += 1;
        let new = || SlowPlace { in_flight: 0, n_quick: 0, last_used: now };
        let known = self.places.entry(place.clone()).or_insert_with(new);
        known.in_flight += 1;
        known.last_used = now;
    }

    /// Notes the end of a request that counted. `took` is `None` if it was not answered.
    pub(super) fn leave(&mut self, place: &Place, took: Option<Duration>, now: Instant) {
        self.in_flight = self.in_flight.saturating_sub(1);
        let Some(known) = self.places.get_mut(place) else { return };
        known.in_flight = known.in_flight.saturating_sub(1);
        known.last_used = now;
        match took {
            Some(took) if took < SLOW_AFTER => known.n_quick = known.n_quick.saturating_add(1),
            Some(_) => known.n_quick = 0,
            None => {}
        }
        if known.in_flight == 0 && known.n_quick >= QUICK_ANSWERS {
            self.places.remove(place);
        }
    }
}

impl SlowPlace {
    /// One slow read, as while plumb starts, says nothing about the server a while later.
    fn is_recent(&self, now: Instant) -> bool {
        self.in_flight > 0 || now.duration_since(self.last_used) < SLOW_READ_COUNTS
    }

    fn is_forgotten(&self, now: Instant) -> bool {
        self.in_flight == 0 && now.duration_since(self.last_used) > FORGOTTEN_AFTER
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUICK: Option<Duration> = Some(Duration::from_millis(5));
    const LONG: Option<Duration> = Some(Duration::from_secs(10));

    fn place(resource: &str, namespace: &str) -> Place {
        Place { is_write: true, resource: resource.to_owned(), namespace: namespace.to_owned() }
    }

    #[tokio::test(start_paused = true)]
    async fn a_place_is_slow_until_it_answers_quickly_several_times_in_a_row() {
        let (mut places, now) = (SlowPlaces::default(), Instant::now());
        let configs = place("configmaps", "web");
        assert!(!places.is_slow(&configs, now));
        places.turn_slow(&configs, now);
        assert!(places.is_slow(&configs, now) && !places.is_slow(&place("secrets", "web"), now));
        places.leave(&configs, LONG, now);
        for took in [QUICK, QUICK, QUICK, LONG, None, QUICK, QUICK, QUICK] {
            assert!(places.enter(&configs, now));
            places.leave(&configs, took, now);
            assert!(places.is_slow(&configs, now), "{took:?}");
        }
        assert!(places.enter(&configs, now));
        places.leave(&configs, QUICK, now);
        assert!(!places.is_slow(&configs, now) && places.places.is_empty() && places.in_flight == 0);
        places.turn_slow(&configs, now);
        places.leave(&configs, None, now);
        assert!(!places.is_slow(&configs, now + FORGOTTEN_AFTER * 2), "it was not used for long");
    }

    #[tokio::test(start_paused = true)]
    async fn slow_places_share_slots_and_a_slow_server_has_fewer() {
        let (mut places, now) = (SlowPlaces::default(), Instant::now());
        let n_entered =
            |places: &mut SlowPlaces, place: &Place| (0..100).filter(|_| places.enter(place, now)).count();
        for (n, expected) in [8, 8, 8, 8, 0].into_iter().enumerate() {
            assert_eq!(n_entered(&mut places, &place("configmaps", &format!("team-{n}"))), expected);
        }
        assert!(!places.is_server_wide(now), "one kind is slow everywhere, others need not be");
        let mut places = SlowPlaces::default();
        for (n, resource) in ["configmaps", "secrets", "services", "deployments"].into_iter().enumerate() {
            let one = place(resource, &format!("team-{n}"));
            places.turn_slow(&one, now);
        }
        assert!(!places.is_server_wide(now), "a webhook may see all of these writes");
        let read = Place { is_write: false, ..place("configmaps", "team-0") };
        places.turn_slow(&read, now);
        assert!(places.is_server_wide(now));
        assert_eq!(n_entered(&mut places, &place("configmaps", "team-0")), 1);
        for _ in 0..QUICK_ANSWERS {
            places.leave(&read, QUICK, now);
        }
        assert!(!places.is_server_wide(now), "reads are quick again");
    }

    #[tokio::test(start_paused = true)]
    async fn one_slow_read_does_not_stand_for_the_server_a_while_later() {
        let (mut places, now) = (SlowPlaces::default(), Instant::now());
        let read = Place { is_write: false, ..place("pods", "other") };
        places.turn_slow(&read, now);
        places.leave(&read, LONG, now);
        for (n, resource) in ["configmaps", "secrets", "services"].into_iter().enumerate() {
            places.turn_slow(&place(resource, &format!("team-{n}")), now);
        }
        assert!(places.is_server_wide(now), "reads and writes are slow at the same time");
        let later = now + SLOW_READ_COUNTS + Duration::from_secs(1);
        assert!(!places.is_server_wide(later), "only the writes are still slow, as with a slow webhook");
        places.turn_slow(&read, later);
        assert!(places.is_server_wide(later + SLOW_READ_COUNTS * 2), "a read is in flight for long");
    }
}
