//! What reading a text takes in memory. Small values take much more than their text: a list of ten million
//! digits is some hundred megabytes. The numbers are measured and rounded up.

use super::YamlProblem;

/// One node of the tree, with its place in the list or map above it.
pub(super) const NODE: usize = 112;
/// One value.
pub(super) const VALUE: usize = 64;
/// A map, be it empty or not.
pub(super) const MAP: usize = 700;
/// A key and its value in a map, beyond the text of the key.
pub(super) const ENTRY: usize = 128;

/// The memory that reading has taken so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Memory {
    limit: usize,
    n_bytes: usize,
}

impl Memory {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, n_bytes: 0 }
    }

    pub(super) fn n_bytes(self) -> usize {
        self.n_bytes
    }

    /// Counts bytes before they are taken.
    pub(super) fn take(&mut self, n_bytes: usize) -> Result<(), YamlProblem> {
        self.n_bytes = self.n_bytes.saturating_add(n_bytes);
        if self.n_bytes > self.limit { Err(YamlProblem::TooHeavy { limit: self.limit }) } else { Ok(()) }
    }

    /// The tree of a document is gone once its value is there.
    pub(super) fn give_back(&mut self, n_bytes: usize) {
        self.n_bytes = self.n_bytes.saturating_sub(n_bytes);
    }
}
