//! Whole objects in little memory.
//!
//! Two objects of one kind differ in a few values; their field names, their `managedFields` and most of their
//! structure are the same. So the objects of a kind are compressed against a sample of the kind, which shrinks
//! a Deployment of five kilobytes to a few hundred bytes.

use std::sync::Arc;

use plumb_core::object::Manifest;

use super::contexts::{Sample, compress_against, decompress};

/// A compressed object.
#[derive(Clone, Debug)]
pub(crate) enum PackedObject {
    /// Uncompressed: the object is small, or its kind has no sample yet.
    Plain(Arc<[u8]>),
    /// Compressed against a sample of the kind; `size` is the length of the JSON text.
    Compressed { bytes: Arc<[u8]>, size: u32, sample: Sample },
}

/// The samples of one kind. The first object of a kind may be unlike the others: an object of Kubernetes
/// itself, or one without a status yet. So another sample is taken where the present one helps little, less
/// and less often. Objects keep the sample that they were packed with.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    newest: Option<Sample>,
    n_taken: u32,
    n_packed: u32,
}

/// A sample helps if it shrinks objects to less than one part in this many.
const HELPS: usize = 4;
/// This many times as many objects have to be packed before the next sample as before the last.
const GROWTH: u32 = 4;
const MOST_SAMPLES: u32 = 6;

impl Samples {
    /// The sample to pack this object with; the object itself becomes the first sample.
    pub(crate) fn newest(&mut self, raw: &str) -> Option<Sample> {
        if self.newest.is_none() {
            self.take(raw);
        }
        self.newest.clone()
    }

    /// Records how well an object was packed; takes it as a new sample if the present one helps little.
    pub(crate) fn learn(&mut self, raw: &str, packed: &PackedObject) {
        let PackedObject::Compressed { bytes, .. } = packed else { return };
        self.n_packed = self.n_packed.saturating_add(1);
        let is_time = self.n_taken < MOST_SAMPLES && self.n_packed >= GROWTH.saturating_pow(self.n_taken);
        if is_time && bytes.len() * HELPS > raw.len() {
            self.take(raw);
        }
    }

    fn take(&mut self, raw: &str) {
        if raw.len() >= WORTH_IT {
            self.newest = Some(Arc::new(raw.as_bytes()[..raw.len().min(LARGEST_SAMPLE)].into()));
            self.n_taken += 1;
            self.n_packed = 0;
        }
    }
}

/// Below this length compression gains nothing.
const WORTH_IT: usize = 300;
/// A sample larger than this costs more time than it saves space.
const LARGEST_SAMPLE: usize = 32 * 1024;

/// Compresses an object against the sample of its kind.
pub(crate) fn pack(raw: &str, sample: Option<&Sample>) -> PackedObject {
    let compressed = sample.filter(|_| raw.len() >= WORTH_IT).and_then(|sample| compress(raw, sample));
    compressed.unwrap_or_else(|| PackedObject::Plain(raw.as_bytes().into()))
}

fn compress(raw: &str, sample: &Sample) -> Option<PackedObject> {
    let size = u32::try_from(raw.len()).ok()?;
    let bytes = compress_against(raw.as_bytes(), sample)?;
    let sample = Arc::clone(sample);
    (bytes.len() < raw.len()).then(|| PackedObject::Compressed { bytes: bytes.into(), size, sample })
}

impl PackedObject {
    /// The JSON text. `None` only if memory is corrupt.
    fn unpack(&self) -> Option<Vec<u8>> {
        match self {
            Self::Plain(bytes) => Some(bytes.to_vec()),
            Self::Compressed { bytes, size, sample } => {
                let size = usize::try_from(*size).ok()?;
                decompress(bytes, size, Some(sample))
            }
        }
    }

    /// The object.
    pub(crate) fn read(&self) -> Option<Manifest> {
        Manifest::new(serde_json::from_slice(&self.unpack()?).ok()?).ok()
    }

    /// Bytes in memory.
    pub(crate) fn size(&self) -> usize {
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
        let mut samples = Samples::default();
        let sample = samples.newest(&object(1)).unwrap();
        let packed = pack(&object(77), Some(&sample));
        assert!(packed.size() < object(77).len() / 5, "{} of {}", packed.size(), object(77).len());
        assert_eq!(packed.unpack().unwrap(), object(77).as_bytes());
    }

    /// A text unlike any other.
    fn unique(seed: usize, length: usize) -> String {
        let mut state = u64::try_from(seed).unwrap().wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut digit = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            char::from(b'!' + u8::try_from((state >> 33) % 90).unwrap())
        };
        (0..length).map(|_| digit()).collect()
    }

    #[test]
    fn a_first_object_unlike_all_others_is_not_the_sample_for_ever() {
        let common = unique(1, 800);
        let mut samples = Samples::default();
        let mut pack_one = |raw: &str| {
            let packed = pack(raw, samples.newest(raw).as_ref());
            samples.learn(raw, &packed);
            assert_eq!(packed.unpack().unwrap(), raw.as_bytes());
            packed.size()
        };
        pack_one(&unique(2, 2000));
        let sizes: Vec<usize> = (0..10).map(|n| pack_one(&format!("{common}{n}"))).collect();
        assert!(sizes[0] > 600 && sizes[9] < 80, "{sizes:?}");
    }

    #[test]
    fn objects_that_nothing_helps_take_few_samples() {
        let mut samples = Samples::default();
        for n in 0..10_000 {
            let raw = unique(n, 400);
            let packed = pack(&raw, samples.newest(&raw).as_ref());
            samples.learn(&raw, &packed);
        }
        assert!(samples.n_taken <= MOST_SAMPLES, "{}", samples.n_taken);
    }

    proptest! {
        #[test]
        fn what_is_packed_comes_back(texts in proptest::collection::vec("\\PC{0,600}", 1..20)) {
            let mut samples = Samples::default();
            for text in &texts {
                let packed = pack(text, samples.newest(text).as_ref());
                samples.learn(text, &packed);
                prop_assert_eq!(packed.unpack().unwrap(), text.as_bytes());
            }
        }
    }
}
