//! The `DriftReport` of an app.

use plumb_core::drift::Finding;
use plumb_core::object::{Fingerprint, Manifest};
use plumb_crd::{Application, DriftReport, UnhealthyObject};
use plumb_kube::{ApplyOptions, FieldValidation, OwnWrite};
use serde_json::json;
use tracing::debug;

use super::pauses::pauses;
use super::write::StatusDraft;
use crate::app_run::AppRun;
use crate::apps::previous_report::PreviousReport;
use crate::health::check::Unhealthy;
use crate::state::app_state::ReportState;
use plumb_crd::wire::whole_seconds;

/// A report names at most this many unhealthy objects.
const MOST_UNHEALTHY: usize = 100;

/// Writes the report, if it says something else than the last one.
pub(super) async fn write_report(run: &AppRun<'_>, draft: &StatusDraft<'_>, state: &mut ReportState) {
    let (app, compared) = (draft.inputs.app, draft.compared);
    let findings: Vec<&Finding> =
        compared.verdicts.values().flat_map(|verdict| verdict.findings.iter()).collect();
    let revision = compared.gathered.revisions.first().cloned().unwrap_or_default();
    let unhealthy = compared.health.unhealthy.iter().take(MOST_UNHEALTHY).map(to_wire);
    let unhealthy: Vec<UnhealthyObject> = unhealthy.collect();
    let pauses = pauses(run, draft.inputs, compared);
    let is_empty = findings.is_empty() && unhealthy.is_empty() && pauses.is_empty();
    let mut report = DriftReport::of(&app.id, &revision, whole_seconds(run.now), findings)
        .with_health(unhealthy)
        .with_pauses(pauses);
    let shown = run.engine.shown_text();
    report.texts().for_each(|text| shown.clean(text));
    let records = &run.engine.records;
    if state.digest.is_none() {
        // A report that an earlier process wrote is not written again.
        let found = records.report(&app.id, PreviousReport::take);
        state.digest = found.and_then(|found| found.read()).map(|written| digest(&written));
    }
    let digest = digest(&report);
    let is_needed = || !is_empty || records.report(&app.id, |report| report.exists());
    if state.digest == Some(digest) || (state.digest.is_none() && !is_needed()) {
        return;
    }
    let Some(write) = apply(&report, app) else { return };
    match run.engine.home.gate.write_own(&write).await {
        Ok(_) => {
            records.report(&app.id, PreviousReport::note_written);
            state.digest = Some(digest);
        }
        Err(error) => {
            debug!(%error, "cannot write the DriftReport");
            run.engine.retry_later(&app.id);
        }
    }
}

fn apply(report: &DriftReport, app: &plumb_core::app::App) -> Option<OwnWrite> {
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
fn digest(report: &DriftReport) -> Fingerprint {
    Fingerprint::of_value(&report.content())
}

fn to_wire(object: &Unhealthy) -> UnhealthyObject {
    UnhealthyObject {
        group: object.key.group.clone(),
        kind: object.key.kind.clone(),
        namespace: object.key.namespace_or_empty().to_owned(),
        name: object.key.name.clone(),
        status: object.status.map(|status| status.as_str().to_owned()).unwrap_or_default(),
        since: Some(whole_seconds(object.since)),
        stuck: object.is_stuck,
        message: object.message.clone(),
        causes: object.causes.clone(),
    }
}
