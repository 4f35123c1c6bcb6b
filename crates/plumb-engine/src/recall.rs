//! After a start nothing is remembered of what was applied. The cluster tells it: the last operation's results,
//! and the last successful sync, whose commit can be rendered again. Which Jobs have run and gone, the last report
//! tells, and for a while the cluster's events.
//!
//! What was applied is what tells an edit from a commit that was not synced yet. An object that Git asks for now
//! exactly as at the last full sync was what Git asks then: whatever differs since was changed in the cluster.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use plumb_core::app::App;
use plumb_core::drift::{DriftClass, Finding, VerdictStatus};
use plumb_core::object::{GroupVersionKind, Manifest, ObjectKey};
use plumb_crd::Application;
use plumb_crd::application as wire;
use plumb_kube::{ClusterClient, Selection};
use tracing::debug;

use crate::compare::Compared;
use crate::memory::{AttemptRecord, AttemptResult, Fingerprint, Finished, Memory};
use crate::project::Ground;
use crate::reconcile::Run;
use crate::sources::Gathered;

impl Run<'_> {
    /// Recalls what the last operation applied, if it synced what Git asks now. This needs no rendering.
    pub(crate) fn recall_last_operation(&self, memory: &mut Memory, gathered: &Gathered) {
        if !memory.attempts.is_empty() {
            return;
        }
        let Ok(application) = &self.known.wire else { return };
        let state = application.status.operation_state.as_ref();
        let Some(result) = state.and_then(|state| state.sync_result.as_deref()) else { return };
        if revisions(&result.revisions, &result.revision) != gathered.revisions {
            return;
        }
        for object in gathered.desired.get().objects.values() {
            let synced = result.resources.iter().any(|entry| {
                entry.status == "Synced"
                    && (&entry.group, &entry.kind, &entry.name)
                        == (&object.key.group, &object.key.kind, &object.key.name)
                    && entry.namespace == object.key.namespace_or_empty()
            });
            if synced {
                memory.attempts.insert(object.key.clone(), applied(Fingerprint::of(&object.manifest)));
            }
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
        let revisions = revisions(&last.revisions, &last.revision);
        let then = match self.engine.sources.gather_at(application, app, ground, &revisions).await {
            Ok(then) => then,
            Err(error) => {
                debug!(app = %app.id, error, "the last synced commit cannot be rendered again");
                return false;
            }
        };
        let mut recalled = false;
        for object in then.desired.get().objects.values() {
            let attempts = &mut memory.attempts;
            attempts.entry(object.key.clone()).or_insert_with(|| {
                recalled = true;
                applied(Fingerprint::of(&object.manifest))
            });
        }
        recall_runs(memory);
        recalled
    }

    /// Recalls the Jobs that ran to their end and were collected while nobody looked: the cluster's events tell.
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
            if let Some(at) = completion(&ground.cluster.client, key).await.filter(|at| *at >= since) {
                let run = Finished { at, succeeded: true, desired: Some(fingerprint) };
                memory.finished.insert(key.clone(), run);
                recalled = true;
            }
        }
        recalled
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
        let Some(at) = reported_run(&memory.findings, key) else { continue };
        if matches!(attempt.result, AttemptResult::Applied) {
            let run = Finished { at, succeeded: true, desired: Some(attempt.desired) };
            memory.finished.entry(key.clone()).or_insert(run);
        }
    }
}

/// When a Job of Git's ran to its end, if findings say that it did.
fn reported_run(findings: &BTreeMap<ObjectKey, Arc<[Finding]>>, key: &ObjectKey) -> Option<Timestamp> {
    let found = findings.get(key).filter(|_| is_job(key))?;
    found.iter().find(|finding| finding.class == DriftClass::HookResidue)?.since
}

fn applied(desired: Fingerprint) -> AttemptRecord {
    // Another process rendered it, perhaps for another version of the cluster.
    AttemptRecord { desired, origin: None, result: AttemptResult::Applied }
}

/// One or many, as a list.
fn revisions(many: &[String], one: &str) -> Vec<String> {
    if many.is_empty() { vec![one.to_owned()] } else { many.to_vec() }
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
            memory.attempts.insert(key.clone(), AttemptRecord { desired, origin: None, result });
        }
        recall_runs(&mut memory);
        memory.finished.remove(&key)
    }

    #[test]
    fn a_job_that_a_report_calls_collected_has_run_if_it_is_known_what_was_applied() {
        let residue = DriftClass::HookResidue;
        let run = run_of("Job", residue, Some(AttemptResult::Applied)).unwrap();
        assert!(run.succeeded && run.at == Timestamp::UNIX_EPOCH);
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
}
