//! `plumb app list`

use std::collections::BTreeMap;

use plumb_core::object::GroupVersionKind;
use plumb_crd::{Application, DriftReport};
use plumb_kube::Selection;

use crate::commands::{block_on, drift};
use crate::config::ConnectionArgs;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::output::{say, table};

pub(super) fn run(connection: &ConnectionArgs) -> Result<ExitCode, CommandError> {
    let (applications, reports) = block_on(async {
        let client = connection.client().await?;
        let gvk = GroupVersionKind::from_api_version(Application::API_VERSION, Application::KIND);
        let selection = Selection { namespace: Some(connection.namespace.clone()), ..Selection::default() };
        let found = client.list(&gvk, &selection).await.map_err(|error| {
            CommandError::because("list Applications", error)
                .hint("is plumb installed? `plumb run --install` applies its kinds")
        })?;
        Ok((found, drift::reports(connection).await?))
    })?;
    let reports: BTreeMap<&str, &DriftReport> =
        reports.iter().map(|report| (report.metadata.name.as_str(), report)).collect();
    let mut rows: Vec<Vec<String>> = applications
        .iter()
        .filter_map(|manifest| Application::from_json(manifest.value()).ok())
        .map(|application| row(&application, reports.get(application.metadata.name.as_str()).copied()))
        .collect();
    rows.sort();
    say(&table(
        &["NAME", "CLUSTER", "NAMESPACE", "PROJECT", "STATUS", "HEALTH", "SYNCPOLICY", "CONDITIONS", "DRIFT"],
        &rows,
    ));
    Ok(ExitCode::Success)
}

fn row(application: &Application, report: Option<&DriftReport>) -> Vec<String> {
    let spec = &application.spec;
    let status = &application.status;
    let cluster =
        if spec.destination.name.is_empty() { &spec.destination.server } else { &spec.destination.name };
    let or_unknown = |text: &str| if text.is_empty() { "Unknown".to_owned() } else { text.to_owned() };
    let mut conditions: BTreeMap<&str, usize> = BTreeMap::new();
    for condition in &status.conditions {
        *conditions.entry(&condition.condition_type).or_default() += 1;
    }
    let conditions: Vec<String> = conditions
        .iter()
        .map(|(name, n)| if *n > 1 { format!("{name}({n})") } else { (*name).to_owned() })
        .collect();
    vec![
        format!("{}/{}", application.metadata.namespace, application.metadata.name),
        cluster.clone(),
        spec.destination.namespace.clone(),
        spec.project.clone(),
        or_unknown(&status.sync.status),
        or_unknown(&status.health.status),
        policy(application).to_owned(),
        if conditions.is_empty() { "<none>".to_owned() } else { conditions.join(",") },
        report.map(drift_summary).unwrap_or_default(),
    ]
}

fn policy(application: &Application) -> &'static str {
    let automated = application.spec.sync_policy.as_ref().and_then(|policy| policy.automated.as_ref());
    match automated {
        None => "Manual",
        Some(automated) if automated.enabled == Some(false) => "Manual",
        Some(automated) if automated.prune == Some(true) => "Auto-Prune",
        Some(_) => "Auto",
    }
}

fn drift_summary(report: &DriftReport) -> String {
    let summary = &report.summary;
    match (summary.counted, summary.explained) {
        (0, 0) => String::new(),
        (0, explained) => format!("{explained} explained"),
        (counted, _) => {
            let since = summary.since.map(|since| format!(" since {since}")).unwrap_or_default();
            format!("{counted} count: {}{since}", summary.worst)
        }
    }
}
