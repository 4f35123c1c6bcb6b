//! Since when an object is as it is, and whether that is longer than normal.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::general::whole_number;
use super::read::{find, find_text};
use super::{Health, HealthStatus};
use crate::object::{GroupKind, Manifest};

/// What was noted about an object when it was last judged. It outlives a restart of plumb.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// How it was.
    pub status: HealthStatus,
    /// Since when.
    pub since: Timestamp,
}

/// Since when an object is as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Since {
    /// The time, never after now.
    pub at: Timestamp,
    /// How it is known.
    pub known_from: KnownFrom,
}

/// How the beginning of a state is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnownFrom {
    /// plumb saw it begin, or noted it earlier.
    Record,
    /// The newest change that the object's conditions tell.
    Condition,
    /// The time of the request to delete it.
    Deletion,
    /// The object is as it is since it was made, as far as it tells.
    Creation,
    /// Nothing tells; it is so at least since now.
    Seen,
}

impl Since {
    /// What to note for the next time.
    pub fn record(&self, status: HealthStatus) -> Record {
        Record { status, since: self.at }
    }
}

/// Since when the object is in the state of this judgement.
///
/// A record of the same status is believed: conditions change while a rollout goes on, without the object
/// leaving its state. Without one, the newest change of a condition is when it came to be so.
pub fn since(object: &Manifest, health: &Health, record: Option<&Record>, now: Timestamp) -> Since {
    let known = |at: Timestamp, known_from| Since { at: at.min(now), known_from };
    if let Some(record) = record.filter(|record| record.status == health.status) {
        return known(record.since, KnownFrom::Record);
    }
    let value = object.value();
    let time = |path: &str| find_text(value, path).and_then(|text| text.parse::<Timestamp>().ok());
    if let Some(at) = time("metadata.deletionTimestamp") {
        return known(at, KnownFrom::Deletion);
    }
    let conditions = find(value, "status.conditions").and_then(Value::as_array).into_iter().flatten();
    let newest = conditions
        .filter_map(|condition| condition.get("lastTransitionTime")?.as_str()?.parse::<Timestamp>().ok())
        .filter(|at| *at <= now)
        .max();
    // A status that was never seen before cannot be older than the last one that was.
    if let Some(at) = newest {
        let at = record.map_or(at, |record| at.max(record.since));
        return known(at, KnownFrom::Condition);
    }
    match (record, time("metadata.creationTimestamp")) {
        (None, Some(at)) => known(at, KnownFrom::Creation),
        (Some(_), _) | (None, None) => known(now, KnownFrom::Seen),
    }
}

/// How long objects may be on their way before somebody should look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patience {
    /// For kinds that are not listed.
    pub default: SignedDuration,
    /// By kind.
    pub by_kind: BTreeMap<GroupKind, SignedDuration>,
}

impl Default for Patience {
    fn default() -> Self {
        Self { default: SignedDuration::from_mins(15), by_kind: BTreeMap::new() }
    }
}

impl Patience {
    /// How long this object may be on its way. A deadline that the object sets itself is respected: until then it
    /// is what its author expects.
    pub fn with(&self, object: &Manifest) -> SignedDuration {
        let kind = GroupKind::new(object.group(), object.kind());
        let set = self.by_kind.get(&kind).copied().unwrap_or(self.default);
        let own = match (object.group(), object.kind()) {
            ("apps", "Deployment")
            | ("argoproj.io", "Rollout")
            | ("cluster.x-k8s.io", "MachineDeployment") => Some("spec.progressDeadlineSeconds"),
            ("batch", "Job") | ("argoproj.io", "Workflow") => Some("spec.activeDeadlineSeconds"),
            _ => None,
        };
        let own =
            own.and_then(|path| whole_number(find(object.value(), path)?)).filter(|seconds| *seconds > 0);
        own.map_or(set, |seconds| set.max(SignedDuration::from_secs(seconds)))
    }

    /// Is an object that is `Progressing` since then stuck? If so, for how long it should have been ready.
    pub fn overdue(
        &self,
        object: &Manifest,
        health: &Health,
        since: &Since,
        now: Timestamp,
    ) -> Option<SignedDuration> {
        if health.status != HealthStatus::Progressing {
            return None;
        }
        let late = now.duration_since(since.at).saturating_sub(self.with(object));
        late.is_positive().then_some(late)
    }
}

