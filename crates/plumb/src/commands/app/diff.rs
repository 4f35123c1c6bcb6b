//! `plumb app diff`

use plumb_crd::drift_report::DriftFinding;

use super::{read, target};
use crate::commands::{block_on, drift};
use crate::config::ConnectionArgs;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::output::say;

/// Show what differs from Git and counts, with its class, who did it and since when: `plumb app diff payments`
///
/// Exit code 0: nothing that counts; 1: something does.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// `name`, or `namespace/name`.
    app: String,
    /// Show what does not count, too.
    #[arg(long)]
    all: bool,
    /// End with 1 when something counts.
    #[arg(long, default_value_t = true, action = clap::ArgAction::Set)]
    exit_code: bool,
}

pub(super) fn run(connection: &ConnectionArgs, args: &Args) -> Result<ExitCode, CommandError> {
    let target = target(connection, &args.app);
    let reports = block_on(async {
        let client = connection.client().await?;
        // An app that does not exist has no differences, but that is not the answer.
        read(&client, &target).await?;
        drift::reports(connection).await
    })?;
    let report = reports.iter().find(|report| report.metadata.name == target.name);
    let findings: Vec<&DriftFinding> =
        report.map(|report| report.findings.iter().collect()).unwrap_or_default();
    for finding in findings.iter().filter(|finding| finding.counts || args.all) {
        say(&format!("===== {} {}/{} ======", group_kind(finding), finding.namespace, finding.name));
        say(&drift::described(finding));
    }
    let counts = findings.iter().any(|finding| finding.counts);
    Ok(if counts && args.exit_code { ExitCode::No } else { ExitCode::Success })
}

fn group_kind(finding: &DriftFinding) -> String {
    if finding.group.is_empty() {
        finding.kind.clone()
    } else {
        format!("{}/{}", finding.group, finding.kind)
    }
}
