use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::*;
use crate::app::{Backoff, RetryPolicy};
use crate::desired::Wave;
use crate::health::{Health, HealthStatus, Role};
use crate::plan::tests::fixture::{Fixture, key, time};
use crate::plan::{Refusal, SyncPhase};
use crate::sync::{Observed, OperationPhase, SyncLimits, SyncState, next};

fn object(name: &str, status: Option<SyncCode>) -> ObjectStatus {
    ObjectStatus {
        key: key("ConfigMap", name),
        version: "v1".to_owned(),
        status,
        counts: true,
        is_permitted: true,
        health: None,
        role: Role::Counts,
        is_live: true,
        is_hook: false,
        requires_pruning: false,
        requires_confirmation: false,
        wave: Some(Wave(0)),
    }
}

/// The mark of a hook in this phase.
fn mark(record: &OperationRecord, phase: SyncPhase) -> String {
    record.mark("9f0c", "3f2c").text(phase, &key("Job", "migrate"))
}

#[test]
fn one_red_object_makes_the_app_red() {
    let green = || object("a", Some(SyncCode::Synced));
    let red = || object("b", Some(SyncCode::OutOfSync));
    let sync = |objects: Vec<ObjectStatus>| roll_up(RollUp { objects, ..RollUp::default() }).sync;
    assert_eq!(sync(vec![]), SyncCode::Synced);
    assert_eq!(sync(vec![green()]), SyncCode::Synced);
    assert_eq!(sync(vec![green(), red()]), SyncCode::OutOfSync);
    assert_eq!(sync(vec![green(), object("hook", None)]), SyncCode::Synced);
    let extraneous = ObjectStatus { counts: false, ..red() };
    assert_eq!(sync(vec![green(), extraneous]), SyncCode::Synced);
    let unknown = || object("c", Some(SyncCode::Unknown));
    assert_eq!(sync(vec![green(), unknown()]), SyncCode::Unknown, "it could not be read");
    assert_eq!(sync(vec![unknown(), red()]), SyncCode::OutOfSync);
    let denied = ObjectStatus { is_permitted: false, ..unknown() };
    assert_eq!(sync(vec![denied.clone()]), SyncCode::OutOfSync, "no sync can bring it about");
    assert_eq!(sync(vec![ObjectStatus { counts: false, status: None, ..denied }]), SyncCode::Synced);
    let changed = RollUp { objects: vec![green()], namespace_metadata_changed: true, ..RollUp::default() };
    assert_eq!(roll_up(changed).sync, SyncCode::OutOfSync);
}

#[test]
fn an_app_compared_with_an_outdated_commit_is_unknown() {
    let objects = vec![object("a", Some(SyncCode::OutOfSync)), object("hook", None)];
    let status = roll_up(RollUp { objects, desired_is_outdated: true, ..RollUp::default() });
    assert_eq!(status.sync, SyncCode::Unknown);
    let codes: Vec<Option<SyncCode>> = status.resources.iter().map(|object| object.status).collect();
    assert_eq!(codes, [Some(SyncCode::OutOfSync), None], "the objects keep their verdicts");
}

#[test]
fn resources_are_sorted_and_health_is_the_worst() {
    let mut deployment = object("web", Some(SyncCode::Synced));
    deployment.key = key("Deployment", "web");
    deployment.health = Some(Health { status: HealthStatus::Degraded, message: "crash".to_owned() });
    let mut child = object("child", Some(SyncCode::Synced));
    child.key = key("Application", "child");
    let objects = vec![child, deployment, object("b", None), object("a", None)];
    let status = roll_up(RollUp { objects, ..RollUp::default() });
    let names: Vec<&str> = status.resources.iter().map(|object| object.key.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "web", "child"]);
    assert_eq!(status.health.status, HealthStatus::Degraded);
    assert!(status.is_app_of_apps);
}

fn policy(limit: u32) -> RetryPolicy {
    RetryPolicy { limit: Some(limit), backoff: Backoff::default(), refresh: false }
}

fn now() -> Timestamp {
    time("2026-11-15T12:00:00.75Z")
}

fn begun() -> OperationRecord {
    OperationRecord::begun(now(), None, true)
}

#[test]
fn no_two_operations_with_hooks_begin_at_the_same_time() {
    let first = begun();
    let heal = OperationRecord::begun(now(), Some(first.started_at), false);
    assert_eq!(heal.started_at, first.started_at, "it runs no hooks");
    let second = OperationRecord::begun(now(), Some(heal.started_at), true);
    let third = OperationRecord::begun(now(), Some(second.started_at), true);
    let heal_again = OperationRecord::begun(now(), Some(third.started_at), false);
    let fourth = OperationRecord::begun(now(), Some(heal_again.started_at), true);
    let marks: std::collections::BTreeSet<String> =
        [&first, &second, &third, &fourth].iter().map(|record| mark(record, SyncPhase::PreSync)).collect();
    assert_eq!(marks.len(), 4, "{marks:?}");
    let long_ago = first.started_at - SignedDuration::from_hours(1);
    assert_eq!(OperationRecord::begun(now(), Some(long_ago), true).started_at, first.started_at);

    let refusal = Refusal { message: "no".to_owned(), objects: Vec::new() };
    let (ended, _) = third.refused(&refusal, &policy(0), now());
    assert_eq!(ended.finished_at, Some(third.started_at), "nothing ends before it began");
}

