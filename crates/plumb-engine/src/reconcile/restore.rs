//! After a start nothing is remembered of what was applied. The cluster tells it: the last operation's results,
//! and the last successful sync, whose commit can be rendered again. Which Jobs have run and gone, the last report
//! tells, and for a while the cluster's events; after that, that they were there when an earlier process last looked.
//!
//! What was applied is what tells an edit from a commit that was not synced yet. An object that Git asks for now
//! exactly as at the last full sync was what Git asks then: whatever differs since was changed in the cluster.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use plumb_core::app::App;
use plumb_core::drift::{DriftClass, Finding, VerdictStatus};
use plumb_core::object::{Fingerprint, GroupVersionKind, Manifest, ObjectKey};
use plumb_crd::Application;
use plumb_crd::application as wire;
use plumb_kube::{ClusterClient, Selection};
use serde_json::Value;
use tracing::debug;

use crate::apps::context::Ground;
use crate::compare::run::Compared;
use crate::reconcile::run::Run;
use crate::sources::gather::Gathered;
use crate::state::app_state::{AttemptRecord, AttemptResult, Before, Finished, Memory};

/// How long an API server keeps events, unless it is told otherwise.
const EVENTS_LAST: SignedDuration = SignedDuration::from_hours(1);

impl Run<'_> {
    /// Recalls what the last operation applied, if it synced what Git asks now. This needs no rendering.
    pub(crate) fn recall_last_operation(&self, memory: &mut Memory, gathered: &Gathered) {
        if !memory.attempts.is_empty() {
            return;
        }
        let Ok(application) = &self.known.wire else { return };
        let state = application.status.operation_state.as_ref();
        let Some(result) = state.and_then(|state| state.sync_result.as_deref()) else { return };
        if result.all_revisions() != gathered.revisions {
            return;
        }
        let commit = gathered.may_vary.then(|| gathered.commit());
        for object in gathered.desired.get().objects.values() {
            let entry = result.resources.iter().find(|entry| {
                (&entry.group, &entry.kind, &entry.name)
                    == (&object.key.group, &object.key.kind, &object.key.name)
                    && entry.namespace == object.key.namespace_or_empty()
            });
            let result = match entry.map(|entry| entry.status.as_str()) {
                Some("Synced") => AttemptResult::Applied,
                // Why not, the server says again.
                Some("SyncFailed") => AttemptResult::Failed,
                Some(_) | None => continue,
            };
            let record = AttemptRecord { result, ..applied(Fingerprint::of(&object.manifest), commit) };
            memory.attempts.insert(object.key.clone(), record);
        }
    }

    /// Recalls what the last successful full sync applied, where it matters: an object differs, or a Job that ran
    /// is gone, and it is not known what was applied. Says whether anything was recalled. Tried once after a start.
    pub(crate) async fn recall_last_sync(
        &self,
        application: &Application,
        app: &App,
        ground: &Ground,
        compared: &Compared,
        memory: &mut Memory,
    ) -> bool {
        let is_open = |key: &ObjectKey| !memory.attempts.contains_key(key);
        let may_be_explained = |key: &ObjectKey| compared.live.objects.contains_key(key) || is_job(key);
        let matters = compared.verdicts.values().any(|verdict| {
            verdict.status == VerdictStatus::OutOfSync
                && is_open(&verdict.key)
                && may_be_explained(&verdict.key)
        });
        if memory.recalled.last_sync || !matters {
            return false;
        }
        memory.recalled.last_sync = true;
        let Some(last) = application.status.history.last() else { return false };
        if !same_sources(last, &application.spec) {
            return false;
        }
        let revisions = last.all_revisions().to_vec();
        let then = match self.engine.sources.gather_at(application, app, ground, &revisions).await {
            Ok(then) => then,
            Err(error) => {
                debug!(app = %app.id, error, "the last synced commit cannot be rendered again");
                return false;
            }
        };
        memory.before.get_or_insert_with(|| Before::new(then.kept(), false));
        let commit = then.may_vary.then(|| then.commit());
        let mut recalled = false;
        for object in then.desired.get().objects.values() {
            let attempts = &mut memory.attempts;
            attempts.entry(object.key.clone()).or_insert_with(|| {
                recalled = true;
                applied(Fingerprint::of(&object.manifest), commit)
            });
        }
        recall_runs(memory);
        recalled
    }

    /// Recalls the Jobs that ran to their end and were collected while nobody looked: the cluster's events tell, and
    /// where they are gone too, the last status.
    /// Says whether there are any. Asked once after a start.
    pub(crate) async fn recall_unseen_runs(
        &self,
        application: &Application,
        ground: &Ground,
        compared: &Compared,
        memory: &mut Memory,
    ) -> bool {
        if std::mem::replace(&mut memory.recalled.unseen_runs, true) {
            return false;
        }
        let Some(last) = application.status.history.last() else { return false };
        let since = last.deploy_started_at.unwrap_or(last.deployed_at);
        let away = self.engine.away_since.map(|since| self.now.duration_since(since));
        let mut recalled = false;
        for verdict in compared.verdicts.values() {
            let (key, desired) = (&verdict.key, compared.gathered.desired.get().objects.get(&verdict.key));
            let Some(desired) = desired.filter(|_| verdict.status == VerdictStatus::OutOfSync) else {
                continue;
            };
            let asks_to_be_collected =
                desired.manifest.value().pointer("/spec/ttlSecondsAfterFinished").is_some();
            let fingerprint = Fingerprint::of(&desired.manifest);
            let was_applied = memory.attempts.get(key).is_some_and(|attempt| {
                matches!(attempt.result, AttemptResult::Applied) && attempt.desired == fingerprint
            });
            let is_gone = is_job(key) && !compared.live.objects.contains_key(key);
            if !(is_gone && asks_to_be_collected && was_applied) || memory.finished.contains_key(key) {
                continue;
            }
            let seen = completion(&ground.cluster.client, key).await.filter(|at| *at >= since);
            let of_job = |entry: &&wire::ResourceStatus| {
                (&entry.group, &entry.kind, &entry.name) == (&key.group, &key.kind, &key.name)
                    && entry.namespace == key.namespace_or_empty()
            };
            let last_word = application.status.resources.iter().find(of_job);
            if seen.is_some() || ended_unseen(last_word, &desired.manifest, away) {
                let run = Finished { at: seen, succeeded: true, desired: Some(fingerprint) };
                memory.finished.insert(key.clone(), run);
                recalled = true;
            }
        }
        recalled
    }
}

