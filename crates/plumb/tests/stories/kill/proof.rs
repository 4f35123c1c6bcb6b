//! What is proved in the end, from a record of all Jobs and from the API server's audit log.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use plumb_core::plan::{HOOK_FINALIZER, OPERATION_ANNOTATION};
use plumb_testkit::{Recording, audit, wait};
use serde_json::Value;

use super::round::{DRAWN, EVERY_TIME, GONE_AFTER_SUCCESS, HOOKS, LEAVE, MOVER, Round, STAY};
use crate::stage::Stage;

/// How many copies of deleted objects an app keeps (`plumb.tombstones.app-count`): more than the longest story makes, so
/// that each can be looked for in the end.
pub(super) const MOST_COPIES: usize = 5000;

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// No hook is held any longer, and those that ask for it are gone.
pub(super) async fn residue(stage: &Stage, round: Round, commit: &str) -> Result<()> {
    // A drawn name has the commit in it. Those of an operation that failed stay: it did not succeed in the end.
    let drawn = format!("{DRAWN}{}-", commit.get(..7).unwrap_or_default());
    let is_to_go = |name: &str| {
        if round.fails() {
            name == "breaks"
        } else {
            GONE_AFTER_SUCCESS.contains(&name) || name.starts_with(&drawn)
        }
    };
    let is_over = |jobs: &wait::Seen| {
        let held = |job: &Value| {
            let finalizers = job["metadata"]["finalizers"].as_array().into_iter().flatten();
            finalizers.into_iter().any(|finalizer| finalizer == HOOK_FINALIZER)
        };
        jobs.values().all(|job| !held(job) && !is_to_go(name(job)))
    };
    stage.place.wait_list("batch/v1", "Job", "", "has no leftovers of hooks", is_over).await?;
    Ok(())
}

/// Each hook has at most one object per operation and try, and those that run each time have one per round.
pub(super) fn hooks(stage: &Stage, user: &str, jobs: &Recording, last: Round) -> Result<()> {
    let mut runs: BTreeMap<(String, String), usize> = BTreeMap::new();
    let ours: Vec<Value> = jobs.seen().into_iter().filter(|job| name(job) != "idle").collect();
    for job in &ours {
        let mark =
            job["metadata"]["annotations"][OPERATION_ANNOTATION].as_str().context("a job without a mark")?;
        *runs.entry((name(job).to_owned(), mark.to_owned())).or_default() += 1;
    }
    let twice: Vec<_> = runs.iter().filter(|(_, count)| **count > 1).collect();
    ensure!(twice.is_empty(), "hooks that ran twice in one operation: {twice:?}");
    let failed = (1..=last.0).filter(|round| Round(*round).fails()).count();
    for (hook, at_least) in EVERY_TIME.map(|hook| (hook, last.0)).into_iter().chain([("sorry", failed)]) {
        let n_runs = runs.keys().filter(|(name, _)| name == hook).count();
        ensure!(n_runs >= at_least, "{hook} ran {n_runs} times in {} rounds", last.0);
    }
    let n_drawn = runs.keys().filter(|(name, _)| name.starts_with(DRAWN)).count();
    ensure!(n_drawn >= last.0, "the hook without a name ran {n_drawn} times in {} rounds", last.0);

    // The server's own log knows of no Job that the record lacks. The other way round it may: the answer to a
    // process that is dead by then is no 201.
    let is_creation = |event: &audit::AuditEvent| {
        event.user.username == user
            && event.is_write()
            && event.response_status.is_some_and(|status| status.code == 201)
            && event
                .object_ref
                .as_ref()
                .is_some_and(|object| object.resource == "jobs" && object.namespace == stage.place.name())
    };
    let made = audit::read(&stage.place.cluster().audit_log(), is_creation)?;
    ensure!(!made.is_empty(), "the audit log has no Job of {user}");
    let mut unseen: BTreeMap<String, i64> = BTreeMap::new();
    for object in made.into_iter().filter_map(|event| event.object_ref) {
        *unseen.entry(object.name).or_default() += 1;
    }
    for job in &ours {
        *unseen.entry(name(job).to_owned()).or_default() -= 1;
    }
    unseen.retain(|_, n| *n > 0);
    ensure!(unseen.is_empty(), "Jobs that were made and not seen: {unseen:?}");
    Ok(())
}

