//! `plumb drift`

use std::collections::BTreeMap;

use plumb_crd::DriftReport;
use plumb_crd::drift_report::DriftFinding;
use plumb_kube::{ClusterClient, Selection, Target};
use serde_json::{Value, json};

use crate::context::Context;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::facts::{all_said_by_engine, said_by_engine};
use crate::kinds;
use crate::output::{Format, Output};
use crate::select::app;
use crate::select::namespaces::list_in;
use crate::view::finding::described;

/// Show every difference with its explanation: counted per class, then listed per app.
///
/// Reads the `DriftReports`, changes nothing.
///
/// Examples: `plumb drift`, `plumb drift payments`, `plumb drift -o json`, `plumb drift team-a/payments`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only this app: `name`, or `namespace/name`.
    #[arg(value_name = "APP", add = crate::complete::apps())]
    app: Option<String>,
    /// Namespace of the Applications [default: the control plane's, and those that its settings name].
    #[arg(long, short = 'N', value_name = "NAMESPACE")]
    app_namespace: Option<String>,
    /// Also show differences that do not count, and those that need no action (defaults of the API server).
    #[arg(long)]
    all: bool,
    /// Output format: wide, json or yaml. JSON and YAML have every finding, as the `DriftReports` have them.
    #[arg(long, short = 'o', value_enum, default_value_t = Format::Wide)]
    output: Format,
}

pub(crate) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let client = context.client().await?;
    let is_data = matches!(args.output, Format::Json | Format::Yaml);
    let reports = if let Some(app) = &args.app {
        let target = app::target(context, app, args.app_namespace.as_deref());
        let report = report_of(context, &client, &target).await?;
        if report.is_none() && !is_data {
            context.out.print(&format!("no drift reported for {app}"));
            return Ok(ExitCode::Success);
        }
        report.into_iter().collect()
    } else {
        let reports = reports(context, &client, args.app_namespace.as_deref()).await?;
        all_said_by_engine(context, &client, &reports).await?;
        reports
    };
    if is_data {
        let items: Vec<Value> = reports.iter().map(DriftReport::to_json).collect();
        context.out.object(args.output, &json!({"items": items}))?;
        return Ok(ExitCode::Success);
    }
    let named: Vec<(String, &DriftReport)> =
        reports.iter().map(|report| (name(context, report), report)).collect();
    let is_listed = |finding: &DriftFinding| args.all || args.app.is_some() || !finding.is_quiet();
    overview(context.out, &named, &is_listed);
    let n_quiet =
        reports.iter().flat_map(|report| &report.findings).filter(|finding| !is_listed(finding)).count();
    if n_quiet > 0 {
        let differences = if n_quiet == 1 { "difference needs" } else { "differences need" };
        context.out.note(&format!("{n_quiet} more {differences} no action; --all shows them"));
    }
    for (name, report) in named {
        let is_shown = |finding: &&DriftFinding| finding.counts || args.all || args.app.is_some();
        let shown: Vec<&DriftFinding> = report.findings.iter().filter(is_shown).collect();
        if shown.is_empty() {
            continue;
        }
        context.out.print(&format!("\n{name}"));
        for finding in shown {
            context.out.print(&described(finding, args.app.is_some()));
        }
    }
    Ok(ExitCode::Success)
}

/// The report on one app: it has the app's name and is in the app's namespace. `None` if the app has none.
async fn report_of(
    context: &Context,
    client: &ClusterClient,
    target: &Target,
) -> Result<Option<DriftReport>, CommandError> {
    // An app that does not exist is an error, not an app without drift.
    let application = app::read(context, client, target).await?;
    let found = client
        .get_at(&kinds::drift_report(), target.namespace.as_deref(), &target.name)
        .await
        .map_err(|error| CommandError::api(format!("read the drift report of {}", target.name), error))?;
    let report = found.and_then(|report| DriftReport::from_json(report.value()).ok());
    said_by_engine(context, client, &application, report.as_ref()).await?;
    Ok(report)
}

/// All reports, by namespace and name.
async fn reports(
    context: &Context,
    client: &ClusterClient,
    namespace: Option<&str>,
) -> Result<Vec<DriftReport>, CommandError> {
    let list = async |namespace: Option<&str>| {
        let selection = Selection { namespace: namespace.map(str::to_owned), ..Selection::default() };
        context.list(client, &kinds::drift_report(), &selection).await
    };
    let found = list_in(context, client, namespace, list).await?;
    let mut reports: Vec<DriftReport> =
        found.iter().filter_map(|manifest| DriftReport::from_json(manifest.value()).ok()).collect();
    reports.sort_by(|one, other| {
        let key = |report: &DriftReport| (report.metadata.namespace.clone(), report.metadata.name.clone());
        key(one).cmp(&key(other))
    });
    Ok(reports)
}

/// `payments` in the control-plane namespace, `team-a/payments` in another one.
fn name(context: &Context, report: &DriftReport) -> String {
    let metadata = &report.metadata;
    if metadata.namespace == context.namespace() {
        metadata.name.clone()
    } else {
        format!("{}/{}", metadata.namespace, metadata.name)
    }
}

fn overview(out: Output, reports: &[(String, &DriftReport)], is_listed: &dyn Fn(&DriftFinding) -> bool) {
    let mut counts: BTreeMap<(bool, &str, &str), (usize, std::collections::BTreeSet<&str>)> = BTreeMap::new();
    for (name, report) in reports {
        for finding in report.findings.iter().filter(|finding| is_listed(finding)) {
            let entry = counts.entry((!finding.counts, &finding.class, &finding.kind)).or_default();
            entry.0 += 1;
            entry.1.insert(name);
        }
    }
    let rows: Vec<Vec<String>> = counts
        .into_iter()
        .map(|((explained, class, kind), (n, apps))| {
            let mut names: Vec<&str> = apps.iter().copied().take(4).collect();
            if apps.len() > names.len() {
                names.push("…");
            }
            vec![
                if explained { "no" } else { "YES" }.to_owned(),
                class.to_owned(),
                kind.to_owned(),
                n.to_string(),
                names.join(", "),
            ]
        })
        .collect();
    out.table(&["COUNTS", "CLASS", "KIND", "FINDINGS", "APPS"], &rows);
}
