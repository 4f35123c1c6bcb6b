//! Is an object well?

use serde::{Deserialize, Serialize};

/// How an object is. Ordered from best to worst, as Argo CD ranks them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum HealthStatus {
    /// All is well.
    Healthy,
    /// Waiting on purpose.
    Suspended,
    /// On its way.
    Progressing,
    /// Not there.
    Missing,
    /// Something is wrong.
    Degraded,
    /// Cannot be told.
    Unknown,
}

/// A judgement on one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// How it is.
    pub status: HealthStatus,
    /// Why, in words; empty where there is nothing to say.
    pub message: String,
}
