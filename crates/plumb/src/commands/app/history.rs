//! `plumb app history`

use plumb_core::project::shown_repo_url;
use plumb_crd::Wire;
use plumb_crd::application::{ApplicationSource, RevisionHistory};
use serde_json::Value;

use crate::context::Context;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::output::{Format, table};
use crate::select::app::AppArg;
use crate::view::describe;

/// Show the past syncs of an Application.
///
/// Example: `plumb app history payments`; `plumb app rollback payments ID` goes back to one of them.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    app: AppArg,
    /// Output format: wide, id (numbers only), json or yaml.
    #[arg(long, short = 'o', default_value = "wide", value_parser = ["wide", "id", "json", "yaml"])]
    output: String,
}

pub(super) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let client = context.client().await?;
    let (_, application) = args.app.read(context, &client).await?;
    let history = &application.status.history;
    if let Some(format) = Format::of_data(&args.output) {
        context.out.object(format, &Value::Array(history.iter().map(Wire::write).collect()))?;
        return Ok(ExitCode::Success);
    }
    if args.output == "id" {
        for entry in history {
            context.out.print(&entry.id.to_string());
        }
        return Ok(ExitCode::Success);
    }
    if history.is_empty() {
        context.out.note("no full sync in the history");
        return Ok(ExitCode::Success);
    }
    let mut repositories: Vec<&str> = Vec::new();
    for (source, _) in history.iter().flat_map(deployed) {
        if !repositories.contains(&source.repo_url.as_str()) {
            repositories.push(&source.repo_url);
        }
    }
    for (index, repository) in repositories.iter().enumerate() {
        let mut rows = vec![vec!["ID".to_owned(), "DATE".to_owned(), "REVISION".to_owned()]];
        for entry in history {
            for (source, revision) in deployed(entry) {
                if source.repo_url == *repository {
                    rows.push(row(entry, source, revision));
                }
            }
        }
        if index > 0 {
            context.out.print("");
        }
        context.out.print(&table(&["SOURCE", &shown_repo_url(repository)], &rows));
    }
    Ok(ExitCode::Success)
}

/// The sources of a past sync, each with the revision that it had.
fn deployed(entry: &RevisionHistory) -> Vec<(&ApplicationSource, &str)> {
    if entry.sources.is_empty() {
        entry.source.iter().map(|source| (source.as_ref(), entry.revision.as_str())).collect()
    } else {
        entry.sources.iter().zip(entry.revisions.iter().map(String::as_str)).collect()
    }
}

fn row(entry: &RevisionHistory, source: &ApplicationSource, revision: &str) -> Vec<String> {
    let target = &source.target_revision;
    let short = describe::short(revision);
    let revision = match (target.as_str(), short) {
        ("", "") => String::new(),
        (target, "") => target.to_owned(),
        ("", short) => format!("HEAD ({short})"),
        (target, short) => format!("{target} ({short})"),
    };
    let date = entry.deployed_at.strftime("%Y-%m-%d %H:%M:%S +0000 UTC").to_string();
    vec![entry.id.to_string(), date, revision]
}
