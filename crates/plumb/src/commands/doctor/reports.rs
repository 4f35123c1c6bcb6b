//! What the engine's reports and the Applications say.

use std::collections::{BTreeMap, BTreeSet};

use futures::future;
use jiff::{SignedDuration, Timestamp};
use plumb_core::app::AppId;
use plumb_core::doctor::{AppFacts, PauseFact, UnhealthyFact};
use plumb_core::object::Manifest;
use plumb_crd::application::ResourceStatus;
use plumb_crd::drift_report::DriftFinding;
use plumb_crd::{Application, DriftReport};
use plumb_kube::{ClusterClient, Selection};

use crate::context::{Context, list_failed};
use crate::error::CommandError;
use crate::kinds;
use crate::select::namespaces::list_in;
use crate::view::columns::ListColumns;

/// A status of Argo CD does not say whether an object is stuck. After this time, one that is `Progressing` is.
const STUCK_AFTER: SignedDuration = SignedDuration::from_mins(30);

/// What the cluster says about all apps: one list of reports, one of Applications.
pub(super) async fn facts(
    context: &Context,
    client: &ClusterClient,
    namespace: Option<&str>,
    now: Timestamp,
) -> Result<Vec<AppFacts>, CommandError> {
    let of_namespace = |namespace: Option<&str>| Selection {
        namespace: namespace.map(str::to_owned),
        ..Selection::default()
    };
    let list_reports = async |namespace: Option<&str>| {
        let found = client.list(&kinds::drift_report(), &of_namespace(namespace)).await;
        match found {
            // Without plumb's kinds, no engine of plumb runs here.
            Err(error) if error.is_not_found() => Ok(Vec::new()),
            found => found.map_err(|error| list_failed(&kinds::drift_report(), error)),
        }
    };
    let list_columns = async |namespace: Option<&str>| {
        let found = ListColumns::application().list(client, &of_namespace(namespace)).await;
        found.map_err(|error| list_failed(&kinds::application(), error))
    };
    let (reports, applications) = future::try_join(
        list_in(context, client, namespace, list_reports),
        list_in(context, client, namespace, list_columns),
    )
    .await?;
    let reports: BTreeMap<AppId, DriftReport> = reports
        .iter()
        .filter_map(|report| DriftReport::from_json(report.value()).ok())
        .map(|report| (id(&report), report))
        .collect();
    let mut applications = read(context, &applications);
    // The engine of plumb writes the status by its own verdict. If another controller did, its verdict is on each object.
    if applications.iter().any(|application| needs_status(application, &reports)) {
        let list_whole = async |namespace: Option<&str>| {
            context.list(client, &kinds::application(), &of_namespace(namespace)).await
        };
        applications = read(context, &list_in(context, client, namespace, list_whole).await?);
    }
    for report in reports.values() {
        note_omitted(context, report);
    }
    let facts = applications.iter().map(|application| {
        let report = reports.get(&application.id());
        match report {
            Some(report) => judged(application, report),
            None => from_status(application, now),
        }
    });
    Ok(facts.collect())
}

/// The Applications that can be read, by namespace and name.
fn read(context: &Context, found: &[Manifest]) -> Vec<Application> {
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
fn note_omitted(context: &Context, report: &DriftReport) {
    let n_findings = usize::try_from(report.summary.counted + report.summary.explained).unwrap_or_default();
    let n_listed = report.findings.len();
    if n_findings > n_listed {
        let app = id(report);
        context.out.note(&format!("note: the report of {app} lists {n_listed} of {n_findings} differences"));
    }
}

/// Is something wrong with the app that no report explains?
fn needs_status(application: &Application, reports: &BTreeMap<AppId, DriftReport>) -> bool {
    let is_red = application.status.sync.status == "OutOfSync";
    match reports.get(&application.id()) {
        Some(report) => is_red && report.summary.counted == 0,
        None => is_red || is_unhealthy(&application.status.health.status),
    }
}

fn is_unhealthy(status: &str) -> bool {
    !matches!(status, "" | "Healthy" | "Suspended")
}

fn judged(application: &Application, report: &DriftReport) -> AppFacts {
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
        findings: report.findings.iter().filter_map(DriftFinding::finding).collect(),
        unhealthy: unhealthy.collect(),
        pauses: pauses.collect(),
        red: application
            .status
            .resources
            .iter()
            .filter(|resource| resource.status == "OutOfSync")
            .map(ResourceStatus::key)
            .collect(),
    }
}

/// What the status of an app says that plumb did not judge.
pub(super) fn from_status(application: &Application, now: Timestamp) -> AppFacts {
    let status = &application.status;
    let red = status.resources.iter().filter(|resource| resource.status == "OutOfSync");
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
        findings: Vec::new(),
        unhealthy: unhealthy.collect(),
        pauses: Vec::new(),
        red: red.map(ResourceStatus::key).collect::<BTreeSet<_>>(),
    }
}