#[test]
fn an_operation_starts_on_a_whole_second() {
    let record = begun();
    assert_eq!(record.started_at, time("2026-11-15T12:00:00Z"));
    let mark = mark(&record, SyncPhase::PreSync);
    assert!(mark.starts_with("1794744000-0-presync-"), "{mark}");
}

#[test]
fn a_refused_plan_is_a_failed_operation_with_results() {
    let refusal = Fixture::parse("git ConfigMap a\ndenied ConfigMap").build().expect_err("refused");
    let (record, after) = begun().refused(&refusal, &policy(0), now());
    assert_eq!((record.phase, after), (OperationPhase::Failed, After::Ended));
    assert!(
        record.message.starts_with("one or more synchronization tasks are not valid"),
        "{}",
        record.message
    );
    assert_eq!(record.results.len(), 1);
    assert_eq!(record.finished_at, Some(time("2026-11-15T12:00:00Z")));
}

#[test]
fn a_retry_waits_with_results_and_starts_without() {
    let begun = begun();
    let (waiting, after) = begun.erred("the cluster is away", &policy(1), now());
    assert_eq!(waiting.phase, OperationPhase::Running);
    assert!(waiting.finished_at.is_some());
    assert_eq!(waiting.message, "the cluster is away. Retrying attempt #1 at 12:00PM.");
    assert_eq!(after, After::RetryAt(time("2026-11-15T12:00:05Z")));
    let (superseded, after) = waiting.superseded("fedcba9", now());
    assert_eq!((superseded.phase, after), (OperationPhase::Failed, After::Ended));
    assert!(superseded.message.starts_with("superseded by fedcba9, because"), "{}", superseded.message);
    let (terminated, after) = waiting.terminated(now());
    assert_eq!((terminated.phase, after), (OperationPhase::Failed, After::Ended));
    assert_eq!(terminated.message, "Operation terminated");
    let retried = waiting.retried();
    assert_eq!((retried.finished_at, retried.retries, retried.results.len()), (None, 1, 0));
    assert_eq!(retried.started_at, begun.started_at, "the timeout counts from the first try");
    assert_ne!(
        mark(&retried, SyncPhase::Sync),
        mark(&begun, SyncPhase::Sync),
        "hooks of another try are other hooks"
    );
    let (ended, after) = retried.erred("still away", &policy(1), now());
    assert_eq!((ended.phase, after), (OperationPhase::Error, After::Ended));
    assert_eq!(ended.message, "still away (retried 1 times).");
}

#[test]
fn a_stopped_operation_is_not_retried() {
    let plan = Fixture::parse("git ConfigMap a").plan();
    let observations = std::collections::BTreeMap::new();
    let observed = Observed {
        observations: &observations,
        outcomes: &[],
        approved_at: None,
        hold: None,
        terminate: true,
        newer_revision: None,
    };
    let transition = next(SyncState::start(Arc::clone(&plan), SyncLimits::default()), &observed, now());
    let (record, after) = begun().after(&transition, &policy(5), now());
    assert_eq!((record.phase, record.message.as_str()), (OperationPhase::Failed, "Operation terminated"));
    assert_eq!(after, After::Ended);
}

#[test]
fn waits_are_capped_and_never_overflow() {
    let long = Backoff { duration: Duration::from_hours(1), factor: u32::MAX, max: Duration::from_mins(3) };
    let policy = RetryPolicy { limit: None, backoff: long, refresh: true };
    let record = OperationRecord { retries: u32::MAX - 1, ..begun() };
    let (record, after) = record.erred("x", &policy, now());
    assert_eq!(record.retries, u32::MAX);
    assert_eq!(after, After::RetryAt(time("2026-11-15T12:03:00Z")));
}

#[test]
fn a_rollback_goes_to_the_entry_before_the_last_unless_told() {
    assert_eq!(rollback_target(&[3, 4, 7], None, false), Ok(1));
    assert_eq!(rollback_target(&[3, 4, 7], Some(3), false), Ok(0));
    let refused = |ids: &[i64], asked, automated| {
        rollback_target(ids, asked, automated).expect_err("refused").to_string()
    };
    assert_eq!(refused(&[3, 4], Some(9), false), "no entry 9 in the history (there are: 3, 4)");
    assert_eq!(refused(&[3], None, false), "the history has no earlier sync to go back to");
    assert_eq!(refused(&[3, 4], None, true), "rollback cannot be performed when auto-sync is enabled");
}
