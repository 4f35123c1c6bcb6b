//! Objects kept whole, small.
//!
//! Two objects of one kind differ in a few values; their field names, their `managedFields` and most of their
//! structure are the same. So each kind's objects are compressed against one sample of the kind, which makes
//! a Deployment of five kilobytes a few hundred bytes.

use plumb_core::object::Manifest;
use std::cell::RefCell;
use std::sync::Arc;

/// A compressed object.
#[derive(Clone, Debug)]
pub(super) enum Packed {
    /// Too small to gain, or before the kind has a sample.
    Plain(Arc<[u8]>),
    /// Against the kind's sample; `size` is that of the text.
    Compressed { bytes: Arc<[u8]>, size: u32 },
}

/// The text that a kind's objects are compressed against. It never changes once it is chosen.
pub(super) type Sample = Arc<[u8]>;

/// Fast; the sample does most of the work.
const LEVEL: i32 = 1;
/// Below this the frame costs what the compression gains.
const WORTH_IT: usize = 300;
/// A sample larger than this costs more time than it saves space.
const LARGEST_SAMPLE: usize = 32 * 1024;

/// Contexts are large and slow to make: one of each per thread.
#[derive(Default)]
struct Contexts {
    compressor: Option<zstd::bulk::Compressor<'static>>,
    /// What the compressor has loaded; loading it again for each object would take longer than the object.
    loaded: Option<Sample>,
    decompressor: Option<zstd::bulk::Decompressor<'static>>,
}

thread_local! {
    static CONTEXTS: RefCell<Contexts> = RefCell::default();
}

/// Makes an object small, against the sample of its kind.
pub(super) fn pack(raw: &str, sample: Option<&Sample>) -> Packed {
    let compressed = sample
        .filter(|_| raw.len() >= WORTH_IT)
        .and_then(|sample| CONTEXTS.with_borrow_mut(|contexts| contexts.compress(raw, sample)));
    compressed.unwrap_or_else(|| Packed::Plain(raw.as_bytes().into()))
}

impl Contexts {
    fn compress(&mut self, raw: &str, sample: &Sample) -> Option<Packed> {
        let size = u32::try_from(raw.len()).ok()?;
        if self.compressor.is_none() {
            self.compressor = zstd::bulk::Compressor::new(LEVEL).ok();
            self.loaded = None;
        }
        let context = self.compressor.as_mut()?;
        let is_loaded = self.loaded.as_ref().is_some_and(|loaded| Arc::ptr_eq(loaded, sample));
        if !is_loaded {
            self.loaded = None;
            context.set_dictionary(LEVEL, sample).ok()?;
            self.loaded = Some(Arc::clone(sample));
        }
        let bytes = context.compress(raw.as_bytes()).ok()?;
        (bytes.len() < raw.len()).then(|| Packed::Compressed { bytes: bytes.into(), size })
    }

    fn decompress(&mut self, bytes: &[u8], size: usize, sample: &Sample) -> Option<Vec<u8>> {
        if self.decompressor.is_none() {
            self.decompressor = zstd::bulk::Decompressor::new().ok();
        }
        let context = self.decompressor.as_mut()?;
        context.set_dictionary(sample).ok()?;
        context.decompress(bytes, size).ok()
    }
}

/// A kind's sample out of one of its objects.
pub(super) fn sample_of(raw: &str) -> Option<Sample> {
    (raw.len() >= WORTH_IT).then(|| raw.as_bytes()[..raw.len().min(LARGEST_SAMPLE)].into())
}

impl Packed {
    /// The text again. `None` would mean that memory is corrupt.
    pub(super) fn unpack(&self, sample: Option<&Sample>) -> Option<Vec<u8>> {
        match self {
            Self::Plain(bytes) => Some(bytes.to_vec()),
            Self::Compressed { bytes, size } => {
                let size = usize::try_from(*size).ok()?;
                let sample = sample?;
                CONTEXTS.with_borrow_mut(|contexts| contexts.decompress(bytes, size, sample))
            }
        }
    }

    /// The object inside.
    pub(super) fn read(&self, sample: Option<&Sample>) -> Option<Manifest> {
        Manifest::new(serde_json::from_slice(&self.unpack(sample)?).ok()?).ok()
    }

    /// Bytes in memory.
    pub(super) fn size(&self) -> usize {
        match self {
            Self::Plain(bytes) | Self::Compressed { bytes, .. } => bytes.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn objects_of_one_kind_take_little_space() {
        let object = |n: usize| {
            format!(
                r#"{{"apiVersion":"apps/v1","kind":"Deployment","metadata":{{"name":"web-{n}","namespace":"team-{n}","uid":"0b9f1c4e-8d3a-4f6e-9a51-{n:012}","managedFields":[{{"manager":"argocd-controller","operation":"Apply","fieldsType":"FieldsV1","fieldsV1":{{"f:metadata":{{"f:annotations":{{"f:argocd.argoproj.io/tracking-id":{{}}}}}},"f:spec":{{"f:replicas":{{}},"f:selector":{{}},"f:template":{{"f:spec":{{"f:containers":{{"k:{{\"name\":\"web\"}}":{{".":{{}},"f:image":{{}},"f:name":{{}}}}}}}}}}}}}}}}]}},"spec":{{"replicas":{n}}}}}"#
            )
        };
        let sample = sample_of(&object(1)).unwrap();
        let packed = pack(&object(77), Some(&sample));
        assert!(packed.size() < object(77).len() / 5, "{} of {}", packed.size(), object(77).len());
        assert_eq!(packed.unpack(Some(&sample)).unwrap(), object(77).as_bytes());
    }

    proptest! {
        #[test]
        fn what_is_packed_comes_back(texts in proptest::collection::vec("\\PC{0,600}", 1..20)) {
            let sample = texts.iter().find_map(|text| sample_of(text));
            for text in &texts {
                let packed = pack(text, sample.as_ref());
                prop_assert_eq!(packed.unpack(sample.as_ref()).unwrap(), text.as_bytes());
            }
        }
    }
}
