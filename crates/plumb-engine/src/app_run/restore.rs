//! What an earlier process knew of an app, as far as the Application's status and the `DriftReport` tell.

use std::collections::BTreeMap;
use std::sync::Arc;

use plumb_core::drift::{DriftClass, Finding};
use plumb_core::object::ObjectKey;
use plumb_core::sync::ResultCode;
use plumb_core::writes::{AttemptRecord, AttemptResult, FinishedJob, is_job};

use super::AppRun;
use crate::apps::previous_report::{FoundReport, PreviousReport};
use crate::compare::state::JudgeState;
use crate::sources::gathered::Gathered;

/// Restores what the last operation applied, if it synced what Git asks now. This needs no rendering.
pub(super) fn last_operation(run: &AppRun<'_>, gathered: &Gathered, judge: &mut JudgeState) {
    if !judge.writes.is_empty() {
        return;
    }
    let Ok(application) = &run.snapshot.wire else { return };
    let state = application.status.operation_state.as_ref();
    let Some(result) = state.and_then(|state| state.sync_result.as_deref()) else { return };
    if result.all_revisions() != gathered.revisions {
        return;
    }
    let results: BTreeMap<ObjectKey, Option<ResultCode>> =
        result.resources.iter().map(|entry| (entry.key(), ResultCode::from_name(&entry.status))).collect();
    for (key, desired) in gathered.set.fingerprints() {
        let result = match results.get(key).copied().flatten() {
            Some(ResultCode::Synced) => AttemptResult::Applied,
            // The API server says again why it failed.
            Some(ResultCode::SyncFailed) => AttemptResult::Failed,
            Some(_) | None => continue,
        };
        judge.writes.restore(key, || AttemptRecord {
            result,
            ..AttemptRecord::restored(desired, gathered.rendering)
        });
    }
}

/// Restores the findings of the last report: they say since when each difference exists. Restores which objects Git
/// exempted, too. Done once after a start.
pub(super) fn findings(run: &AppRun<'_>, judge: &mut JudgeState) {
    if std::mem::replace(&mut judge.restored.findings, true) {
        return;
    }
    let mut earlier: BTreeMap<ObjectKey, Vec<Finding>> = BTreeMap::new();
    let found = run.engine.records.report(run.id(), PreviousReport::found);
    judge.exemptions = found.as_ref().map(FoundReport::exemptions).unwrap_or_default();
    for finding in found.map(|found| found.findings()).unwrap_or_default() {
        earlier.entry(finding.key.clone()).or_default().push(finding);
    }
    judge.findings = earlier.into_iter().map(|(key, found)| (key, found.into())).collect();
    reported_jobs(judge);
}

/// Restores the Jobs that an earlier process saw finish and disappear, as its report says. A run was made from what was
/// applied last; where that is not known, a Job that is gone is missing.
pub(crate) fn reported_jobs(judge: &mut JudgeState) {
    let finished: Vec<(ObjectKey, FinishedJob)> = judge
        .writes
        .attempts()
        .filter(|(_, attempt)| matches!(attempt.result, AttemptResult::Applied))
        .filter_map(|(key, attempt)| {
            let reported = reported_run(&judge.findings, key)?;
            let job = FinishedJob { at: reported.since, succeeded: true, desired: Some(attempt.desired) };
            Some((key.clone(), job))
        })
        .collect();
    for (key, job) in finished {
        judge.writes.restore_finished(&key, job);
    }
}

/// The finding that says that a Job ran to its end, if there is one.
fn reported_run<'f>(
    findings: &'f BTreeMap<ObjectKey, Arc<[Finding]>>,
    key: &ObjectKey,
) -> Option<&'f Finding> {
    let found = findings.get(key).filter(|_| is_job(key))?;
    found.iter().find(|finding| finding.class == DriftClass::HookResidue)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use plumb_core::drift::{Fix, FixKind};
    use plumb_core::object::Fingerprint;
    use plumb_core::writes::Rendering;
    use serde_json::json;

    use super::*;

    fn run_of(kind: &str, class: DriftClass, result: Option<AttemptResult>) -> Option<FinishedJob> {
        let key = ObjectKey::new("batch", kind, Some("shop".to_owned()), "seed");
        let finding = Finding {
            key: key.clone(),
            class,
            rule: "finished Job".into(),
            fields: Vec::new(),
            counts: false,
            actor: None,
            since: Some(Timestamp::UNIX_EPOCH),
            evidence: Vec::new(),
            fix: Fix { kind: FixKind::None, text: String::new(), patch: None },
        };
        let mut judge = JudgeState::default();
        judge.findings.insert(key.clone(), Arc::new([finding]));
        if let Some(result) = result {
            let desired = Fingerprint::of_value(&json!({"kind": kind}));
            let rendering = Rendering { commit: 1, origin: None };
            judge.writes.record(&key, desired, rendering, result);
        }
        reported_jobs(&mut judge);
        judge.writes.finished(&key).cloned()
    }

    #[test]
    fn a_reported_job_has_run_if_it_is_known_what_was_applied() {
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
}
