use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::*;
use crate::drift::ApiFailure;
use crate::health::HealthStatus;
use crate::object::{Fingerprint, Manifest, ObjectKey};
use crate::status::SyncCode;

const FILES: Rendering = Rendering { commit: 1, origin: None };
const CHART: Rendering = Rendering { commit: 1, origin: Some(10) };

fn key() -> ObjectKey {
    ObjectKey::new("", "ConfigMap", Some("shop".to_owned()), "web")
}

fn manifest(value: &str) -> Manifest {
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web", "namespace": "shop"},
        "data": {"value": value},
    });
    Manifest::new(object).unwrap()
}

fn print(value: &str) -> Fingerprint {
    Fingerprint::of(&manifest(value))
}

fn history(value: &str, rendering: Rendering, result: AttemptResult) -> WriteHistory {
    let mut history = WriteHistory::default();
    history.record(&key(), print(value), rendering, result);
    history
}

fn refusal() -> ApiFailure {
    ApiFailure { code: 422, reason: "Invalid".to_owned(), message: "no".to_owned(), causes: Vec::new() }
}

/// One line per case: what was applied last, how the last attempt ended.
fn last(history: &WriteHistory, now: (&str, Rendering), previous: Option<(&str, bool)>) -> String {
    let before = previous.map(|(value, _)| manifest(value));
    let was_in_sync = previous.is_some_and(|(_, was_in_sync)| was_in_sync);
    let (apply, attempt) = history.last(&key(), print(now.0), now.1, was_in_sync, || before.as_ref());
    let apply = match apply {
        LastApply::Unknown => "unknown".to_owned(),
        LastApply::Same => "same".to_owned(),
        LastApply::Changed(None) => "changed".to_owned(),
        LastApply::Changed(Some(manifest)) => format!("changed from {}", manifest.value()["data"]["value"]),
        LastApply::Rerendered => "rerendered".to_owned(),
    };
    let attempt = match attempt {
        LastAttempt::None => "none",
        LastAttempt::Applied => "applied",
        LastAttempt::Refused(_) => "refused",
        LastAttempt::Failed => "failed",
    };
    format!("{apply}, {attempt}")
}

#[test]
fn the_last_apply_is_told_from_the_records_and_the_previous_commit() {
    let none = WriteHistory::default();
    let applied = history("a", FILES, AttemptResult::Applied);
    let refused = history("a", FILES, AttemptResult::Refused(Box::new(refusal())));
    let failed = history("a", FILES, AttemptResult::Failed);
    let chart = history("a", CHART, AttemptResult::Applied);
    for (history, now, previous, expected) in [
        // No record: only a commit that the cluster was found equal to says what was there.
        (&none, ("b", FILES), None, "unknown, none"),
        (&none, ("b", FILES), Some(("a", false)), "unknown, none"),
        (&none, ("b", FILES), Some(("a", true)), "changed from \"a\", none"),
        (&none, ("a", FILES), Some(("a", true)), "unknown, none"),
        // What Git asks now was sent before.
        (&applied, ("a", FILES), None, "same, applied"),
        (&refused, ("a", FILES), None, "unknown, refused"),
        (&failed, ("a", FILES), None, "unknown, failed"),
        // Git moved on since.
        (&applied, ("b", FILES), None, "changed, none"),
        (&applied, ("b", FILES), Some(("a", false)), "changed from \"a\", none"),
        (&applied, ("b", FILES), Some(("c", false)), "changed, none"),
        (&applied, ("b", FILES), Some(("c", true)), "changed from \"c\", none"),
        (&failed, ("b", FILES), Some(("a", false)), "changed, none"),
        (&failed, ("b", FILES), Some(("a", true)), "changed from \"a\", none"),
        // The same input rendered something else.
        (&chart, ("b", CHART), None, "rerendered, none"),
        (&chart, ("b", Rendering { origin: Some(11), ..CHART }), None, "changed, none"),
        (&applied, ("b", CHART), None, "changed, none"),
    ] {
        assert_eq!(last(history, now, previous), expected, "{now:?} {previous:?}");
    }
}

#[test]
fn another_rendering_of_one_commit_is_the_same_request() {
    let chart = history("a", CHART, AttemptResult::Applied);
    let newer = Rendering { commit: 2, origin: Some(20) };
    assert_eq!(chart.asked(&key(), print("b"), CHART), print("a"));
    assert_eq!(chart.asked(&key(), print("b"), newer), print("b"));
    assert!(chart.was_applied(&key(), print("b"), CHART));
    assert!(!chart.was_applied(&key(), print("b"), newer));
    // The first manifest of a commit names the request, however often it is rendered and applied again.
    let mut twice = chart.clone();
    twice.record(&key(), print("b"), CHART, AttemptResult::Applied);
    twice.record(&key(), print("c"), CHART, AttemptResult::Applied);
    assert_eq!(twice.asked(&key(), print("d"), CHART), print("a"));
    // Plain files: another manifest is another request, though the commit is the same.
    let files = history("a", FILES, AttemptResult::Applied);
    assert_eq!(files.asked(&key(), print("b"), FILES), print("b"));
    let failed = history("a", FILES, AttemptResult::Failed);
    assert!(!failed.was_applied(&key(), print("a"), FILES));
}

