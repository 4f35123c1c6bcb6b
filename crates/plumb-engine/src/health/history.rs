//! What earlier runs saw of the health of an app's objects.

use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use plumb_core::health::{HealthHistory, HealthRecord, HealthStatus, KnownFrom};
use plumb_core::object::ObjectKey;
use plumb_crd::UnhealthyObject;

use super::derived::Look;
use super::lua::Answers;

/// The health of one app's objects, kept between runs.
#[derive(Debug, Default)]
pub(crate) struct HealthState {
    /// Results of the users' Lua scripts.
    pub(crate) answers: Answers,
    /// The status of each object and since when. Objects that have been healthy for long are left out.
    pub(crate) records: HashMap<ObjectKey, HealthRecord>,
    /// When all objects were last checked.
    pub(super) last_look: Option<Timestamp>,
    /// The last reported message of each unhealthy object.
    pub(super) told: HashMap<ObjectKey, Told>,
    /// Since when a dependency of each object has been missing.
    missing: Mutex<HashMap<ObjectKey, Timestamp>>,
    /// The next scheduled check. It is needed where the health changes with time alone.
    pub(crate) look_again: Option<Timestamp>,
    /// Secrets that may be edited by hand, as they were read last.
    pub(super) derived: HashMap<ObjectKey, Look>,
    /// True once the report of an earlier process was read.
    restored: bool,
}

/// The last reported message of an object.
#[derive(Clone, Debug)]
pub(super) struct Told {
    pub(super) essence: String,
    pub(super) message: String,
    pub(super) causes: Vec<String>,
    pub(super) at: Timestamp,
}

/// If only numbers changed, the message is updated after this time. A crash loop counts a restart every few minutes,
/// and each update is a write.
const UPDATE_INTERVAL: SignedDuration = SignedDuration::from_mins(10);

impl Told {
    pub(super) fn still_does(&self, essence: &str, now: Timestamp) -> bool {
        self.essence == essence && now.duration_since(self.at) < UPDATE_INTERVAL
    }
}

impl HealthState {
    /// Restores the records from the report of an earlier process. Only the first call has an effect.
    pub(crate) fn restore(&mut self, reported: impl FnOnce() -> Vec<UnhealthyObject>) {
        if std::mem::replace(&mut self.restored, true) {
            return;
        }
        for unhealthy in reported() {
            let (Some(status), Some(since)) = (HealthStatus::from_word(&unhealthy.status), unhealthy.since)
            else {
                continue;
            };
            let known_from = KnownFrom::Record;
            let record = HealthRecord { status, since, known_from, generation: None, well_since: None };
            self.records.entry(unhealthy.key()).or_insert(record);
        }
    }

    /// What earlier checks saw of an object.
    pub(crate) fn past(&self, key: &ObjectKey) -> HealthHistory<'_> {
        HealthHistory { record: self.records.get(key), last_look: self.last_look }
    }

    /// Since when a dependency of the object has been missing: now, unless an earlier check recorded it.
    pub(super) fn missing_since(&self, key: &ObjectKey, now: Timestamp) -> Timestamp {
        let mut missing = self.missing.lock();
        *missing.entry(key.clone()).or_insert(now)
    }

    /// Records that the dependency of the object exists.
    pub(super) fn clear_missing(&self, key: &ObjectKey) {
        self.missing.lock().remove(key);
    }

    /// Drops objects that no longer exist.
    pub(super) fn keep_only(&mut self, is_live: impl Fn(&ObjectKey) -> bool) {
        self.records.retain(|key, _| is_live(key));
        self.told.retain(|key, _| is_live(key));
        self.missing.lock().retain(|key, _| is_live(key));
    }

    /// Releases unused capacity.
    pub(crate) fn shrink(&mut self) {
        self.records.shrink_to_fit();
        self.told.shrink_to_fit();
        self.derived.shrink_to_fit();
        self.missing.lock().shrink_to_fit();
    }

    /// True if a scheduled check is due.
    pub(crate) fn is_due(&self, now: Timestamp) -> bool {
        self.look_again.is_some_and(|at| at <= now)
    }

    /// Schedules a check. Returns false if an earlier one is scheduled already.
    pub(crate) fn must_ask(&mut self, at: Timestamp, now: Timestamp) -> bool {
        let is_scheduled = self.look_again.is_some_and(|scheduled| scheduled > now && scheduled <= at);
        if !is_scheduled {
            self.look_again = Some(at);
        }
        !is_scheduled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_is_due_at_its_time_unless_it_is_cancelled() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let mut state = HealthState::default();
        assert!(!state.is_due(at(100)), "nothing is scheduled");
        assert!(state.must_ask(at(160), at(100)), "the first check is scheduled");
        assert!(!state.must_ask(at(200), at(110)), "an earlier check is scheduled already");
        assert!(state.must_ask(at(150), at(110)), "an earlier check replaces a later one");
        assert!(!state.is_due(at(149)) && state.is_due(at(150)));
        state.look_again = None;
        assert!(!state.is_due(at(150)), "the check is cancelled");
    }
}
