//! The last discovery answers with their entity tags.

use std::collections::BTreeMap;

use bytes::Bytes;
use parking_lot::Mutex;

/// The last answers with their entity tags. If nothing changed, the server answers `304` without a body.
#[derive(Default)]
pub(crate) struct DiscoveryCache {
    answers: Mutex<BTreeMap<&'static str, Tagged>>,
}

#[derive(Clone)]
pub(crate) struct Tagged {
    pub(crate) etag: String,
    pub(crate) body: Bytes,
    pub(crate) content_type: String,
}

impl DiscoveryCache {
    pub(crate) fn get(&self, path: &'static str) -> Option<Tagged> {
        self.answers.lock().get(path).cloned()
    }

    pub(crate) fn put(&self, path: &'static str, tagged: Tagged) {
        self.answers.lock().insert(path, tagged);
    }
}
