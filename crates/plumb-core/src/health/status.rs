//! Health statuses.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The health of an object. Ordered from best to worst, as Argo CD ranks them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum HealthStatus {
    /// Works as intended.
    Healthy,
    /// Waiting on purpose.
    Suspended,
    /// Not ready yet.
    Progressing,
    /// Does not exist.
    Missing,
    /// Something is wrong.
    Degraded,
    /// Could not be determined.
    Unknown,
}

impl HealthStatus {
    /// Every status, from best to worst.
    pub const ALL: [Self; 6] =
        [Self::Healthy, Self::Suspended, Self::Progressing, Self::Missing, Self::Degraded, Self::Unknown];

    /// The word as Argo CD writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Healthy => "Healthy",
            Self::Suspended => "Suspended",
            Self::Progressing => "Progressing",
            Self::Missing => "Missing",
            Self::Degraded => "Degraded",
            Self::Unknown => "Unknown",
        }
    }

    /// Reads the word as Argo CD writes it.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }
}

impl fmt::Display for HealthStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The health of one object and its message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// How it is.
    pub status: HealthStatus,
    /// Why, in words; empty where there is nothing to say.
    pub message: String,
}

impl Health {
    /// A judgement from its two parts.
    pub fn new(status: HealthStatus, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }

    /// Works as intended.
    pub fn healthy(message: impl Into<String>) -> Self {
        Self::new(HealthStatus::Healthy, message)
    }

    /// Waiting on purpose.
    pub fn suspended(message: impl Into<String>) -> Self {
        Self::new(HealthStatus::Suspended, message)
    }

    /// Not ready yet.
    pub fn progressing(message: impl Into<String>) -> Self {
        Self::new(HealthStatus::Progressing, message)
    }

    /// Something is wrong.
    pub fn degraded(message: impl Into<String>) -> Self {
        Self::new(HealthStatus::Degraded, message)
    }

    /// Could not be determined.
    pub fn unknown(message: impl Into<String>) -> Self {
        Self::new(HealthStatus::Unknown, message)
    }
}

/// What one source of judgements says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// A judgement.
    Judged(Health),
    /// A kind known to have no health of its own: no other source may guess.
    NoOpinion,
    /// Another kind: continue.
    NotMine,
}

/// `Degraded: the message`, or the status alone.
impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.message.is_empty() {
            write!(f, "{}", self.status)
        } else {
            write!(f, "{}: {}", self.status, self.message)
        }
    }
}
