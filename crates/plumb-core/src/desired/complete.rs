//! The proof that a desired set is complete.

/// A proof that the set is whole: rendered without error from a reachable source. Only a complete set may
/// lead to deletions, so the functions that plan them ask for this type.
#[derive(Clone, Debug, PartialEq)]
pub struct Complete<T>(T);

impl<T> Complete<T> {
    /// To be called only where rendering of every source succeeded and [`DesiredSet::is_whole`] holds.
    pub fn rendered_without_error(set: T) -> Self {
        Self(set)
    }

    /// The set.
    pub fn get(&self) -> &T {
        &self.0
    }
}
