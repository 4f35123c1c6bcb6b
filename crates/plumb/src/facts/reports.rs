//! What the engine's reports and the status of Applications say.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use plumb_core::app::AppId;
use plumb_core::doctor::{AppFacts, PauseFact, StatusOf, UnhealthyFact};
use plumb_core::object::{Manifest, ObjectKey};
use plumb_crd::application::ResourceStatus;
use plumb_crd::drift_report::{DriftFinding, PlainSecretObject};
use plumb_crd::{Application, DriftReport};
use plumb_kube::{ClusterClient, Selection};

use crate::context::{Context, list_failed};
use crate::error::CommandError;
use crate::kinds;
use crate::select::namespaces::list_in;
use crate::view::columns::ListColumns;

/// A status of Argo CD does not say whether an object is stuck. After this time, one that is `Progressing` is.
const STUCK_AFTER: SignedDuration = SignedDuration::from_mins(30);

fn of_namespace(namespace: Option<&str>) -> Selection {
    Selection { namespace: namespace.map(str::to_owned), ..Selection::default() }
}

/// All reports.
pub(super) async fn list(
    context: &Context,
    client: &ClusterClient,
    namespace: Option<&str>,
) -> Result<BTreeMap<AppId, DriftReport>, CommandError> {
    let list = async |namespace: Option<&str>| {
        let found = client.list(&kinds::drift_report(), &of_namespace(namespace)).await;
        match found {
            // Without plumb's kinds, no engine of plumb runs here. A user who may not read reports judges here.
            Err(error) if error.is_not_found() || error.code() == Some(403) => Ok(Vec::new()),
            found => found.map_err(|error| list_failed(&kinds::drift_report(), error)),
        }
    };
    let reports = list_in(context, client, namespace, list).await?;
    let reports = reports.iter().filter_map(|report| DriftReport::from_json(report.value()).ok());
    Ok(reports.map(|report| (id(&report), report)).collect())
}

/// All Applications, with the fields that lists need.
pub(super) async fn columns(
    context: &Context,
    client: &ClusterClient,
    namespace: Option<&str>,
) -> Result<Vec<Manifest>, CommandError> {
    let list = async |namespace: Option<&str>| {
        let found = ListColumns::application().list(client, &of_namespace(namespace)).await;
        found.map_err(|error| list_failed(&kinds::application(), error))
    };
    list_in(context, client, namespace, list).await
}

/// The Applications that can be read, by namespace and name.
pub(super) fn read(context: &Context, found: &[Manifest]) -> Vec<Application> {
    let mut applications = Vec::with_capacity(found.len());
    for object in found {
        match Application::from_json(object.value()) {
            Ok(application) => applications.push(application),
            Err(error) => {
                let name = object.name().unwrap_or_default();
                context.out.note(&format!("warning: cannot parse application {name}: {error}"));
            }
        }
    }
    applications.sort_by_cached_key(Application::id);
    applications
}

fn id(report: &DriftReport) -> AppId {
    AppId { namespace: report.metadata.namespace.clone(), name: report.metadata.name.clone() }
}

/// A report lists a limited number of findings, and counts all.
pub(super) fn note_omitted(context: &Context, report: &DriftReport) {
    let n_findings = usize::try_from(report.summary.counted + report.summary.explained).unwrap_or_default();
    let n_listed = report.findings.len();
    if n_findings > n_listed {
        let app = id(report);
        context.out.note(&format!("note: the report of {app} lists {n_listed} of {n_findings} differences"));
    }
}

pub(super) fn is_unhealthy(status: &str) -> bool {
    !matches!(status, "" | "Healthy" | "Suspended")
}

/// What a report says about an app.
pub(super) fn judged(application: &Application, report: &DriftReport) -> AppFacts {
    let unhealthy = report.health.iter().map(|object| UnhealthyFact {
        key: object.key(),
        status: object.status.clone(),
        since: object.since,
        is_stuck: object.stuck,
        // The first cause is the object itself.
        causes: match object.causes.as_slice() {
            [] => vec![object.key().to_string(), object.message.clone()],
            causes => causes.to_vec(),
        },
    });
    let pauses = report.pauses.iter().map(|pause| PauseFact {
        key: pause.key(),
        until: pause.until,
        reason: pause.reason.clone(),
    });
    AppFacts {
        app: application.id(),
        project: application.project().to_owned(),
        is_judged: true,
        problem: None,
        status_of: StatusOf::Plumb,
        findings: report.findings.iter().filter_map(DriftFinding::finding).collect(),
        unhealthy: unhealthy.collect(),
        pauses: pauses.collect(),
        red: red(application),
        plain_secrets: report.plain_secrets.iter().map(PlainSecretObject::key).collect(),
    }
}

/// The objects that the status of an app shows as `OutOfSync`.
pub(super) fn red(application: &Application) -> BTreeSet<ObjectKey> {
    let resources = application.status.resources.iter();
    resources.filter(|resource| resource.status == "OutOfSync").map(ResourceStatus::key).collect()
}

/// What the status of an app says that plumb did not judge.
pub(crate) fn from_status(application: &Application, now: Timestamp) -> AppFacts {
    let status = &application.status;
    let unhealthy = status.resources.iter().filter_map(|resource| {
        let health = resource.health.as_ref().filter(|health| is_unhealthy(&health.status))?;
        let since = health.last_transition_time.or(status.health.last_transition_time);
        let is_old = since.is_some_and(|since| now.duration_since(since) >= STUCK_AFTER);
        let cause = if health.message.is_empty() { &health.status } else { &health.message };
        Some(UnhealthyFact {
            key: resource.key(),
            status: health.status.clone(),
            since,
            is_stuck: health.status == "Progressing" && is_old,
            // The first cause is the object itself.
            causes: vec![resource.key().to_string(), cause.clone()],
        })
    });
    AppFacts {
        app: application.id(),
        project: application.project().to_owned(),
        is_judged: false,
        problem: problem(application),
        status_of: StatusOf::ArgoCd,
        findings: Vec::new(),
        unhealthy: unhealthy.collect(),
        pauses: Vec::new(),
        red: red(application),
        plain_secrets: Vec::new(),
    }
}

/// What keeps the controller of an app from comparing it. The first message is enough to begin with.
fn problem(application: &Application) -> Option<String> {
    let conditions = application.status.conditions.iter();
    let mut errors = conditions.filter(|condition| {
        matches!(condition.condition_type.as_str(), "ComparisonError" | "InvalidSpecError" | "UnknownError")
    });
    errors.next().map(|condition| format!("{}: {}", condition.condition_type, condition.message))
}
