//! What is remembered about the health of an app's objects.

use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use plumb_core::health::{HealthHistory, HealthRecord, HealthStatus, KnownFrom};
use plumb_core::object::ObjectKey;
use plumb_crd::UnhealthyObject;

use super::lua::Answers;

/// What is remembered about the health of an app's objects.
#[derive(Debug, Default)]
pub(crate) struct HealthState {
    /// Answers of the users' scripts.
    pub(crate) answers: Answers,
    /// Since when each object is as it is; objects that are well for long are left out.
    pub(crate) records: HashMap<ObjectKey, HealthRecord>,
    /// When all objects were last looked at.
    pub(super) last_look: Option<Timestamp>,
    /// What was last said about each object that is not well.
    pub(super) told: HashMap<ObjectKey, Told>,
    /// Since when something that an object needs is seen to be missing.
    missing: Mutex<HashMap<ObjectKey, Timestamp>>,
    /// The next look that was asked for because time alone changes something.
    pub(crate) look_again: Option<Timestamp>,
    /// Was the record of an earlier process read?
    recalled: bool,
}

/// What was said about an object.
#[derive(Clone, Debug)]
pub(super) struct Told {
    pub(super) essence: String,
    pub(super) message: String,
    pub(super) causes: Vec<String>,
    pub(super) at: Timestamp,
}

/// The same trouble with other numbers is told anew after this long: a crash loop counts a restart every few
/// minutes, and each would be a write.
const SAME_STORY: SignedDuration = SignedDuration::from_mins(10);

impl Told {
    pub(super) fn still_does(&self, essence: &str, now: Timestamp) -> bool {
        self.essence == essence && now.duration_since(self.at) < SAME_STORY
    }
}

impl HealthState {
    /// Takes over what an earlier process wrote into the report, once.
    pub(crate) fn restore(&mut self, reported: impl FnOnce() -> Vec<UnhealthyObject>) {
        if std::mem::replace(&mut self.recalled, true) {
            return;
        }
        for ill in reported() {
            let (Some(status), Some(since)) = (HealthStatus::from_word(&ill.status), ill.since) else {
                continue;
            };
            let known_from = KnownFrom::Record;
            let record = HealthRecord { status, since, known_from, generation: None, well_since: None };
            self.records.entry(ill.key()).or_insert(record);
        }
    }

    /// What is known of an object from earlier looks.
    pub(crate) fn past(&self, key: &ObjectKey) -> HealthHistory<'_> {
        HealthHistory { record: self.records.get(key), last_look: self.last_look }
    }

    /// Since when something that the object needs is missing.
    pub(super) fn missing_since(&self, key: &ObjectKey, now: Timestamp) -> Timestamp {
        let mut missing = self.missing.lock();
        *missing.entry(key.clone()).or_insert(now)
    }

    pub(super) fn found(&self, key: &ObjectKey) {
        self.missing.lock().remove(key);
    }

    /// Forgets objects that are not there any more.
    pub(super) fn keep_only(&mut self, is_live: impl Fn(&ObjectKey) -> bool) {
        self.records.retain(|key, _| is_live(key));
        self.told.retain(|key, _| is_live(key));
        self.missing.lock().retain(|key, _| is_live(key));
    }

    /// Gives back the room that what is over took.
    pub(crate) fn shrink(&mut self) {
        self.records.shrink_to_fit();
        self.told.shrink_to_fit();
        self.missing.lock().shrink_to_fit();
    }

    /// Is the time of a look that was asked for here?
    pub(crate) fn is_due(&self, now: Timestamp) -> bool {
        self.look_again.is_some_and(|at| at <= now)
    }

    /// Must a look be asked for at this time, or will there be one before?
    pub(crate) fn must_ask(&mut self, at: Timestamp, now: Timestamp) -> bool {
        let is_asked = self.look_again.is_some_and(|asked| asked > now && asked <= at);
        if !is_asked {
            self.look_again = Some(at);
        }
        !is_asked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_is_due_when_its_time_has_come_and_the_reason_still_stands() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let mut memory = HealthState::default();
        assert!(!memory.is_due(at(100)), "nobody asked");
        assert!(memory.must_ask(at(160), at(100)), "the first one asks");
        assert!(!memory.must_ask(at(200), at(110)), "there will be a look before that");
        assert!(memory.must_ask(at(150), at(110)), "an earlier one is asked for");
        assert!(!memory.is_due(at(149)) && memory.is_due(at(150)));
        memory.look_again = None;
        assert!(!memory.is_due(at(150)), "what was on its way has arrived");
    }
}
