//! `plumb proj list`

use plumb_core::object::Manifest;
use plumb_crd::AppProject;
use plumb_kube::{ClusterClient, Selection};
use serde_json::Value;

use crate::context::Context;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::kinds;
use crate::output::Format;
use crate::select::project::parse;
use crate::view::describe;
use crate::view::project::{allowed_cluster_kinds, destinations, orphans, service_accounts};
use crate::view::watch;

/// List projects and what they allow.
///
/// Example: `plumb proj list -o name`
#[derive(Debug, clap::Args)]
#[command(visible_alias = "ls")]
pub(crate) struct Args {
    /// Output format.
    #[arg(long, short = 'o', value_enum, default_value_t = Format::Wide)]
    output: Format,
    /// Keep running and show changes.
    #[arg(long, short = 'w')]
    watch: bool,
}

const HEADER: [&str; 9] = [
    "NAME",
    "DESCRIPTION",
    "DESTINATIONS",
    "SOURCES",
    "CLUSTER-RESOURCE-WHITELIST",
    "NAMESPACE-RESOURCE-BLACKLIST",
    "SIGNATURE-KEYS",
    "ORPHANED-RESOURCES",
    "DESTINATION-SERVICE-ACCOUNTS",
];

pub(super) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    if args.watch && args.output != Format::Wide {
        return Err(CommandError::refused_flag(
            "--watch",
            "it works only with the table; leave out --output",
        ));
    }
    let client = context.client().await?;
    let selection = Selection { namespace: Some(context.namespace().to_owned()), ..Selection::default() };
    if args.watch {
        let rows = async || rows(&projects(context, &client, &selection).await?);
        let watched = [(kinds::project(), selection.clone())];
        return watch::follow(context, &client, &watched, &HEADER, rows).await;
    }
    let found = projects(context, &client, &selection).await?;
    match args.output {
        Format::Wide => context.out.table(&HEADER, &rows(&found)?),
        Format::Name => {
            for object in &found {
                context.out.print(object.name().unwrap_or_default());
            }
        }
        Format::Json | Format::Yaml => {
            let all = found.iter().map(describe::readable).collect();
            context.out.object(args.output, &Value::Array(all))?;
        }
    }
    Ok(ExitCode::Success)
}

/// The projects, sorted by name.
async fn projects(
    context: &Context,
    client: &ClusterClient,
    selection: &Selection,
) -> Result<Vec<Manifest>, CommandError> {
    let mut found = context.list(client, &kinds::project(), selection).await?;
    found.sort_by_key(|object| object.name().map(str::to_owned));
    Ok(found)
}

fn rows(projects: &[Manifest]) -> Result<Vec<Vec<String>>, CommandError> {
    projects.iter().map(|object| parse(object).map(|one| row(&one))).collect()
}

fn row(project: &AppProject) -> Vec<String> {
    let spec = &project.spec;
    vec![
        project.metadata.name.clone(),
        spec.description.clone(),
        summary(&destinations(spec), "destinations"),
        summary(&spec.source_repos, "repos"),
        summary(&allowed_cluster_kinds(spec), "resources"),
        match spec.namespace_resource_blacklist.len() {
            0 => "<none>".to_owned(),
            n => format!("{n} resources"),
        },
        match spec.signature_keys.len() {
            0 => "<none>".to_owned(),
            n => format!("{n} key(s)"),
        },
        orphans(spec.orphaned_resources.as_ref()),
        summary(&service_accounts(spec), "destinationServiceAccounts"),
    ]
}

/// `<none>`, the only entry, or how many there are.
fn summary(texts: &[String], noun: &str) -> String {
    match texts {
        [] => "<none>".to_owned(),
        [one] => one.clone(),
        several => format!("{} {noun}", several.len()),
    }
}
