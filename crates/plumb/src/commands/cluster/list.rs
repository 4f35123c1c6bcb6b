//! `plumb cluster list`

use std::time::Duration;

use futures::StreamExt as _;
use plumb_kube::ClusterClient;
use serde_json::{Value, json};

use super::{Registered, registered};
use crate::commands::{secrets, watching};
use crate::context::Context;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::kinds;
use crate::output::Format;

/// List the registered clusters, and whether each answers.
///
/// Example: `plumb cluster list -o server`
#[derive(Debug, clap::Args)]
#[command(visible_alias = "ls")]
pub(crate) struct Args {
    /// How to print them: wide, json, yaml, name, or server.
    #[arg(long, short = 'o', default_value = "wide", value_parser = ["wide", "json", "yaml", "name", "server"])]
    output: String,
    /// Go on and show what changes.
    #[arg(long, short = 'w')]
    watch: bool,
}

/// A cluster that needs longer does not answer.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);
/// How many clusters are asked at the same time.
const AT_ONCE: usize = 16;

const HEADER: [&str; 6] = ["SERVER", "NAME", "VERSION", "STATUS", "MESSAGE", "PROJECT"];

pub(super) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    if args.watch && args.output != "wide" {
        return Err(CommandError::refused_flag("--watch", "it shows the table; leave out --output"));
    }
    let client = context.client().await?;
    if args.watch {
        let watched = [(kinds::secret(), secrets::selection(context, "cluster"))];
        let rows = async || rows(context, &client).await;
        return watching::follow(context, &client, &watched, &HEADER, rows).await;
    }
    match args.output.as_str() {
        "wide" => context.out.table(&HEADER, &rows(context, &client).await?),
        shape @ ("server" | "name") => {
            for one in registered(context, &client).await? {
                context.out.say(if shape == "server" { &one.cluster.server } else { &one.cluster.name });
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

/// The version of a cluster, asked with the credentials that it is registered with.
async fn ask(home: &ClusterClient, one: &Registered) -> Result<String, String> {
    let client = match &one.secret {
        None => home.clone(),
        Some(_) => one.connect()?,
    };
    let version = tokio::time::timeout(PATIENCE, client.version()).await;
    let version = version.map_err(|_| format!("no answer within {} s", PATIENCE.as_secs()))?;
    let version = version.map_err(|error| error.to_string())?.git_version;
    Ok(version.trim_start_matches('v').to_owned())
}

/// A cluster without anything that is secret.
pub(super) fn readable(one: &Registered) -> Value {
    let cluster = &one.cluster;
    let mut shown = json!({
        "server": cluster.server,
        "name": cluster.name,
        "config": {"tlsClientConfig": {"insecure": cluster.tls.insecure}},
    });
    if let Some(name) = &cluster.tls.server_name {
        shown["config"]["tlsClientConfig"]["serverName"] = json!(name);
    }
    if !cluster.namespaces.is_empty() {
        shown["namespaces"] = json!(cluster.namespaces);
        shown["clusterResources"] = json!(cluster.cluster_resources);
    }
    if let Some(project) = &cluster.project {
        shown["project"] = json!(project);
    }
    for (field, map) in [("labels", &cluster.labels), ("annotations", &cluster.annotations)] {
        let own = |key: &&String| !key.starts_with("argocd.argoproj.io/") && *key != "managed-by";
        let shown_map: serde_json::Map<String, Value> = map
            .keys()
            .filter(own)
            .filter(|key| key.as_str() != "kubectl.kubernetes.io/last-applied-configuration")
            .filter_map(|key| Some((key.clone(), json!(map.get(key)?))))
            .collect();
        if !shown_map.is_empty() {
            shown[field] = Value::Object(shown_map);
        }
    }
    shown
}
