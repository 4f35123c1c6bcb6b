//! The `DriftReport` of an app.

use plumb_core::app::App;
use plumb_core::desired::Origin;
use plumb_core::drift::Finding;
use plumb_core::object::{Fingerprint, Manifest};
use plumb_core::project::PlainSecrets;
use plumb_core::secrets::plain_secrets;
use plumb_core::status::{ReportDigest, ReportDue, WrittenReport, report_due};
use plumb_core::sync::OperationPhase;
use plumb_crd::{Application, DriftReport, RecentEvent, UnhealthyObject};
use plumb_kube::{ApiError, ApplyOptions, FieldValidation, OwnWrite, PackedJson};
use serde_json::{Value, json};
use tracing::warn;

use super::patch::log_failure;
use super::pauses::pauses;
use super::warnings::counts;
use super::write::StatusDraft;
use crate::app_run::AppRun;
use crate::apps::previous_report::PreviousReport;
use crate::health::check::Unhealthy;
use crate::operation::active::ActiveOperation;
use crate::queue::{Trigger, TriggerReason};
use crate::state::app_state::ReportState;
use crate::state::retries::Subject;
use plumb_crd::wire::whole_seconds;

/// A report names at most this many unhealthy objects.
const MOST_UNHEALTHY: usize = 100;
/// At most this many syncs wait for the next report.
const MOST_ENDED: usize = 20;

/// Writes the report, if it says something else than the last one. Long because each step reads what the one before made.
pub(super) async fn write_report(run: &AppRun<'_>, draft: &StatusDraft<'_>, state: &mut ReportState) {
    let (app, compared) = (draft.inputs.app, draft.compared);
    let findings: Vec<&Finding> =
        compared.verdicts.values().flat_map(|verdict| verdict.findings.iter()).collect();
    let revision = compared.gathered.revisions.first().cloned().unwrap_or_default();
    let unhealthy = compared.health.unhealthy.iter().take(MOST_UNHEALTHY).map(Unhealthy::to_wire);
    let unhealthy: Vec<UnhealthyObject> = unhealthy.collect();
    let pauses = pauses(run, draft.inputs, compared);
    let policy = draft.inputs.context.project.plain_secrets();
    let plain_secrets = match policy {
        PlainSecrets::Allow => Vec::new(),
        PlainSecrets::Warn | PlainSecrets::Refuse => {
            let counts = |origin: Option<&Origin>| counts(policy, compared, origin);
            plain_secrets(compared.gathered.desired.get(), counts)
        }
    };
    let is_empty = findings.is_empty()
        && unhealthy.is_empty()
        && pauses.is_empty()
        && plain_secrets.is_empty()
        && compared.exemptions.objects().next().is_none();
    let mut report = DriftReport::of(&app.id, &revision, whole_seconds(run.now), findings)
        .with_health(unhealthy)
        .with_pauses(pauses)
        .with_plain_secrets(&plain_secrets)
        .with_exemptions(&compared.exemptions);
    let shown = run.engine.shown_text();
    report.texts().for_each(|text| shown.clean(text));
    let records = &run.engine.records;
    if state.written.is_none() {
        // A report that an earlier process wrote is not written again.
        let found = records.report(&app.id, PreviousReport::take).and_then(|found| found.read());
        if let Some(found) = &found {
            state.remembered = PackedJson::new(&found.remembered());
        }
        state.written = found.map(|found| WrittenReport { digest: digest(&found), at: None });
    }
    if let Some(ended) = draft.ended.and_then(|ended| ended_sync(ended, run)) {
        state.ended_syncs.push(ended);
        let surplus = state.ended_syncs.len().saturating_sub(MOST_ENDED);
        state.ended_syncs.drain(..surplus);
    }
    let digest = digest(&report);
    let is_needed = || !is_empty || records.report(&app.id, |report| report.exists());
    // pure: now, later or never
    let due = match &state.written {
        Some(written) => report_due(written, &digest, run.now),
        None if is_needed() => ReportDue::Now,
        None => ReportDue::Never,
    };
    match due {
        ReportDue::Never => {}
        ReportDue::At(at) => {
            if state.next_report.is_none_or(|next| next <= run.now) {
                state.next_report = Some(at);
                run.run_at(Trigger::live(TriggerReason::Report), at);
            }
        }
        ReportDue::Now => {
            let before = state.remembered.read::<Value>().and_then(|said| DriftReport::from_json(&said).ok());
            let ended = state.ended_syncs.clone();
            let report = report.with_recent(before.as_ref(), ended, whole_seconds(run.now));
            if send(run, app, &report).await {
                records.report(&app.id, PreviousReport::note_written);
                state.remembered = PackedJson::new(&report.remembered());
                state.ended_syncs = Vec::new();
                state.written = Some(WrittenReport { digest, at: Some(run.now) });
            }
        }
    }
}

