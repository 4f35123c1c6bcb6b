//! `plumb cluster list`

use futures::StreamExt as _;
use plumb_kube::ClusterClient;
use serde_json::Value;

use crate::context::Context;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::kinds;
use crate::output::Format;
use crate::secrets::clusters::{Registered, TIMEOUT, readable, registered};
use crate::secrets::write as secrets;
use crate::view::watch;

/// List the registered clusters, and whether they can be reached.
///
/// Example: `plumb cluster list -o server`
#[derive(Debug, clap::Args)]
#[command(visible_alias = "ls")]
pub(crate) struct Args {
    /// Output format: wide, json, yaml, name, or server.
    #[arg(long, short = 'o', default_value = "wide", value_parser = ["wide", "json", "yaml", "name", "server"])]
    output: String,
    /// Keep running and show changes.
    #[arg(long, short = 'w')]
    watch: bool,
}

/// How many clusters are contacted at the same time.
const AT_ONCE: usize = 16;

const HEADER: [&str; 6] = ["SERVER", "NAME", "VERSION", "STATUS", "MESSAGE", "PROJECT"];

pub(super) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    if args.watch && args.output != "wide" {
        return Err(CommandError::refused_flag(
            "--watch",
            "it works only with the table; leave out --output",
        ));
    }
    let client = context.client().await?;
    if args.watch {
        let watched = [(kinds::secret(), secrets::selection(context, "cluster"))];
        let rows = async || rows(context, &client).await;
        return watch::follow(context, &client, &watched, &HEADER, rows).await;
    }
    match args.output.as_str() {
        "wide" => context.out.table(&HEADER, &rows(context, &client).await?),
        shape @ ("server" | "name") => {
            for one in registered(context, &client).await? {
                context.out.print(if shape == "server" { &one.cluster.server } else { &one.cluster.name });
            }
        }
        shape => {
            let all = registered(context, &client).await?;
            let shown: Vec<Value> = all.iter().map(readable).collect();
            let format = if shape == "yaml" { Format::Yaml } else { Format::Json };
            context.out.object(format, &Value::Array(shown))?;
        }
    }
    Ok(ExitCode::Success)
}

async fn rows(context: &Context, client: &ClusterClient) -> Result<Vec<Vec<String>>, CommandError> {
    let all = registered(context, client).await?;
    let asked = futures::stream::iter(all.iter().map(|one| async move {
        let (version, status, message) = match ask(client, one).await {
            Ok(version) => (version, "Successful", String::new()),
            Err(why) => (String::new(), "Failed", why),
        };
        let cluster = &one.cluster;
        let name = if cluster.namespaces.is_empty() {
            cluster.name.clone()
        } else {
            format!("{} ({} namespaces)", cluster.name, cluster.namespaces.len())
        };
        let project = cluster.project.clone().unwrap_or_default();
        vec![cluster.server.clone(), name, version, status.to_owned(), message, project]
    }));
    Ok(asked.buffered(AT_ONCE).collect().await)
}

/// The version of a cluster, read with its registered credentials, or as the server has it.
async fn ask(home: &ClusterClient, one: &Registered) -> Result<String, String> {
    if let Some(state) = &one.state {
        return state.clone();
    }
    let client = match &one.secret {
        None => home.clone(),
        Some(_) => one.connect()?,
    };
    let version = tokio::time::timeout(TIMEOUT, client.version()).await;
    let version = version.map_err(|_| format!("no answer within {} s", TIMEOUT.as_secs()))?;
    let version = version.map_err(|error| error.to_string())?.git_version;
    Ok(version.trim_start_matches('v').to_owned())
}