/// Every write of plumb is about the apps' own objects or plumb's own bookkeeping, and what stays was never deleted.
pub(super) fn writes(stage: &Stage, user: &str, last: Round) -> Result<()> {
    let log = stage.place.cluster().audit_log();
    let writes = audit::read(&log, |event| event.user.username == user && event.is_write())?;
    ensure!(!writes.is_empty(), "the audit log has no write of {user}");
    let is_of_a_round = |name: &str| {
        let number = LEAVE.iter().find_map(|beginning| name.strip_prefix(beginning));
        number.and_then(|number| number.parse().ok()).is_some_and(|round: usize| round <= last.0)
    };
    let is_ours = |verb: &str, object: &audit::AuditObject| {
        let (name, deletes) = (object.name.as_str(), verb == "delete");
        match object.resource.as_str() {
            "configmaps" => {
                name == "plumb-state"
                    || is_of_a_round(name)
                    || (!deletes && (STAY.contains(&name) || name == MOVER))
            }
            "deployments" => name == "web" && !deletes,
            "jobs" => HOOKS.contains(&name) || name.starts_with(DRAWN),
            "applications" | "driftreports" => matches!(name, "struck" | "mate") && !deletes,
            "leases" => name == "plumb",
            "secrets" => (name.is_empty() && !deletes) || name.starts_with("plumb-tombstone-"),
            "events" => !deletes,
            _ => false,
        }
    };
    // The copies of deleted objects that may exist: only one too many is removed. A deletion that was cut off by a kill
    // may have removed nothing, and the event of a creation may be written after that of the deletion that it causes.
    let mut n_copies = 0_usize;
    for write in &writes {
        let object = write.object_ref.clone().unwrap_or_default();
        match (object.resource.as_str(), write.verb.as_str()) {
            ("secrets", "delete") => {
                ensure!(
                    n_copies >= MOST_COPIES,
                    "a copy was removed without need: {n_copies} exist; {write:?}"
                );
                if write.response_status.is_some_and(|status| status.code == 200) {
                    n_copies -= 1;
                }
            }
            ("secrets", _) => n_copies += 1,
            _ => {}
        }
        // What `--install` brings at each start, the same each time, and plumb's own witness.
        let is_install = write.verb == "patch"
            && match object.resource.as_str() {
                "customresourcedefinitions" | "namespaces" | "appprojects" => true,
                "mutatingwebhookconfigurations" => {
                    object.name == format!("plumb-witness-{}", stage.place.name())
                }
                _ => false,
            };
        // A question about plumb's own user, which stores nothing.
        let is_question = write.verb == "create" && object.resource == "selfsubjectreviews";
        ensure!(
            is_install
                || is_question
                || (object.namespace == stage.place.name() && is_ours(&write.verb, &object)),
            "a write outside the apps' sets: {write:?}"
        );
    }
    Ok(())
}

/// Everything that was pruned can be brought back.
pub(super) async fn tombstones(stage: &Stage, last: Round) -> Result<()> {
    let tombstones = stage.place.list("v1", "Secret", "plumb.dev/app=struck").await?;
    let kept: BTreeSet<&str> = tombstones
        .values()
        .filter_map(|secret| secret["metadata"]["annotations"]["plumb.dev/object"].as_str())
        .filter_map(|object| object.rsplit('/').next())
        .collect();
    let log = audit::read(&stage.place.cluster().audit_log(), |event| {
        event.verb == "delete"
            && event.object_ref.as_ref().is_some_and(|object| {
                object.resource == "configmaps" && object.namespace == stage.place.name()
            })
    })?;
    let deleted: BTreeSet<String> =
        log.into_iter().filter_map(|event| Some(event.object_ref?.name)).collect();
    ensure!(deleted.len() >= last.0.saturating_sub(1) * LEAVE.len(), "{deleted:?} of {} rounds", last.0);
    for name in &deleted {
        ensure!(kept.contains(name.as_str()), "{name} was deleted without a tombstone: {kept:?}");
    }
    Ok(())
}
