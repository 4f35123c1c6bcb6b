//! `plumb drift`

use std::collections::BTreeMap;

use plumb_core::object::GroupVersionKind;
use plumb_crd::DriftReport;
use plumb_crd::drift_report::DriftFinding;
use plumb_kube::Selection;

use super::block_on;
use crate::config::ConnectionArgs;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::output::{say, table};

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

pub(crate) fn run(connection: &ConnectionArgs, args: &Args) -> Result<ExitCode, CommandError> {
    let reports = block_on(reports(connection))?;
    let wanted: Vec<&DriftReport> = reports
        .iter()
        .filter(|report| args.app.as_ref().is_none_or(|app| report.metadata.name == *app))
        .collect();
    if let (Some(app), true) = (&args.app, wanted.is_empty()) {
        say(&format!("no difference is known of {app}"));
        return Ok(ExitCode::Success);
    }
    say(&overview(&wanted));
    for report in wanted {
        let shown: Vec<&DriftFinding> = report
            .findings
            .iter()
            .filter(|finding| finding.counts || args.all || args.app.is_some())
            .collect();
        if shown.is_empty() {
            continue;
        }
        say(&format!("\n{}", report.metadata.name));
        for finding in shown {
            say(&described(finding));
        }
    }
    Ok(ExitCode::Success)
}

/// All reports of the namespace, by name.
pub(crate) async fn reports(connection: &ConnectionArgs) -> Result<Vec<DriftReport>, CommandError> {
    let client = connection.client().await?;
    let gvk = GroupVersionKind::from_api_version(DriftReport::API_VERSION, DriftReport::KIND);
    let selection = Selection { namespace: Some(connection.namespace.clone()), ..Selection::default() };
    let found = client.list(&gvk, &selection).await.map_err(|error| {
        CommandError::because("list DriftReports", error)
            .hint("is plumb installed? `plumb run --install` applies its kinds")
    })?;
    let mut reports: Vec<DriftReport> =
        found.iter().filter_map(|manifest| DriftReport::from_json(manifest.value()).ok()).collect();
    reports.sort_by(|one, other| one.metadata.name.cmp(&other.metadata.name));
    Ok(reports)
}

fn overview(reports: &[&DriftReport]) -> String {
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
    table(&["COUNTS", "CLASS", "KIND", "FINDINGS", "APPS"], &rows)
}

/// One finding in plain words.
pub(crate) fn described(finding: &DriftFinding) -> String {
    let place = if finding.namespace.is_empty() {
        finding.name.clone()
    } else {
        format!("{}/{}", finding.namespace, finding.name)
    };
    let mut text = format!("  {} {} {place}", finding.class, finding.kind);
    if !finding.fields.is_empty() {
        text = format!("{text}: {}", finding.fields.join(", "));
    }
    if !finding.actor.is_empty() {
        text = format!("{text} (by {}", finding.actor);
        text = finding.since.map_or_else(|| format!("{text})"), |since| format!("{text}, since {since})"));
    }
    for line in &finding.evidence {
        text = format!("{text}\n      {line}");
    }
    match &finding.fix {
        Some(fix) if !fix.text.is_empty() => format!("{text}\n      → {}", fix.text),
        _ => text,
    }
}