/// Did a Job that is gone end while nobody was there, and so long ago that no event tells of it? `last_word` is what an
/// earlier process said of it, in the Application's status: it has to be that the Job was there. If it said that the
/// Job had ended well, that is that. Otherwise the Job has to have had the time: one that asks to be collected a day
/// after its end and is gone after two hours was deleted by somebody. What remains is the usual end of a Job, and to run
/// it again because *plumb* was away would be plumb's mistake.
fn ended_unseen(
    last_word: Option<&wire::ResourceStatus>,
    desired: &Manifest,
    away: Option<SignedDuration>,
) -> bool {
    let Some(last_word) = last_word.filter(|entry| entry.status == "Synced") else { return false };
    let field = |pointer: &str| desired.value().pointer(pointer);
    match last_word.health.as_ref().map(|health| health.status.as_str()) {
        Some("Healthy") => true,
        Some("Progressing") | None => {
            let ttl = field("/spec/ttlSecondsAfterFinished").and_then(Value::as_i64);
            let is_held = field("/spec/suspend").and_then(Value::as_bool) == Some(true);
            let had_time = |ttl| away > Some(EVENTS_LAST.max(SignedDuration::from_secs(ttl)));
            !is_held && ttl.is_some_and(had_time)
        }
        Some(_) => false,
    }
}

/// When a Job of this name last ran to its end, as far as events tell.
async fn completion(client: &ClusterClient, key: &ObjectKey) -> Option<Timestamp> {
    let selection = Selection {
        namespace: key.namespace.clone(),
        labels: None,
        fields: Some(format!("involvedObject.kind=Job,involvedObject.name={},reason=Completed", key.name)),
    };
    let events = match client.list(&GroupVersionKind::from_api_version("v1", "Event"), &selection).await {
        Ok(events) => events,
        Err(error) => {
            debug!(object = %key, %error, "events not read");
            return None;
        }
    };
    let time = |event: &Manifest| {
        let field = |name: &str| event.value().get(name)?.as_str()?.parse::<Timestamp>().ok();
        field("lastTimestamp").or_else(|| field("eventTime"))
    };
    events.iter().filter_map(time).max()
}

fn is_job(key: &ObjectKey) -> bool {
    key.kind == "Job" && key.group == "batch"
}

/// Recalls the Jobs that an earlier process saw run to their end and go, as its report says. What a run was made
/// from is what was applied last; where that is not known, a Job that is gone is missing.
pub(crate) fn recall_runs(memory: &mut Memory) {
    for (key, attempt) in &memory.attempts {
        let Some(run) = reported_run(&memory.findings, key) else { continue };
        if matches!(attempt.result, AttemptResult::Applied) {
            let run = Finished { at: run.since, succeeded: true, desired: Some(attempt.desired) };
            memory.finished.entry(key.clone()).or_insert(run);
        }
    }
}

/// What says that a Job of Git's ran to its end, if anything does.
fn reported_run<'f>(
    findings: &'f BTreeMap<ObjectKey, Arc<[Finding]>>,
    key: &ObjectKey,
) -> Option<&'f Finding> {
    let found = findings.get(key).filter(|_| is_job(key))?;
    found.iter().find(|finding| finding.class == DriftClass::HookResidue)
}

