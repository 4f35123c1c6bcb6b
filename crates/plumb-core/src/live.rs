//! What the cluster holds.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::object::{Manifest, ObjectKey};

/// The live objects that matter to one app: those it tracks and those that have the key of a desired
/// object.
#[derive(Clone, Debug, Default)]
pub struct LiveSet {
    /// By key.
    pub objects: BTreeMap<ObjectKey, Arc<Manifest>>,
    /// Did every watch behind this set finish its first list? If not, no object may be treated as missing.
    pub complete: bool,
}
