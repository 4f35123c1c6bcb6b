//! Values that are kept for long and read seldom: as compressed text.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Fast: what is packed is much alike, and packed often.
const LEVEL: i32 = 1;

/// A value as compressed JSON. A parsed one takes ten times the room of its text, and the text ten times this.
#[derive(Debug, Default)]
pub(crate) struct Packed {
    text: Box<[u8]>,
    /// How long the text is.
    size: usize,
}

impl Packed {
    pub(crate) fn new(value: &impl Serialize) -> Self {
        // JSON values always become JSON, and memory is always written to.
        let text = serde_json::to_vec(value).unwrap_or_default();
        Self { size: text.len(), text: zstd::bulk::compress(&text, LEVEL).unwrap_or_default().into() }
    }

    /// The value; `None` if it cannot be read back.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Option<T> {
        let text = zstd::bulk::decompress(&self.text, self.size).ok()?;
        serde_json::from_slice(&text).ok()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn what_is_packed_comes_back() {
        for value in [
            json!(null),
            json!([]),
            json!({"a": "ä\u{0}", "n": [0.1, u64::MAX, i64::MIN], "x": "x".repeat(10_000)}),
        ] {
            assert_eq!(Packed::new(&value).read(), Some(value));
        }
        assert_eq!(Packed::default().read::<Value>(), None, "nothing was packed");
    }
}
