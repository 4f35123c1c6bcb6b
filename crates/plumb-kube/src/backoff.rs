//! Waiting before something is tried again.

use std::time::Duration;

/// A random part of `most`, so that many waiters do not all come back at once. The seed is the address-space
/// and time randomness of the hasher; nothing here is secret.
pub(crate) fn jitter(most: Duration) -> Duration {
    use std::hash::{BuildHasher, RandomState};
    let random = RandomState::new().hash_one(0u8);
    let fraction = u32::try_from(random % 1000).unwrap_or_default();
    most * fraction / 1000
}