fn applied(desired: Fingerprint, commit: Option<u64>) -> AttemptRecord {
    // Another process rendered it, perhaps for another version of the cluster.
    AttemptRecord { desired, asked: desired, commit, origin: None, result: AttemptResult::Applied }
}

/// Did that sync render what the spec names now, whatever the commit?
fn same_sources(last: &wire::RevisionHistory, spec: &wire::ApplicationSpec) -> bool {
    let of = |many: &[wire::ApplicationSource], one: Option<&wire::ApplicationSource>| {
        let sources: Vec<wire::ApplicationSource> =
            if many.is_empty() { one.into_iter().cloned().collect() } else { many.to_vec() };
        sources
            .into_iter()
            .map(|source| wire::ApplicationSource { target_revision: String::new(), ..source }.normalized())
            .collect::<Vec<_>>()
    };
    let now = wire::ComparedTo::of(spec);
    of(&last.sources, last.source.as_deref()) == of(&now.sources, now.source.as_deref())
}

#[cfg(test)]
mod tests {
    use plumb_core::drift::{Fix, FixKind};
    use serde_json::json;

    use super::*;

    fn run_of(kind: &str, class: DriftClass, result: Option<AttemptResult>) -> Option<Finished> {
        let key = ObjectKey::new("batch", kind, Some("shop".to_owned()), "seed");
        let finding = Finding {
            key: key.clone(),
            class,
            rule: "".into(),
            fields: Vec::new(),
            counts: false,
            actor: None,
            since: Some(Timestamp::UNIX_EPOCH),
            evidence: Vec::new(),
            fix: Fix { kind: FixKind::None, text: String::new(), patch: None },
        };
        let mut memory = Memory::default();
        memory.findings.insert(key.clone(), Arc::new([finding]));
        if let Some(result) = result {
            let desired = Fingerprint::of_value(&json!({"kind": kind}));
            memory.attempts.insert(key.clone(), AttemptRecord { result, ..applied(desired, None) });
        }
        recall_runs(&mut memory);
        memory.finished.remove(&key)
    }

    #[test]
    fn a_job_that_a_report_calls_collected_has_run_if_it_is_known_what_was_applied() {
        let residue = DriftClass::HookResidue;
        let run = run_of("Job", residue, Some(AttemptResult::Applied)).unwrap();
        assert!(run.succeeded && run.at == Some(Timestamp::UNIX_EPOCH));
        assert_eq!(run.desired, Some(Fingerprint::of_value(&json!({"kind": "Job"}))));
        for (kind, class, result) in [
            ("Job", residue, None),
            ("Job", residue, Some(AttemptResult::Failed)),
            ("Job", DriftClass::Behind, Some(AttemptResult::Applied)),
            ("CronJob", residue, Some(AttemptResult::Applied)),
        ] {
            assert!(run_of(kind, class, result.clone()).is_none(), "{kind} {class:?} {result:?}");
        }
    }

    #[test]
    fn a_job_that_ended_unseen_was_there_and_had_the_time() {
        let hours = |hours| Some(SignedDuration::from_hours(hours));
        for (ttl, status, health, away, expected) in [
            (60, "Synced", None, hours(2), true),
            (60, "Synced", Some("Progressing"), hours(2), true),
            (60, "Synced", Some("Healthy"), None, true),
            // Events would tell.
            (60, "Synced", None, Some(SignedDuration::from_mins(50)), false),
            // It would still be there.
            (86_400, "Synced", None, hours(2), false),
            (86_400, "Synced", None, hours(25), true),
            // It was missing already, had failed, or had not begun.
            (60, "OutOfSync", None, hours(2), false),
            (60, "Synced", Some("Degraded"), hours(2), false),
            (60, "Synced", Some("Suspended"), hours(2), false),
            // Nobody knows since when nobody looks.
            (60, "Synced", None, None, false),
        ] {
            let said = health.map(|status: &str| wire::HealthStatus {
                status: status.to_owned(),
                ..wire::HealthStatus::default()
            });
            let last_word = wire::ResourceStatus {
                status: status.to_owned(),
                health: said,
                ..wire::ResourceStatus::default()
            };
            let job = |suspend: bool| {
                let spec = json!({"ttlSecondsAfterFinished": ttl, "suspend": suspend});
                Manifest::new(json!({"apiVersion": "batch/v1", "kind": "Job", "spec": spec})).unwrap()
            };
            let case = format!("{ttl} {status} {health:?} {away:?}");
            assert_eq!(ended_unseen(Some(&last_word), &job(false), away), expected, "{case}");
            assert!(!ended_unseen(None, &job(false), away), "{case}");
            if health.is_none() {
                assert!(!ended_unseen(Some(&last_word), &job(true), away), "held: {case}");
            }
        }
    }
}
