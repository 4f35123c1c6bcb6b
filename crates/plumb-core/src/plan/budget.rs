//! How much an automated sync may delete without asking.

use super::{ConfirmReason, ReplacedHistory};
use crate::object::ObjectKey;

/// An automated sync that would delete more than this waits for confirmation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PruneBudget {
    /// Wait when more than `share_percent` of the app's live objects *and* more than `count` would go, or
    /// any object that holds data.
    Limited {
        /// Percent of the app's live objects.
        share_percent: u8,
        /// Number of objects.
        count: usize,
    },
    /// Never wait.
    Off,
}

impl Default for PruneBudget {
    fn default() -> Self {
        Self::Limited { share_percent: 50, count: 5 }
    }
}

impl PruneBudget {
    /// Why deleting `n_prunes` of `n_objects` must wait, if it must.
    pub fn exceeded(self, n_prunes: usize, n_objects: usize) -> Option<ConfirmReason> {
        match self {
            Self::Limited { share_percent, count } => {
                let too_many = n_prunes > count;
                let too_large =
                    n_prunes.saturating_mul(100) > n_objects.saturating_mul(usize::from(share_percent));
                (too_many && too_large).then_some(ConfirmReason::Budget { n_prunes, n_objects })
            }
            Self::Off => None,
        }
    }

    /// Why deleting anything must wait, if the history of the repository was replaced.
    pub fn asks_about(self, replaced: Option<&ReplacedHistory>) -> Option<ConfirmReason> {
        match self {
            Self::Limited { .. } => replaced.cloned().map(ConfirmReason::History),
            Self::Off => None,
        }
    }

    /// Why deleting this one object must wait, if it must.
    pub fn protects(self, key: &ObjectKey, holds_data: Option<&str>) -> Option<ConfirmReason> {
        let what = match (self, key.group.as_str(), key.kind.as_str()) {
            (Self::Off, _, _) => None,
            (Self::Limited { .. }, "", "PersistentVolumeClaim" | "PersistentVolume") => Some("a volume"),
            (Self::Limited { .. }, _, _) => holds_data,
        };
        what.map(|what| ConfirmReason::HoldsData { what: what.to_owned() })
    }
}
