//! A short digest of a manifest.

use std::fmt;

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::Manifest;

/// The first 128 bits of the SHA-256 of a value's JSON text. Equal values have equal fingerprints, and it is practically
/// impossible to find two different values with the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 16]);

impl Fingerprint {
    /// Of a whole manifest.
    pub fn of(manifest: &Manifest) -> Self {
        Self::of_value(manifest.value())
    }

    /// Of any JSON value.
    pub fn of_value(value: &Value) -> Self {
        // The maps of serde_json are sorted, so equal values have equal texts.
        let digest = Sha256::digest(value.to_string().as_bytes());
        let mut short = [0; 16];
        short.copy_from_slice(&digest[..16]);
        Self(short)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn it_is_the_start_of_the_sha256_of_the_sorted_json() {
        // printf '{"a":[1,null],"b":"x"}' | sha256sum
        let value = json!({"b": "x", "a": [1, null]});
        assert_eq!(Fingerprint::of_value(&value).to_string(), "3dece6dc8d22d61692b03c7d51836aae");
        assert_ne!(Fingerprint::of_value(&value), Fingerprint::of_value(&json!({"b": "x"})));
    }
}
