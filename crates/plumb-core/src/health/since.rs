//! Since when an object has its current health, and whether that is longer than expected.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::cause::Event;
use super::general::{is_observed, whole_number};
use super::read::{find, find_text};
use super::{Health, HealthStatus};
use crate::object::{GroupKind, Manifest};

/// The recorded health of an object. It survives a restart of plumb.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HealthRecord {
    /// How it was.
    pub status: HealthStatus,
    /// Since when.
    pub since: Timestamp,
    /// How that is known.
    pub known_from: KnownFrom,
    /// The generation that was judged, if it is known.
    pub generation: Option<i64>,
    /// Since when it is healthy again. The record is kept for a while: a container without readiness probe
    /// is ready each time it starts, and a crash loop would be reported as new with every crash.
    pub well_since: Option<Timestamp>,
}

/// An object that was healthy for this long has recovered; the kubelet resets its back-off after the same time.
const RECOVERED: SignedDuration = SignedDuration::from_mins(10);

impl HealthRecord {
    /// The record of an object that was just assessed; `None` if there is nothing to record.
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
                known_from: since.known_from,
                generation: generation(object),
                well_since: None,
            }),
        }
    }

    /// Does it describe this health, and not a problem that may be over?
    pub fn is_of(&self, health: &Health) -> bool {
        self.status == health.status && self.well_since.is_none()
    }

    /// Is an object that is in this state now still in the one that was noted?
    fn goes_on(&self, object: &Manifest, health: &Health, now: Timestamp) -> bool {
        let relapsed = || {
            let is_soon = self.well_since.is_some_and(|at| now.duration_since(at) < RECOVERED);
            // A new spec starts over.
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

/// What is known about an object from earlier assessments.
#[derive(Clone, Copy, Debug, Default)]
pub struct HealthHistory<'memory> {
    /// The record; a healthy object has none.
    pub record: Option<&'memory HealthRecord>,
    /// When the whole app was last assessed. An object that existed then and has no record was healthy.
    pub last_look: Option<Timestamp>,
}

/// How the beginning of a state is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnownFrom {
    /// plumb recorded it earlier.
    Record,
    /// plumb saw the object healthy at that time, and unhealthy at the next assessment.
    LastLook,
    /// A pod of it has been crash looping since the pod was created.
    Pod,
    /// The newest transition of the object's conditions.
    Condition,
    /// The first warning event about it.
    Event,
    /// The time of the request to delete it.
    Deletion,
    /// The last write to the object: its health cannot have changed because of the spec since then.
    Write,
    /// The object was not written since it was created.
    Creation,
    /// Unknown: it has this health at least since now.
    Seen,
}

/// Since when the object has this health.
///
/// A record with the same status is used: conditions change during a rollout, without a change of
/// the status. Without one, the newest change of a condition is when it came to be so, but not before the last
/// time that it was seen healthy: the conditions of a Deployment with a new rollout are as old as the Deployment.
pub fn since(object: &Manifest, health: &Health, past: HealthHistory<'_>, now: Timestamp) -> Since {
    if let Some(record) = past.record.filter(|record| record.goes_on(object, health, now)) {
        let is_certain = !matches!(record.known_from, KnownFrom::Write | KnownFrom::Seen);
        let known_from = if is_certain { KnownFrom::Record } else { record.known_from };
        return Since { at: record.since.min(now), known_from };
    }
    let (at, known_from) = own_start(object, past.record.is_some(), now);
    let at = at.min(now);
    // A status that was never seen before cannot be older than the last one that was.
    let other_until = match past.record {
        Some(record) => Some(record.well_since.unwrap_or(record.since)),
        // One that is well now may have been so then.
        None if matches!(health.status, HealthStatus::Healthy | HealthStatus::Suspended) => None,
        None => past.last_look,
    };
    match other_until.map(|until| until.min(now)) {
        Some(until) if until > at => Since { at: until, known_from: KnownFrom::LastLook },
        Some(_) | None => Since { at, known_from },
    }
}

/// Since when the object has its health, according to the object itself.
fn own_start(object: &Manifest, was_seen: bool, now: Timestamp) -> (Timestamp, KnownFrom) {
    let value = object.value();
    if let Some(at) = object.deleting_since() {
        return (at, KnownFrom::Deletion);
    }
    // What its controller has not seen yet is new since it was written.
    let written = if is_observed(value) { None } else { newest_write(value, now, |entry| !is_status(entry)) };
    if let Some(at) = newest_condition(value, now).max(written) {
        return (at, KnownFrom::Condition);
    }
    if was_seen {
        return (now, KnownFrom::Seen);
    }
    // Nothing says when; it cannot have changed since it was last written.
    let made = object.created_at();
    match (made, newest_write(value, now, |_| true)) {
        (made, Some(at)) if made.is_none_or(|made| made < at) => (at, KnownFrom::Write),
        (Some(made), _) => (made, KnownFrom::Creation),
        (None, _) => (now, KnownFrom::Seen),
    }
}

