//! The conditions of an Application that one run finds.

use jiff::Timestamp;
use plumb_crd::application as wire;
use plumb_crd::application::ConditionType;
use plumb_crd::wire::whole_seconds;

use super::shown_text::ShownText;

/// Conditions found in one run, in the order in which they were found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Conditions {
    found: Vec<(ConditionType, String)>,
    shown: ShownText,
    kept: Vec<ConditionType>,
}

impl Conditions {
    /// No conditions yet. Messages are cleaned before they are added.
    pub(crate) fn new(shown: ShownText) -> Self {
        Self { shown, ..Self::default() }
    }

    /// Adds a condition, once.
    pub(crate) fn add(&mut self, condition: ConditionType, message: impl Into<String>) {
        let mut message = message.into();
        self.shown.clean(&mut message);
        let entry = (condition, message);
        if !self.found.contains(&entry) {
            self.found.push(entry);
        }
    }

    /// Keeps the conditions of this type that the status has: this run cannot tell whether they still hold.
    pub(crate) fn keep(&mut self, condition: ConditionType) {
        self.kept.push(condition);
    }

    /// True if what the run found can only change with Git or the project: no later run has to look again.
    pub(crate) fn lets_settle(&self) -> bool {
        let is_lasting =
            |(condition, _): &(ConditionType, String)| *condition == ConditionType::PlainSecretWarning;
        self.found.iter().all(is_lasting) && self.kept.is_empty()
    }

    /// The messages of all errors.
    pub(crate) fn errors(&self) -> Vec<String> {
        let errors = self.found.iter().filter(|(condition, _)| condition.is_error());
        errors.map(|(_, message)| message.clone()).collect()
    }

    /// The conditions for the status. One that the status has already keeps its time.
    pub(crate) fn on_wire(&self, before: &[wire::Condition], now: Timestamp) -> Vec<wire::Condition> {
        let mut conditions: Vec<wire::Condition> = self
            .found
            .iter()
            .map(|(condition, message)| {
                let previous = before.iter().find(|previous| {
                    previous.condition_type == condition.as_str() && previous.message == *message
                });
                wire::Condition {
                    condition_type: condition.as_str().to_owned(),
                    message: message.clone(),
                    last_transition_time: previous
                        .and_then(|previous| previous.last_transition_time)
                        .or(Some(whole_seconds(now))),
                }
            })
            .collect();
        let kept =
            before.iter().filter(|previous| previous.kind().is_some_and(|kind| self.kept.contains(&kind)));
        conditions.extend(kept.cloned());
        conditions.sort_by(|a, b| (&a.condition_type, &a.message).cmp(&(&b.condition_type, &b.message)));
        conditions.dedup();
        conditions
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_conditions_of_one_type_keep_their_own_times() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let (first, second) = (at("2026-01-01T00:00:00Z"), at("2026-01-01T01:00:00Z"));
        let mut found = Conditions::default();
        found.add(ConditionType::ComparisonError, "b");
        let before = found.on_wire(&[], first);
        found.add(ConditionType::ComparisonError, "a");
        found.add(ConditionType::ComparisonError, "b");
        found.keep(ConditionType::OrphanedResourceWarning);
        let kept = wire::Condition {
            condition_type: ConditionType::OrphanedResourceWarning.as_str().to_owned(),
            message: "orphans".to_owned(),
            last_transition_time: Some(first),
        };
        let before: Vec<wire::Condition> = before.into_iter().chain([kept]).collect();
        let after = found.on_wire(&before, second);
        let after: Vec<_> =
            after.iter().map(|one| (one.message.as_str(), one.last_transition_time)).collect();
        assert_eq!(after, [("a", Some(second)), ("b", Some(first)), ("orphans", Some(first))]);
        assert_eq!(found.errors(), ["b", "a"]);
        assert!(!found.lets_settle());
    }
}
