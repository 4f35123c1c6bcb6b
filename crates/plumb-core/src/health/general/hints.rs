//! The hints found so far.

use super::words::Sense;
use crate::health::{Health, HealthStatus};

/// The worst hint so far.
#[derive(Default)]
pub(super) struct Hints {
    pub(super) worst: Option<Health>,
}

impl Hints {
    pub(super) fn note(&mut self, sense: Sense, words: &str) {
        self.note_status(sense.status(), words);
    }

    pub(super) fn note_status(&mut self, status: HealthStatus, words: &str) {
        let rank = |status: HealthStatus| match status {
            HealthStatus::Healthy => 0,
            HealthStatus::Progressing => 1,
            HealthStatus::Degraded | HealthStatus::Missing | HealthStatus::Unknown => 2,
            HealthStatus::Suspended => 3,
        };
        if self.worst.as_ref().is_none_or(|worst| rank(worst.status) < rank(status)) {
            self.worst = Some(Health::new(status, words));
        }
    }
}