fn time(value: &Value, path: &str) -> Option<Timestamp> {
    find_text(value, path)?.parse().ok()
}

/// The newest transition of the conditions. `Progressing` of a Deployment stays true from one rollout to the next,
/// and has the time of its last progress in `lastUpdateTime`.
fn newest_condition(object: &Value, now: Timestamp) -> Option<Timestamp> {
    let conditions = find(object, "status.conditions").and_then(Value::as_array).into_iter().flatten();
    let times = conditions.flat_map(|condition| {
        let stepped = (find_text(condition, "type") == Some("Progressing")).then_some("lastUpdateTime");
        [Some("lastTransitionTime"), stepped].into_iter().flatten().filter_map(|field| time(condition, field))
    });
    times.filter(|at| *at <= now).max()
}

fn newest_write(object: &Value, now: Timestamp, counts: impl Fn(&Value) -> bool) -> Option<Timestamp> {
    let entries = find(object, "metadata.managedFields").and_then(Value::as_array).into_iter().flatten();
    entries
        .filter(|entry| counts(entry))
        .filter_map(|entry| time(entry, "time"))
        .filter(|at| *at <= now)
        .max()
}

fn is_status(entry: &Value) -> bool {
    find_text(entry, "subresource") == Some("status")
}

impl Since {
    /// The same, with events taken into account: an object that is rewritten all the time does not show when its problem
    /// began, but the first warning event does.
    #[must_use]
    pub fn with_events(self, events: &[Event]) -> Self {
        let first = events.iter().filter(|event| event.is_warning).filter_map(|event| event.first).min();
        match (self.known_from, first) {
            (KnownFrom::Write | KnownFrom::Seen, Some(first)) if first < self.at => {
                Self { at: first, known_from: KnownFrom::Event }
            }
            _ => self,
        }
    }
}

/// Since when a pod has been crash looping, if it has done so since it was created: at least three restarts, and at
/// least one an hour on average. For a pod that ran for weeks and crashes since this morning the start is unknown.
pub fn looping_since(pod: &Manifest, now: Timestamp) -> Option<Timestamp> {
    let value = pod.value();
    let made = pod.created_at()?;
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

/// How long objects may be `Progressing` before they count as stuck.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgressLimits {
    /// For kinds that are not listed.
    pub default: SignedDuration,
    /// By kind.
    pub by_kind: BTreeMap<GroupKind, SignedDuration>,
}

impl Default for ProgressLimits {
    fn default() -> Self {
        Self { default: SignedDuration::from_mins(15), by_kind: BTreeMap::new() }
    }
}

impl ProgressLimits {
    /// How long this object may be `Progressing`. A deadline that the object sets itself is respected.
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

    /// For how long an object that is `Progressing` since then is overdue; `None` if it is not.
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

