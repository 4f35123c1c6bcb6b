//! `plumb app diff`

use plumb_crd::DriftReport;
use plumb_crd::drift_report::DriftFinding;

use super::refresh::{Refresh, refresh};
use super::target::AppArg;
use crate::commands::drift;
use crate::context::Context;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::kinds;

/// Show what differs from Git and counts, with its class, who did it and since when.
///
/// Exit code 0: nothing that counts; 1 (or --diff-exit-code): something does; 20: it could not be told.
///
/// Example: `plumb app diff payments --refresh`
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is one flag of the command line")]
pub(crate) struct Args {
    #[command(flatten)]
    app: AppArg,
    /// Show what does not count, too.
    #[arg(long)]
    all: bool,
    /// Look at Git and the cluster first.
    #[arg(long)]
    refresh: bool,
    /// Look at Git and the cluster first, and render anew.
    #[arg(long)]
    hard_refresh: bool,
    /// End with another code than 0 when something counts.
    #[arg(long, default_value_t = true, action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    exit_code: bool,
    /// The code to end with when something counts.
    #[arg(long, default_value_t = 1, value_name = "CODE")]
    diff_exit_code: u8,
}

pub(super) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let client = context.client().await?;
    let (target, _) = args.app.read(context, &client).await?;
    if let Some(how) = Refresh::wanted(args.refresh, args.hard_refresh) {
        refresh(context, &client, &target, how).await?;
    }
    let report = client
        .get_at(&kinds::drift_report(), target.namespace.as_deref(), &target.name)
        .await
        .map_err(|error| CommandError::api(format!("read the drift report of {}", target.name), error))?;
    let report = report.and_then(|report| DriftReport::from_json(report.value()).ok());
    let findings = report.map(|report| report.findings).unwrap_or_default();
    for finding in findings.iter().filter(|finding| finding.counts || args.all) {
        context.out.say(&format!(
            "===== {} {}/{} ======",
            group_kind(finding),
            finding.namespace,
            finding.name
        ));
        context.out.say(&drift::described(finding));
    }
    let counts = findings.iter().any(|finding| finding.counts);
    Ok(if counts && args.exit_code { ExitCode::Chosen(args.diff_exit_code) } else { ExitCode::Success })
}

fn group_kind(finding: &DriftFinding) -> String {
    if finding.group.is_empty() {
        finding.kind.clone()
    } else {
        format!("{}/{}", finding.group, finding.kind)
    }
}
