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
    /// The generation that was judged, if it is known.
    pub generation: Option<i64>,
    /// Since when it looks well again. The record of an illness is kept for a while: a container without readiness
    /// probe is ready each time it starts, and a crash loop would begin anew with every crash.
    pub well_since: Option<Timestamp>,
}

/// One that was well for so long has recovered; the kubelet forgets its back-off after the same time.
const RECOVERED: SignedDuration = SignedDuration::from_mins(10);

impl Record {
    /// What to note about an object that was just judged; `None`: nothing to remember.
    pub fn next(
        before: Option<&Self>,
        object: &Manifest,
        health: &Health,
        since: &Since,
        now: Timestamp,
    ) -> Option<Self> {
        match health.status {
            HealthStatus::Healthy | HealthStatus::Suspended => {
                let before = before?;
                let well_since = before.well_since.unwrap_or(now);
                let has_recovered = now.duration_since(well_since) >= RECOVERED;
                (!has_recovered).then_some(Self { well_since: Some(well_since), ..*before })
            }
            HealthStatus::Progressing
            | HealthStatus::Missing
            | HealthStatus::Degraded
            | HealthStatus::Unknown => Some(Self {
                status: health.status,
                since: since.at,
                generation: generation(object),
                well_since: None,
            }),
        }
    }

    /// Is an object that is in this state now still in the one that was noted?
    fn goes_on(&self, object: &Manifest, health: &Health, now: Timestamp) -> bool {
        let relapsed = || {
            let is_soon = self.well_since.is_some_and(|at| now.duration_since(at) < RECOVERED);
            // A new spec is a new try.
            is_soon && self.generation.is_none_or(|noted| Some(noted) == generation(object))
        };
        self.status == health.status && (self.well_since.is_none() || relapsed())
    }
}

fn generation(object: &Manifest) -> Option<i64> {
    find(object.value(), "metadata.generation").and_then(Value::as_i64)
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
    /// A pod below it crashes again and again since it was made.
    Pod,
    /// The newest change that the object's conditions tell.
    Condition,
    /// The time of the request to delete it.
    Deletion,
    /// The object is as it is since it was made, as far as it tells.
    Creation,
    /// Nothing tells; it is so at least since now.
    Seen,
}

/// Since when the object is in the state of this judgement.
///
/// A record of the same status is believed: conditions change while a rollout goes on, without the object
/// leaving its state. Without one, the newest change of a condition is when it came to be so.
pub fn since(object: &Manifest, health: &Health, record: Option<&Record>, now: Timestamp) -> Since {
    let known = |at: Timestamp, known_from| Since { at: at.min(now), known_from };
    if let Some(record) = record.filter(|record| record.goes_on(object, health, now)) {
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
        let at = record.map_or(at, |record| at.max(record.well_since.unwrap_or(record.since)));
        return known(at, KnownFrom::Condition);
    }
    match (record, time("metadata.creationTimestamp")) {
        (None, Some(at)) => known(at, KnownFrom::Creation),
        (Some(_), _) | (None, None) => known(now, KnownFrom::Seen),
    }
}

/// Since when a pod crashes again and again, if it does so ever since it was made: it was restarted at least three
/// times, and at least once an hour on the whole. A pod that ran for weeks and crashes since this morning is not
/// such a one; its beginning is not written anywhere.
pub fn looping_since(pod: &Manifest, now: Timestamp) -> Option<Timestamp> {
    let value = pod.value();
    let made: Timestamp = find_text(value, "metadata.creationTimestamp")?.parse().ok()?;
    let age = now.duration_since(made).as_secs().max(0);
    let loops = |status: &Value| {
        let restarts = find(status, "restartCount").and_then(Value::as_i64).unwrap_or(0);
        let is_ready = find(status, "ready") == Some(&Value::Bool(true));
        !is_ready && restarts >= 3 && age / restarts <= 3600 && find(status, "lastState.terminated").is_some()
    };
    let containers = ["status.initContainerStatuses", "status.containerStatuses"]
        .into_iter()
        .filter_map(|list| find(value, list)?.as_array())
        .flatten();
    containers.into_iter().any(loops).then_some(made.min(now))
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
        let record = |status, since| Record { status, since: at(since), generation: None, well_since: None };
        let same = record(HealthStatus::Progressing, "08:30:00");
        let found = since(&deployment(&json!({})), &health, Some(&same), at("10:00:00"));
        assert_eq!(found, Since { at: at("08:30:00"), known_from: KnownFrom::Record });
        let other = record(HealthStatus::Degraded, "09:50:00");
        let found = since(&deployment(&json!({})), &health, Some(&other), at("10:00:00"));
        assert_eq!(found.at, at("09:50:00"), "it was degraded then, so it cannot progress since earlier");
        let bare = deployment(&json!({"status": {}}));
        let found = since(&bare, &health, Some(&other), at("10:00:00"));
        assert_eq!(found, Since { at: at("10:00:00"), known_from: KnownFrom::Seen });
    }

    #[test]
    fn a_moment_of_wellness_does_not_end_an_illness() {
        let object = deployment(&json!({"status": {}}));
        let judge = |before: Option<&Record>, health: &Health, now: &str| {
            let since = since(&object, health, before, at(now));
            (since.at, Record::next(before, &object, health, &since, at(now)))
        };
        let ill = Health::progressing("");
        let (began, noted) = judge(None, &ill, "08:00:10");
        let (_, noted) = judge(noted.as_ref(), &Health::healthy(""), "09:00:00");
        let (again, relapsed) = judge(noted.as_ref(), &ill, "09:05:00");
        assert_eq!((again, relapsed.is_some()), (began, true), "ill again within ten minutes");
        let (_, recovered) = judge(noted.as_ref(), &Health::healthy(""), "09:10:00");
        assert_eq!(recovered, None);
        let newer = deployment(&json!({"status": {}, "metadata": {"name": "web", "generation": 2}}));
        let older = noted.map(|noted| Record { generation: Some(1), ..noted });
        let found = since(&newer, &ill, older.as_ref(), at("09:05:00"));
        assert_eq!(found.at, at("09:05:00"), "a new spec is a new try");
    }

    #[test]
    fn a_pod_that_always_crashed_says_since_when() {
        let pod = |restarts: i64| {
            Manifest::new(json!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": "web", "creationTimestamp": "2026-02-08T10:00:00Z"},
                "status": {"containerStatuses": [{
                    "name": "main", "ready": false, "restartCount": restarts,
                    "lastState": {"terminated": {"exitCode": 1}},
                }]},
            }))
            .expect("an object")
        };
        let began = "2026-02-08T10:00:00Z".parse().ok();
        assert_eq!(looping_since(&pod(1154), at("10:00:00")), began);
        assert_eq!(looping_since(&pod(15), at("10:00:00")), None, "it ran well for most of its life");
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