    fn past(record: Option<&HealthRecord>) -> HealthHistory<'_> {
        HealthHistory { record, last_look: None }
    }

    #[test]
    fn a_rollout_of_what_was_well_begins_when_it_was_last_seen_well() {
        let health = Health::progressing("");
        let past = HealthHistory { record: None, last_look: Some(at("09:40:00")) };
        let found = since(&deployment(&json!({})), &health, past, at("10:00:00"));
        assert_eq!(found, Since { at: at("09:40:00"), known_from: KnownFrom::LastLook });
        let well = since(&deployment(&json!({})), &Health::healthy(""), past, at("10:00:00"));
        assert_eq!(well.at, at("09:10:00"), "it was well then, too");
        let made_since = json!({"metadata": {"creationTimestamp": "2026-03-01T09:50:00Z"}, "status": {}});
        let found = since(&deployment(&made_since), &health, past, at("10:00:00"));
        assert_eq!(found, Since { at: at("09:50:00"), known_from: KnownFrom::Creation });
        // After a restart: the last progress of a rollout, and the write of a spec that the controller has not observed yet.
        let stepped = json!({"status": {"conditions": [{"type": "Progressing", "status": "True",
            "lastTransitionTime": "2026-03-01T08:00:10Z", "lastUpdateTime": "2026-03-01T09:55:00Z"}]}});
        let found = since(&deployment(&stepped), &health, HealthHistory::default(), at("10:00:00"));
        assert_eq!(found, Since { at: at("09:55:00"), known_from: KnownFrom::Condition });
        let unseen = json!({
            "metadata": {"generation": 2, "managedFields": [
                {"manager": "kubectl", "time": "2026-03-01T09:58:00Z"},
                {"manager": "a-controller", "time": "2026-03-01T09:59:00Z", "subresource": "status"}]},
            "status": {"observedGeneration": 1, "conditions": [
                {"type": "Ready", "status": "True", "lastTransitionTime": "2026-03-01T08:00:10Z"}]},
        });
        assert_eq!(
            since(&deployment(&unseen), &health, HealthHistory::default(), at("10:00:00")).at,
            at("09:58:00")
        );
    }

    #[test]
    fn what_has_no_conditions_is_as_it_was_last_written_or_as_its_first_warning_says() {
        let health = Health::progressing("");
        let written = json!({"status": {}, "metadata": {"creationTimestamp": "2026-03-01T08:00:00Z",
            "managedFields": [{"manager": "a", "time": "2026-03-01T08:00:00Z"}, {"manager": "b", "time": "2026-03-01T09:30:00Z"}]}});
        let found = since(&deployment(&written), &health, HealthHistory::default(), at("10:00:00"));
        assert_eq!(found, Since { at: at("09:30:00"), known_from: KnownFrom::Write });
        let event = |is_warning, first: &str| Event {
            is_warning,
            reason: "ProvisioningFailed".into(),
            message: String::new(),
            count: 40,
            first: Some(at(first)),
        };
        let shown =
            found.with_events(&[event(false, "08:30:00"), event(true, "09:20:00"), event(true, "09:10:00")]);
        assert_eq!(shown, Since { at: at("09:10:00"), known_from: KnownFrom::Event });
        let record = HealthRecord::next(None, &deployment(&written), &health, &found, at("10:00:00"));
        let later = since(&deployment(&written), &health, past(record.as_ref()), at("10:05:00"));
        assert_eq!(
            later.with_events(&[event(true, "09:10:00")]).at,
            at("09:10:00"),
            "the event arrived after the first assessment"
        );
        let certain = Since { known_from: KnownFrom::Condition, ..found };
        assert_eq!(certain.with_events(&[event(true, "09:10:00")]), certain, "a condition knows better");
    }

    #[test]
    fn the_newest_condition_tells_when_it_began() {
        let health = Health::progressing("");
        let found = since(&deployment(&json!({})), &health, HealthHistory::default(), at("10:00:00"));
        assert_eq!(found, Since { at: at("09:10:00"), known_from: KnownFrom::Condition });
        let early = since(&deployment(&json!({})), &health, HealthHistory::default(), at("09:05:00"));
        assert_eq!(early.at, at("09:00:00"), "a condition from the future is not believed");
        let bare = deployment(&json!({"status": {}}));
        assert_eq!(
            since(&bare, &health, HealthHistory::default(), at("10:00:00")).known_from,
            KnownFrom::Creation
        );
    }

    #[test]
    fn a_record_of_the_same_status_outlives_changes_of_conditions() {
        let health = Health::progressing("");
        let record = |status, since| HealthRecord {
            status,
            since: at(since),
            known_from: KnownFrom::Record,
            generation: None,
            well_since: None,
        };
        let same = record(HealthStatus::Progressing, "08:30:00");
        let found = since(&deployment(&json!({})), &health, past(Some(&same)), at("10:00:00"));
        assert_eq!(found, Since { at: at("08:30:00"), known_from: KnownFrom::Record });
        let other = record(HealthStatus::Degraded, "09:50:00");
        let found = since(&deployment(&json!({})), &health, past(Some(&other)), at("10:00:00"));
        assert_eq!(found.at, at("09:50:00"), "it was degraded then, so it cannot progress since earlier");
        let bare = deployment(&json!({"status": {}}));
        let found = since(&bare, &health, past(Some(&other)), at("10:00:00"));
        assert_eq!(found, Since { at: at("10:00:00"), known_from: KnownFrom::Seen });
    }

    #[test]
    fn a_moment_of_wellness_does_not_end_an_illness() {
        let object = deployment(&json!({"status": {}}));
        let judge = |before: Option<&HealthRecord>, health: &Health, now: &str| {
            let since = since(&object, health, past(before), at(now));
            (since.at, HealthRecord::next(before, &object, health, &since, at(now)))
        };
        let ill = Health::progressing("");
        let (began, noted) = judge(None, &ill, "08:00:10");
        let (_, noted) = judge(noted.as_ref(), &Health::healthy(""), "09:00:00");
        let (again, relapsed) = judge(noted.as_ref(), &ill, "09:05:00");
        assert_eq!((again, relapsed.is_some()), (began, true), "unhealthy again within ten minutes");
        let (_, recovered) = judge(noted.as_ref(), &Health::healthy(""), "09:10:00");
        assert_eq!(recovered, None);
        let newer = deployment(&json!({"status": {}, "metadata": {"name": "web", "generation": 2}}));
        let older = noted.map(|noted| HealthRecord { generation: Some(1), ..noted });
        let found = since(&newer, &ill, past(older.as_ref()), at("09:05:00"));
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
        let patience = ProgressLimits::default();
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
        let short =
            ProgressLimits { by_kind: BTreeMap::from([(kind, SignedDuration::from_mins(2))]), ..patience };
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
