//! `plumb repo list`

use plumb_core::project::{normalize_repo_url, shown_repo_url};
use plumb_crd::Application;
use plumb_crd::settings::{Repository, RepositoryKind};
use plumb_kube::{ClusterClient, Selection};
use serde_json::Value;

use crate::context::Context;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::kinds;
use crate::output::Format;
use crate::secrets::repositories::{readable, registered, type_name};
use crate::secrets::write as secrets;
use crate::view::watch;

/// List the registered repositories, and whether apps can read them.
///
/// STATUS comes from the apps of a repository: Successful if one was compared with it, Failed with the message if one
/// could not be, Unknown if no app uses it.
///
/// Example: `plumb repo list -o url`
#[derive(Debug, clap::Args)]
#[command(visible_alias = "ls")]
pub(crate) struct Args {
    /// Output format: wide, json, yaml, name, or url.
    #[arg(long, short = 'o', default_value = "wide", value_parser = ["wide", "json", "yaml", "name", "url"])]
    output: String,
    /// Keep running and show changes.
    #[arg(long, short = 'w')]
    watch: bool,
    /// Refused: nothing is cached.
    #[arg(long, hide = true)]
    refresh: Option<String>,
}

const HEADER: [&str; 10] =
    ["TYPE", "NAME", "REPO", "INSECURE", "OCI", "LFS", "CREDS", "STATUS", "MESSAGE", "PROJECT"];

pub(super) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    if args.refresh.is_some() {
        return Err(CommandError::refused_flag("--refresh", "the list is read from the cluster each time"));
    }
    if args.watch && args.output != "wide" {
        return Err(CommandError::refused_flag(
            "--watch",
            "it works only with the table; leave out --output",
        ));
    }
    let client = context.client().await?;
    if args.watch {
        let apps = Selection { namespace: Some(context.namespace().to_owned()), ..Selection::default() };
        let watched =
            [(kinds::secret(), secrets::selection(context, "repository")), (kinds::application(), apps)];
        let rows = async || rows(context, &client).await;
        return watch::follow(context, &client, &watched, &HEADER, rows).await;
    }
    match args.output.as_str() {
        "wide" => context.out.table(&HEADER, &rows(context, &client).await?),
        "url" | "name" => {
            for (repository, _) in registered(context, &client).await? {
                context.out.print(&repository.url);
            }
        }
        shape => {
            let all = registered(context, &client).await?;
            let shown: Vec<Value> = all.iter().map(|(repository, _)| readable(repository)).collect();
            let format = if shape == "yaml" { Format::Yaml } else { Format::Json };
            context.out.object(format, &Value::Array(shown))?;
        }
    }
    Ok(ExitCode::Success)
}

async fn rows(context: &Context, client: &ClusterClient) -> Result<Vec<Vec<String>>, CommandError> {
    let selection = Selection { namespace: Some(context.namespace().to_owned()), ..Selection::default() };
    let application = kinds::application();
    let (repositories, apps) =
        futures::future::join(registered(context, client), client.list(&application, &selection)).await;
    let apps: Vec<Application> =
        apps.unwrap_or_default().iter().filter_map(|app| Application::from_json(app.value()).ok()).collect();
    let cell = |on: bool| on.to_string();
    let row = |repository: &Repository| {
        let (status, message) = status(repository, &apps);
        vec![
            type_name(repository.kind).to_owned(),
            repository.name.clone().unwrap_or_default(),
            shown_repo_url(&repository.url),
            cell(repository.insecure || repository.insecure_ignore_host_key),
            cell(matches!(repository.kind, RepositoryKind::Helm { oci: true } | RepositoryKind::Oci)),
            cell(repository.enable_lfs),
            cell(!repository.credentials.is_empty()),
            status.to_owned(),
            message,
            repository.project.clone().unwrap_or_default(),
        ]
    };
    Ok(repositories?.iter().map(|(repository, _)| row(repository)).collect())
}

/// The status of a repository, from the conditions of its apps.
fn status(repository: &Repository, apps: &[Application]) -> (&'static str, String) {
    let wanted = normalize_repo_url(&repository.url);
    let uses = |app: &&Application| {
        let sources = app.spec.source.iter().map(AsRef::as_ref).chain(&app.spec.sources);
        sources.into_iter().any(|source| normalize_repo_url(&source.repo_url) == wanted)
    };
    let mut compared = false;
    for app in apps.iter().filter(uses) {
        let failed =
            app.status.conditions.iter().find(|condition| condition.condition_type == "ComparisonError");
        match failed {
            Some(condition) => return ("Failed", format!("{}: {}", app.metadata.name, condition.message)),
            None => compared |= !app.status.sync.revision.is_empty() || !app.status.sync.revisions.is_empty(),
        }
    }
    if compared { ("Successful", String::new()) } else { ("Unknown", "no app has used it yet".to_owned()) }
}
