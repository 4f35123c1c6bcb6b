//! The zstd contexts of a thread. They are large and slow to make, and one for each value would leave holes of their
//! size all over the heap: so there is one set per thread, made on first use.

use std::cell::RefCell;
use std::sync::Arc;

/// A text that other texts are compressed against. A thin pointer: every compressed object has one.
pub(crate) type Sample = Arc<Box<[u8]>>;

/// The fastest level. What is packed is packed often, and most of the gain comes from samples and repetition.
const LEVEL: i32 = 1;

#[derive(Default)]
struct Contexts {
    plain: Option<zstd::bulk::Compressor<'static>>,
    sampled: Option<zstd::bulk::Compressor<'static>>,
    /// The sample that `sampled` has loaded. Loading takes longer than compressing one object.
    loaded: Option<Sample>,
    decompressor: Option<zstd::bulk::Decompressor<'static>>,
}

thread_local! {
    static CONTEXTS: RefCell<Contexts> = RefCell::default();
}

/// `None` only if memory runs out.
pub(super) fn compress(text: &[u8]) -> Option<Vec<u8>> {
    CONTEXTS.with_borrow_mut(|contexts| {
        if contexts.plain.is_none() {
            contexts.plain = zstd::bulk::Compressor::new(LEVEL).ok();
        }
        contexts.plain.as_mut()?.compress(text).ok()
    })
}

/// `None` only if memory runs out.
pub(super) fn compress_against(text: &[u8], sample: &Sample) -> Option<Vec<u8>> {
    CONTEXTS.with_borrow_mut(|contexts| {
        if contexts.sampled.is_none() {
            contexts.sampled = zstd::bulk::Compressor::new(LEVEL).ok();
            contexts.loaded = None;
        }
        let context = contexts.sampled.as_mut()?;
        let is_loaded = contexts.loaded.as_ref().is_some_and(|loaded| Arc::ptr_eq(loaded, sample));
        if !is_loaded {
            contexts.loaded = None;
            context.set_dictionary(LEVEL, sample).ok()?;
            contexts.loaded = Some(Arc::clone(sample));
        }
        context.compress(text).ok()
    })
}

/// The text of `size` bytes that was compressed, against `sample` if there was one. `None` if `bytes` are not that.
pub(super) fn decompress(bytes: &[u8], size: usize, sample: Option<&Sample>) -> Option<Vec<u8>> {
    CONTEXTS.with_borrow_mut(|contexts| {
        if contexts.decompressor.is_none() {
            contexts.decompressor = zstd::bulk::Decompressor::new().ok();
        }
        let context = contexts.decompressor.as_mut()?;
        // An empty dictionary means none.
        context.set_dictionary(sample.map_or(&[], |sample| sample)).ok()?;
        context.decompress(bytes, size).ok()
    })
}