#[test]
fn a_commit_that_changes_nothing_sent_everything_before() {
    let mut history = history("a", FILES, AttemptResult::Failed);
    let other = ObjectKey::new("", "ConfigMap", Some("shop".to_owned()), "other");
    assert!(history.sent_all([(&key(), print("a"))].into_iter()));
    assert!(!history.sent_all([(&key(), print("b"))].into_iter()));
    assert!(!history.sent_all([(&key(), print("a")), (&other, print("a"))].into_iter()));
    // It was pruned: a commit that brings it back changes something.
    history.forget(&key());
    assert!(!history.sent_all([(&key(), print("a"))].into_iter()));
}

#[test]
fn records_of_this_process_win_over_restored_ones() {
    let mut history = history("a", CHART, AttemptResult::Failed);
    assert!(!history.restore(&key(), || AttemptRecord::restored(print("b"), CHART)));
    let other = ObjectKey::new("", "ConfigMap", None, "other");
    assert!(history.restore(&other, || AttemptRecord::restored(print("b"), CHART)));
    let restored = history.attempt(&other).unwrap();
    assert_eq!((restored.commit, restored.origin), (Some(1), None));
    assert_eq!(history.attempt(&key()).unwrap().desired, print("a"));
}

#[test]
fn a_job_that_is_applied_again_has_not_finished() {
    let mut history = WriteHistory::default();
    let at = Some(Timestamp::UNIX_EPOCH);
    history.record_finished(key(), FinishedJob { at, succeeded: true, desired: Some(print("a")) });
    assert!(history.finished_run(&key(), print("a")).unwrap().same_desired);
    assert!(!history.finished_run(&key(), print("b")).unwrap().same_desired);
    history.restore_finished(&key(), FinishedJob { at: None, succeeded: false, desired: None });
    assert!(history.finished(&key()).unwrap().succeeded, "a run that is recorded stays");
    history.record(&key(), print("a"), FILES, AttemptResult::Applied);
    assert!(history.finished(&key()).is_none());
}

#[test]
fn a_job_finished_unseen_only_if_it_existed_and_had_the_time() {
    let hours = |hours| Some(SignedDuration::from_hours(hours));
    let job = |ttl: i64, suspend: bool| {
        let spec = json!({"ttlSecondsAfterFinished": ttl, "suspend": suspend});
        Manifest::new(json!({"apiVersion": "batch/v1", "kind": "Job", "spec": spec})).unwrap()
    };
    for (ttl, sync, health, down_for, expected) in [
        (60, SyncCode::Synced, None, hours(2), true),
        (60, SyncCode::Synced, Some(HealthStatus::Progressing), hours(2), true),
        (60, SyncCode::Synced, Some(HealthStatus::Healthy), None, true),
        // Events would still say so.
        (60, SyncCode::Synced, None, Some(SignedDuration::from_mins(50)), false),
        // It would still exist.
        (86_400, SyncCode::Synced, None, hours(2), false),
        (86_400, SyncCode::Synced, None, hours(25), true),
        // It was missing already, had failed, or had not started.
        (60, SyncCode::OutOfSync, None, hours(2), false),
        (60, SyncCode::Synced, Some(HealthStatus::Degraded), hours(2), false),
        (60, SyncCode::Synced, Some(HealthStatus::Suspended), hours(2), false),
        // How long plumb was down is not known.
        (60, SyncCode::Synced, None, None, false),
    ] {
        let case = format!("{ttl} {sync:?} {health:?} {down_for:?}");
        let seen = Some(LastSeenJob { sync, health });
        assert_eq!(has_finished_unseen(seen, &job(ttl, false), down_for), expected, "{case}");
        assert!(!has_finished_unseen(None, &job(ttl, false), down_for), "{case}");
        if health.is_none() {
            assert!(!has_finished_unseen(seen, &job(ttl, true), down_for), "suspended: {case}");
        }
    }
}

#[test]
fn the_end_of_a_job_is_read_from_its_conditions() {
    let job = |condition: serde_json::Value| {
        let status = json!({"conditions": [{"type": "Suspended", "status": "False"}, condition]});
        Manifest::new(json!({"apiVersion": "batch/v1", "kind": "Job", "status": status})).unwrap()
    };
    let at = "2026-11-15T19:00:00Z";
    let done = job(json!({"type": "Complete", "status": "True", "lastTransitionTime": at}));
    assert_eq!(finished(&done), Some((true, Some(at.parse().unwrap()))));
    assert_eq!(finished(&job(json!({"type": "Failed", "status": "True"}))), Some((false, None)));
    assert_eq!(finished(&job(json!({"type": "Complete", "status": "False"}))), None);
    assert!(is_job(&ObjectKey::new("batch", "Job", None, "x")));
    assert!(!is_job(&ObjectKey::new("batch", "CronJob", None, "x")));
}