/// A sync that the history of the app will not have: one of some objects, such as a heal, or one that failed.
fn ended_sync(ended: &ActiveOperation, run: &AppRun<'_>) -> Option<RecentEvent> {
    let has_failed = ended.record.phase != OperationPhase::Succeeded;
    if ended.asked.dry_run || (ended.is_full() && !has_failed) {
        return None;
    }
    let by = &ended.wire.initiated_by;
    let what = match (by.automated, has_failed) {
        (true, false) => "healed",
        (false, false) => "synced some objects",
        (_, true) => "the sync failed",
    };
    let mut text = format!("{what}: {}", ended.record.message);
    let mut actor = if by.automated { "plumb".to_owned() } else { by.username.clone() };
    let shown = run.engine.shown_text();
    shown.clean(&mut text);
    shown.clean(&mut actor);
    let at = whole_seconds(ended.record.finished_at.unwrap_or(run.now));
    Some(RecentEvent::sync(at, has_failed, &actor, &text))
}

/// Writes the report. Where it fails, one more run is requested: for when its kind is served, or after a while.
async fn send(run: &AppRun<'_>, app: &App, report: &DriftReport) -> bool {
    let Some(write) = apply(report, app) else { return false };
    let engine = run.engine;
    match engine.home.gate.write_own(&write).await {
        Ok(_) => {
            engine.retries.over(&app.id, Subject::Report);
            true
        }
        Err(error) if matches!(error.api(), Some(ApiError::UnknownKind { .. })) => {
            if engine.without_report.add(&app.id) {
                warn!(
                    "the cluster does not serve the kind DriftReport: no reports are written; \
                     `plumb run --install` installs its definition"
                );
            }
            false
        }
        Err(error) => {
            if let Some(times) = engine.retry_later(&app.id, Subject::Report) {
                log_failure(&app.id, &error, times, "the DriftReport");
            }
            false
        }
    }
}

fn apply(report: &DriftReport, app: &App) -> Option<OwnWrite> {
    let mut object = report.to_json();
    object["metadata"] = json!({
        "name": app.id.name,
        "namespace": app.id.namespace,
        // The garbage collector deletes the report with its app.
        "ownerReferences": [{
            "apiVersion": Application::API_VERSION, "kind": Application::KIND,
            "name": app.id.name, "uid": app.uid,
        }],
    });
    let options = ApplyOptions {
        field_manager: "plumb".to_owned(),
        force: true,
        field_validation: FieldValidation::Ignore,
        subresource: None,
    };
    Some(OwnWrite::Apply { manifest: Manifest::new(object).ok()?, options })
}

/// What a report says, without its time and revision. The report is written only when this changes: a commit that
/// changes none of an app's findings costs no request.
fn digest(report: &DriftReport) -> ReportDigest {
    ReportDigest {
        whole: Fingerprint::of_value(&report.content()),
        findings: Fingerprint::of_value(&report.findings_content()),
        counting: Fingerprint::of_value(&report.counting_content()),
    }
}
