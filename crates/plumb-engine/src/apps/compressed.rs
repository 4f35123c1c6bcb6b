//! Values that are kept for long and read seldom: as compressed text.

use std::cell::RefCell;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Fast: what is packed is much alike, and packed often.
const LEVEL: i32 = 1;

/// Contexts are large: one of each per thread, made once. Making one for each value would leave holes of their size all
/// over the heap.
#[derive(Default)]
struct Contexts {
    compressor: Option<zstd::bulk::Compressor<'static>>,
    decompressor: Option<zstd::bulk::Decompressor<'static>>,
}

thread_local! {
    static CONTEXTS: RefCell<Contexts> = RefCell::default();
}

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
        let packed = CONTEXTS.with_borrow_mut(|contexts| {
            if contexts.compressor.is_none() {
                contexts.compressor = zstd::bulk::Compressor::new(LEVEL).ok();
            }
            contexts.compressor.as_mut()?.compress(&text).ok()
        });
        Self { size: text.len(), text: packed.unwrap_or_default().into() }
    }

    /// The value; `None` if it cannot be read back.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Option<T> {
        let text = CONTEXTS.with_borrow_mut(|contexts| {
            if contexts.decompressor.is_none() {
                contexts.decompressor = zstd::bulk::Decompressor::new().ok();
            }
            contexts.decompressor.as_mut()?.decompress(&self.text, self.size).ok()
        });
        serde_json::from_slice(&text?).ok()
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
