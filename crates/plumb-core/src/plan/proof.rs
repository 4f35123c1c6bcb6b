//! The proof that an object was removed from Git.

use std::collections::BTreeSet;
use std::fmt;

use serde::Serialize;

use crate::desired::{Complete, DesiredHook, DesiredSet};
use crate::live::LiveSet;
use crate::object::ObjectKey;

/// Proof that both the desired and the live set are complete, so that "live but not desired" means "removed from Git".
/// It can only be made from both, and no prune is planned without it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeletionProof {
    /// Objects and named hooks.
    wanted: BTreeSet<ObjectKey>,
    has_objects: bool,
}

/// Why nothing may be deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum NoProof {
    /// A source could not be read or rendered.
    DesiredIncomplete {
        /// What went wrong, in words.
        why: String,
    },
    /// A watch has not finished its first list.
    LiveIncomplete,
}

impl DeletionProof {
    /// The proof, or the reason why one of the sets is incomplete.
    pub fn new(desired: &Complete<DesiredSet>, live: &LiveSet) -> Result<Self, NoProof> {
        if !live.complete {
            return Err(NoProof::LiveIncomplete);
        }
        let desired = desired.get();
        let hooks = desired.hooks.iter().filter_map(DesiredHook::key);
        let wanted = desired.objects.keys().cloned().chain(hooks).collect();
        Ok(Self { wanted, has_objects: !desired.objects.is_empty() })
    }

    /// True if the desired set has no objects. Hooks do not count.
    pub fn has_no_objects(&self) -> bool {
        !self.has_objects
    }

    /// Is it proven that this object was removed from Git?
    pub fn has_left(&self, key: &ObjectKey) -> bool {
        !self.wanted.contains(key)
    }
}

impl fmt::Display for NoProof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DesiredIncomplete { why } => write!(f, "the desired state is not fully known ({why})"),
            Self::LiveIncomplete => f.write_str("the cluster has not been listed completely yet"),
        }
    }
}
