//! Keys that all replicas derive from the key that signs tokens.

use aws_lc_rs::hkdf;
use aws_lc_rs::hmac;
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// How long a mark counts, in seconds. It covers the time of a request to the leader, and clocks that differ.
const MARK_COUNTS: i64 = 60;

/// The keys of the replicas of one installation. It has no `Debug`, because it holds secrets.
#[derive(Clone)]
pub(crate) struct ReplicaKeys {
    marks: [u8; 32],
    pair: [u8; 32],
}

impl ReplicaKeys {
    /// The keys that follow from the key that signs tokens.
    pub(crate) fn derive(signing_key: &[u8]) -> Option<Self> {
        Some(Self { marks: expand(signing_key, b"marks")?, pair: expand(signing_key, b"pair")? })
    }

    fn sign(&self, text: &str) -> String {
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &self.marks), text.as_bytes());
        URL_SAFE_NO_PAD.encode(tag)
    }

    fn is_signed(&self, text: &str, tag: &str) -> bool {
        let Ok(tag) = URL_SAFE_NO_PAD.decode(tag) else { return false };
        hmac::verify(&hmac::Key::new(hmac::HMAC_SHA256, &self.marks), text.as_bytes(), &tag).is_ok()
    }

    /// Says that the client of a request is at this address.
    pub(super) fn mark(&self, client: std::net::IpAddr, path: &str, now: i64) -> String {
        let tag = self.sign(&format!("client\n{client}\n{now}\n{path}"));
        format!("{client} {now} {tag}")
    }

    /// The address of the client of a request that a replica passed on. `None` if no replica made the mark, or not now.
    pub(crate) fn client_of(&self, mark: &str, path: &str, now: i64) -> Option<std::net::IpAddr> {
        let mut words = mark.split(' ');
        let (client, at, tag) = (words.next()?, words.next()?, words.next()?);
        let time: i64 = at.parse().ok()?;
        let is_now = (now - MARK_COUNTS..=now + MARK_COUNTS).contains(&time);
        let is_signed = self.is_signed(&format!("client\n{client}\n{at}\n{path}"), tag);
        client.parse().ok().filter(|_| is_now && is_signed)
    }

    /// The address of the leader as it is published.
    pub(super) fn place(&self, address: &str) -> String {
        format!("{address} {}", self.sign(&format!("leader\n{address}")))
    }

    /// The published address, if a replica published it.
    pub(super) fn address_of<'p>(&self, place: &'p str) -> Option<&'p str> {
        let (address, tag) = place.split_once(' ')?;
        self.is_signed(&format!("leader\n{address}"), tag).then_some(address)
    }

    /// The key pair for TLS between replicas.
    pub(super) fn pair(&self) -> Option<Ed25519KeyPair> {
        Ed25519KeyPair::from_seed_unchecked(&self.pair).ok()
    }

    pub(super) fn public_key(&self) -> Option<Vec<u8>> {
        self.pair().map(|pair| pair.public_key().as_ref().to_vec())
    }
}

fn expand(key: &[u8], purpose: &[u8]) -> Option<[u8; 32]> {
    let salt = hkdf::Salt::new(hkdf::HKDF_SHA256, b"plumb replicas");
    let mut out = [0; 32];
    let info = [purpose];
    salt.extract(key).expand(&info, hkdf::HKDF_SHA256).ok()?.fill(&mut out).ok()?;
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_replicas_make_marks() {
        let (keys, others) = (ReplicaKeys::derive(b"one").unwrap(), ReplicaKeys::derive(b"two").unwrap());
        let client = "10.1.2.3".parse().unwrap();
        let mark = keys.mark(client, "/api/v1/applications", 1_000);
        assert_eq!(keys.client_of(&mark, "/api/v1/applications", 1_030), Some(client));
        assert_eq!(keys.client_of(&mark, "/api/v1/clusters", 1_030), None, "of another request");
        assert_eq!(keys.client_of(&mark, "/api/v1/applications", 1_061), None, "too old");
        assert_eq!(keys.client_of(&mark, "/api/v1/applications", 900), None, "from the future");
        assert_eq!(others.client_of(&mark, "/api/v1/applications", 1_030), None, "of another installation");
        let forged = mark.replace("10.1.2.3", "10.1.2.4");
        assert_eq!(keys.client_of(&forged, "/api/v1/applications", 1_030), None);
        let place = keys.place("10.0.0.1:8080");
        assert_eq!(keys.address_of(&place), Some("10.0.0.1:8080"));
        assert_eq!(keys.address_of(&place.replace(":8080", ":8081")), None);
        assert_ne!(keys.public_key(), others.public_key());
    }
}
