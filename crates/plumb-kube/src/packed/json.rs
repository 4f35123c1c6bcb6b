//! Values that are kept for long and read seldom.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::contexts::{compress, decompress};

/// A value as compressed JSON. A parsed value takes ten times the memory of its JSON text, and the text ten times the
/// memory of this.
#[derive(Debug, Default)]
pub struct PackedJson {
    bytes: Box<[u8]>,
    /// Length of the JSON text.
    size: usize,
}

impl PackedJson {
    /// Compresses a value.
    pub fn new(value: &impl Serialize) -> Self {
        // JSON values always become JSON, and writing to memory does not fail.
        let text = serde_json::to_vec(value).unwrap_or_default();
        Self { size: text.len(), bytes: compress(&text).unwrap_or_default().into() }
    }

    /// The value; `None` if it cannot be read back.
    pub fn read<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_slice(&decompress(&self.bytes, self.size, None)?).ok()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_packed_value_is_read_back() {
        for value in [
            json!(null),
            json!([]),
            json!({"a": "ä\u{0}", "n": [0.1, u64::MAX, i64::MIN], "x": "x".repeat(10_000)}),
        ] {
            assert_eq!(PackedJson::new(&value).read(), Some(value));
        }
        assert_eq!(PackedJson::default().read::<Value>(), None, "nothing was packed");
    }
}
