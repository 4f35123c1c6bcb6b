//! Conditions as they are found, and as they stand in the status.

use jiff::Timestamp;
use plumb_crd::application as wire;
use plumb_crd::wire::whole_seconds;

/// Conditions found in one run, in the order in which they were found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Conditions {
    found: Vec<(&'static str, String)>,
    kept: Vec<&'static str>,
}

impl Conditions {
    pub(crate) fn add(&mut self, condition: &'static str, message: impl Into<String>) {
        let entry = (condition, message.into());
        if !self.found.contains(&entry) {
            self.found.push(entry);
        }
    }

    /// Conditions of this type stay as they were: this run could not tell.
    pub(crate) fn keep(&mut self, condition: &'static str) {
        self.kept.push(condition);
    }

    /// Is there nothing to say?
    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty() && self.kept.is_empty()
    }

    /// The messages of all errors.
    pub(crate) fn errors(&self) -> Vec<String> {
        self.found
            .iter()
            .filter(|(condition, _)| condition.ends_with("Error"))
            .map(|(_, message)| message.clone())
            .collect()
    }

    /// As they stand in the status. A condition that stood there before keeps its time.
    pub(crate) fn on_wire(&self, before: &[wire::Condition], now: Timestamp) -> Vec<wire::Condition> {
        let mut conditions: Vec<wire::Condition> = self
            .found
            .iter()
            .map(|(condition, message)| {
                let known = before
                    .iter()
                    .find(|known| known.condition_type == *condition && known.message == *message);
                wire::Condition {
                    condition_type: (*condition).to_owned(),
                    message: message.clone(),
                    last_transition_time: known
                        .and_then(|known| known.last_transition_time)
                        .or(Some(whole_seconds(now))),
                }
            })
            .collect();
        conditions.extend(
            before.iter().filter(|known| self.kept.contains(&known.condition_type.as_str())).cloned(),
        );
        conditions.sort_by(|a, b| (&a.condition_type, &a.message).cmp(&(&b.condition_type, &b.message)));
        conditions.dedup();
        conditions
    }
}
