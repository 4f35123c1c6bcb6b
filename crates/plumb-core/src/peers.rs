//! Shares of a limited number of places between clients, so that one client cannot take them all.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// One client, as far as its address tells: an IPv4 address, or an IPv6 network of 64 bits. One machine can use every
/// address of such a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Peer(IpAddr);

impl Peer {
    /// The client with this address. An IPv4 address that is written as an IPv6 address is the IPv4 address.
    pub fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V6(address) => {
                let network = u128::from(address) >> 64 << 64;
                Self(IpAddr::V6(Ipv6Addr::from(network)))
            }
            address @ IpAddr::V4(_) => Self(address),
        }
    }

    /// The address; of a network if addresses of one network are one peer.
    pub fn address(self) -> IpAddr {
        self.0
    }
}

/// A number of places that clients share. Cheap to clone; clones share the places.
#[derive(Clone, Debug)]
pub struct PeerShares {
    all: usize,
    of_one: usize,
    /// Places that only clients with few places get.
    kept: usize,
    taken: Arc<Mutex<Taken>>,
}

/// A client with fewer places than this gets one of those that are kept.
const FEW: usize = 8;

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    by_peer: HashMap<Peer, usize>,
}

/// Places that a client has until this is dropped.
#[derive(Debug)]
pub struct PeerShare {
    shares: PeerShares,
    peer: Peer,
    places: usize,
}

/// Why a client gets no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoShare {
    /// The client has its share already.
    OfPeer,
    /// All places are taken.
    OfAll,
}

impl PeerShares {
    /// `all` places, of which one client has at most `of_one`.
    pub fn new(all: usize, of_one: usize) -> Self {
        Self { all, of_one, kept: 0, taken: Arc::default() }
    }

    /// The same with places that are kept for clients that have few: a few clients together cannot take all.
    #[must_use]
    pub fn keeping(self, kept: usize) -> Self {
        Self { kept, ..self }
    }

    /// Takes places for a client. A client that has none yet gets them even if they exceed the share of one client.
    pub fn take(&self, peer: Peer, places: usize) -> Result<PeerShare, NoShare> {
        let mut taken = self.taken();
        let of_peer = taken.by_peer.get(&peer).copied().unwrap_or_default();
        if of_peer > 0 && of_peer.saturating_add(places) > self.of_one {
            return Err(NoShare::OfPeer);
        }
        let kept = if of_peer.saturating_add(places) > FEW { self.kept } else { 0 };
        if taken.all.saturating_add(places) > self.all.saturating_sub(kept) {
            return Err(NoShare::OfAll);
        }
        taken.all += places;
        taken.by_peer.insert(peer, of_peer + places);
        Ok(PeerShare { shares: self.clone(), peer, places })
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for PeerShare {
    fn drop(&mut self) {
        let mut taken = self.shares.taken();
        taken.all = taken.all.saturating_sub(self.places);
        let left = taken.by_peer.get(&self.peer).copied().unwrap_or_default().saturating_sub(self.places);
        if left == 0 {
            taken.by_peer.remove(&self.peer);
        } else {
            taken.by_peer.insert(self.peer, left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(address: &str) -> Peer {
        Peer::of(address.parse().unwrap())
    }

    #[test]
    fn a_peer_is_an_address_or_an_ipv6_network() {
        assert_ne!(peer("192.0.2.1"), peer("192.0.2.2"));
        assert_eq!(peer("192.0.2.1"), peer("::ffff:192.0.2.1"));
        assert_eq!(peer("2001:db8:0:1::1"), peer("2001:db8:0:1:ffff:ffff:ffff:ffff"));
        assert_ne!(peer("2001:db8:0:1::1"), peer("2001:db8:0:2::1"));
    }

    #[test]
    fn one_client_cannot_take_the_places_of_others() {
        let shares = PeerShares::new(5, 2);
        let greedy: Vec<_> = (1..=9).map(|host| shares.take(peer(&format!("2001:db8::{host}")), 1)).collect();
        assert_eq!(greedy.iter().filter(|taken| taken.is_ok()).count(), 2);
        assert_eq!(greedy[2].as_ref().err(), Some(&NoShare::OfPeer));
        let other = shares.take(peer("192.0.2.1"), 1);
        assert!(other.is_ok());
        drop(greedy);
        assert!(shares.take(peer("2001:db8::1"), 2).is_ok(), "dropped places are free again");
    }

    #[test]
    fn two_clients_together_leave_places_for_others() {
        let shares = PeerShares::new(100, 50).keeping(20);
        let greedy = ["192.0.2.1", "192.0.2.2"]
            .map(|address| (0..50).filter_map(|_| shares.take(peer(address), 1).ok()).collect::<Vec<_>>());
        assert_eq!(greedy.iter().map(Vec::len).sum::<usize>(), 80);
        let others = ["192.0.2.3", "192.0.2.4"]
            .map(|address| (0..20).filter_map(|_| shares.take(peer(address), 1).ok()).collect::<Vec<_>>());
        assert_eq!(others.map(|shares| shares.len()), [FEW, FEW]);
    }

    #[test]
    fn all_places_are_bounded_and_a_first_large_one_fits() {
        let shares = PeerShares::new(10, 2);
        let large = shares.take(peer("192.0.2.1"), 8);
        assert!(large.is_ok(), "more than its share, but its first");
        assert_eq!(shares.take(peer("192.0.2.1"), 1).err(), Some(NoShare::OfPeer));
        let second = shares.take(peer("192.0.2.2"), 2);
        assert!(second.is_ok());
        assert_eq!(shares.take(peer("192.0.2.3"), 1).err(), Some(NoShare::OfAll));
        drop(large);
        assert!(shares.take(peer("192.0.2.3"), 1).is_ok());
        assert!(shares.taken().by_peer.len() == 1, "a client without places is forgotten");
    }
}
