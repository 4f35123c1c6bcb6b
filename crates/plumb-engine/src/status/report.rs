//! The `DriftReport` of an app.

use plumb_core::app::App;
use plumb_core::drift::Finding;
use plumb_core::object::{Fingerprint, Manifest};
use plumb_crd::wire::whole_seconds;
use plumb_crd::{Application, DriftReport, UnhealthyObject};
use plumb_kube::{ApplyOptions, FieldValidation, OwnWrite};
use serde_json::json;
use tracing::debug;

use crate::compare::run::Compared;
use crate::health::check::Ill;
use crate::reconcile::run::Run;
use crate::state::app_state::Memory;

/// A report names at most this many objects that are not well.
const MOST_ILL: usize = 100;

impl Run<'_> {
    pub(super) async fn report(&self, app: &App, compared: &Compared, memory: &mut Memory) {
        let findings: Vec<&Finding> =
            compared.verdicts.values().flat_map(|verdict| verdict.findings.iter()).collect();
        let revision = compared.gathered.revisions.first().cloned().unwrap_or_default();
        let ill: Vec<UnhealthyObject> = compared.checked.ill.iter().take(MOST_ILL).map(ill_object).collect();
        let pauses = self.pauses(app, compared);
        let is_empty = findings.is_empty() && ill.is_empty() && pauses.is_empty();
        let report = DriftReport::of(&app.id, &revision, whole_seconds(self.now), findings)
            .with_health(ill)
            .with_pauses(pauses);
        if memory.report.is_none() {
            // What an earlier process wrote is not written again.
            memory.report = self.engine.reports.take(&app.id).map(|written| gist(&written));
        }
        let gist = gist(&report);
        if memory.report == Some(gist) {
            return;
        }
        if memory.report.is_none() && is_empty && !self.engine.reports.contains(&app.id) {
            return;
        }
        let mut object = report.to_json();
        object["metadata"] = json!({
            "name": app.id.name,
            "namespace": app.id.namespace,
            // The report goes when its app goes.
            "ownerReferences": [{"apiVersion": Application::API_VERSION, "kind": Application::KIND, "name": app.id.name, "uid": app.uid}],
        });
        let Ok(manifest) = Manifest::new(object) else { return };
        let options = ApplyOptions {
            field_manager: "plumb".to_owned(),
            force: true,
            field_validation: FieldValidation::Ignore,
            subresource: None,
        };
        match self.engine.home.gate.write_own(&OwnWrite::Apply { manifest, options }).await {
            Ok(_) => {
                self.engine.reports.insert(&app.id);
                memory.report = Some(gist);
            }
            Err(error) => {
                debug!(app = %app.id, %error, "report not written");
                self.engine.retry_later(&app.id);
            }
        }
    }
}

/// What a report says, whenever and for whichever revision it was made. It is written only when this changes: a
/// commit that changes nothing about an app's findings costs no request.
fn gist(report: &DriftReport) -> Fingerprint {
    Fingerprint::of_value(&report.content())
}

/// An object that is not well, as the report has it.
fn ill_object(ill: &Ill) -> UnhealthyObject {
    UnhealthyObject {
        group: ill.key.group.clone(),
        kind: ill.key.kind.clone(),
        namespace: ill.key.namespace_or_empty().to_owned(),
        name: ill.key.name.clone(),
        status: ill.status.map(|status| status.as_str().to_owned()).unwrap_or_default(),
        since: Some(whole_seconds(ill.since)),
        stuck: ill.is_stuck,
        message: ill.message.clone(),
        causes: ill.causes.clone(),
    }
}