/// `45s`, `12m`, `3h 5m`, `2d 4h`: a length of time for people.
pub fn in_words(length: SignedDuration) -> String {
    let seconds = length.as_secs().max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, _) => format!("{minutes}m"),
        (0, _, _) => format!("{hours}h {}m", minutes % 60),
        _ => format!("{days}d {}h", hours % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn at(text: &str) -> Timestamp {
        format!("2026-03-01T{text}Z").parse().expect("a time")
    }

    fn deployment(extra: &Value) -> Manifest {
        let mut object = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "web", "creationTimestamp": "2026-03-01T08:00:00Z"},
            "status": {"conditions": [
                {"type": "Available", "status": "False", "lastTransitionTime": "2026-03-01T09:10:00Z"},
                {"type": "Progressing", "status": "True", "lastTransitionTime": "2026-03-01T09:00:00Z"},
                {"type": "Odd", "lastTransitionTime": "yesterday"},
            ]},
        });
        for (key, value) in extra.as_object().expect("a map") {
            object[key] = value.clone();
        }
        Manifest::new(object).expect("an object")
    }

    #[test]
    fn the_newest_condition_tells_when_it_began() {
        let health = Health::progressing("");
        let found = since(&deployment(&json!({})), &health, None, at("10:00:00"));
        assert_eq!(found, Since { at: at("09:10:00"), known_from: KnownFrom::Condition });
        let early = since(&deployment(&json!({})), &health, None, at("09:05:00"));
        assert_eq!(early.at, at("09:00:00"), "a condition from the future is not believed");
        let bare = deployment(&json!({"status": {}}));
        assert_eq!(since(&bare, &health, None, at("10:00:00")).known_from, KnownFrom::Creation);
    }

    #[test]
    fn a_record_of_the_same_status_outlives_changes_of_conditions() {
        let health = Health::progressing("");
        let same = Record { status: HealthStatus::Progressing, since: at("08:30:00") };
        let found = since(&deployment(&json!({})), &health, Some(&same), at("10:00:00"));
        assert_eq!(found, Since { at: at("08:30:00"), known_from: KnownFrom::Record });
        let other = Record { status: HealthStatus::Healthy, since: at("09:50:00") };
        let found = since(&deployment(&json!({})), &health, Some(&other), at("10:00:00"));
        assert_eq!(found.at, at("09:50:00"), "it was healthy then, so it cannot progress since earlier");
        let bare = deployment(&json!({"status": {}}));
        let found = since(&bare, &health, Some(&other), at("10:00:00"));
        assert_eq!(found, Since { at: at("10:00:00"), known_from: KnownFrom::Seen });
    }

    #[test]
    fn a_deadline_of_its_own_is_respected() {
        let patience = Patience::default();
        let health = Health::progressing("");
        let began = Since { at: at("09:00:00"), known_from: KnownFrom::Record };
        let overdue = |object: &Manifest, now: &str| patience.overdue(object, &health, &began, at(now));
        let plain = deployment(&json!({"spec": {"progressDeadlineSeconds": 600}}));
        assert_eq!(overdue(&plain, "09:14:59"), None);
        assert_eq!(overdue(&plain, "09:16:00"), Some(SignedDuration::from_mins(1)));
        let slow = deployment(&json!({"spec": {"progressDeadlineSeconds": 3600}}));
        assert_eq!(overdue(&slow, "09:59:00"), None);
        assert_eq!(overdue(&slow, "10:01:00"), Some(SignedDuration::from_mins(1)));
        assert_eq!(patience.overdue(&plain, &Health::degraded(""), &began, at("23:00:00")), None);
        let kind = GroupKind::new("apps", "Deployment");
        let short = Patience { by_kind: BTreeMap::from([(kind, SignedDuration::from_mins(2))]), ..patience };
        assert!(short.overdue(&deployment(&json!({})), &health, &began, at("09:03:00")).is_some());
    }

    #[test]
    fn lengths_are_told_in_two_units() {
        for (seconds, words) in
            [(-5, "0s"), (0, "0s"), (59, "59s"), (720, "12m"), (11_100, "3h 5m"), (187_200, "2d 4h")]
        {
            assert_eq!(in_words(SignedDuration::from_secs(seconds)), words);
        }
    }
}
