//! `plumb drift`

use std::collections::BTreeMap;

use plumb_crd::DriftReport;
use plumb_crd::drift_report::DriftFinding;
use plumb_kube::{ClusterClient, Selection};

use crate::context::Context;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::kinds;
use crate::output::Output;
use crate::select::app;
use crate::view::finding::described;

/// Every difference, explained: per class, then per app.
///
/// Reads the `DriftReports`, changes nothing: `plumb drift`, `plumb drift payments`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only this app.
    app: Option<String>,
    /// Show what does not count, too.
    #[arg(long)]
    all: bool,
}

pub(crate) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let client = context.client().await?;
    if let Some(app) = &args.app {
        // An app that does not exist has no differences, but that is not the answer.
        let target = app::target(context, app, None);
        app::read(context, &client, &target).await?;
    }
    let reports = reports(context, &client).await?;
    let place = args.app.as_ref().map(|app| app::target(context, app, None));
    let wanted: Vec<&DriftReport> = reports
        .iter()
        .filter(|report| place.as_ref().is_none_or(|place| report.metadata.name == place.name))
        .collect();
    if let (Some(app), true) = (&args.app, wanted.is_empty()) {
        context.out.say(&format!("no difference is known of {app}"));
        return Ok(ExitCode::Success);
    }
    overview(context.out, &wanted);
    for report in wanted {
        let shown: Vec<&DriftFinding> = report
            .findings
            .iter()
            .filter(|finding| finding.counts || args.all || args.app.is_some())
            .collect();
        if shown.is_empty() {
            continue;
        }
        context.out.say(&format!("\n{}", report.metadata.name));
        for finding in shown {
            context.out.say(&described(finding));
        }
    }
    Ok(ExitCode::Success)
}

/// All reports of the control-plane namespace, by name.
pub(crate) async fn reports(
    context: &Context,
    client: &ClusterClient,
) -> Result<Vec<DriftReport>, CommandError> {
    let selection = Selection { namespace: Some(context.namespace().to_owned()), ..Selection::default() };
    let found = context.list(client, &kinds::drift_report(), &selection).await?;
    let mut reports: Vec<DriftReport> =
        found.iter().filter_map(|manifest| DriftReport::from_json(manifest.value()).ok()).collect();
    reports.sort_by(|one, other| one.metadata.name.cmp(&other.metadata.name));
    Ok(reports)
}

fn overview(out: Output, reports: &[&DriftReport]) {
    let mut counts: BTreeMap<(bool, &str, &str), (usize, std::collections::BTreeSet<&str>)> = BTreeMap::new();
    for report in reports {
        for finding in &report.findings {
            let entry = counts.entry((!finding.counts, &finding.class, &finding.kind)).or_default();
            entry.0 += 1;
            entry.1.insert(&report.metadata.name);
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
