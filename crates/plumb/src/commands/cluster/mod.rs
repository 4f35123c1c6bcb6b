//! `plumb cluster`: the clusters that Applications may go to.

mod add;
mod get;
mod list;
mod reach;
mod rm;

use plumb_core::app::ClusterRef;
use plumb_core::object::Manifest;
use plumb_crd::settings::ClusterSecret;
use plumb_kube::ClusterClient;

pub(crate) use reach::{cluster_of, reach};

use super::secrets;
use crate::context::{Context, NamespaceMeans};
use crate::error::CommandError;
use crate::exit::ExitCode;

/// Look at registered clusters, add and remove them. Credentials are never shown.
#[derive(Debug, clap::Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    List(list::Args),
    Get(get::Args),
    Add(Box<add::Args>),
    Rm(rm::Args),
}

impl Args {
    /// What `--namespace` means to the command.
    pub(crate) fn namespace_means(&self) -> NamespaceMeans {
        match &self.command {
            Command::Add(_) => NamespaceMeans::Objects,
            Command::List(_) | Command::Get(_) | Command::Rm(_) => NamespaceMeans::ControlPlane,
        }
    }
}

pub(crate) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    match &args.command {
        Command::List(args) => list::run(context, args).await,
        Command::Get(args) => get::run(context, args).await,
        Command::Add(args) => add::run(context, args).await,
        Command::Rm(args) => rm::run(context, args).await,
    }
}

/// A cluster and the Secret that registers it; the one that plumb works in needs none.
struct Registered {
    cluster: ClusterSecret,
    secret: Option<Manifest>,
}

async fn registered(context: &Context, client: &ClusterClient) -> Result<Vec<Registered>, CommandError> {
    let mut clusters = Vec::new();
    for (data, object) in secrets::list(context, client, "cluster").await? {
        match ClusterSecret::read(&data) {
            Ok(cluster) => clusters.push(Registered { cluster, secret: Some(object) }),
            Err(why) => {
                context.out.complain(&format!("secret {} cannot be read: {why}", data.metadata.name));
            }
        }
    }
    clusters.sort_by(|one, other| one.cluster.name.cmp(&other.cluster.name));
    let is_home = |registered: &Registered| registered.cluster.server == ClusterRef::IN_CLUSTER_SERVER;
    if !clusters.iter().any(is_home) {
        clusters.push(Registered { cluster: home(), secret: None });
    }
    Ok(clusters)
}

/// The cluster that plumb works in, which is always there.
fn home() -> ClusterSecret {
    ClusterSecret {
        name: ClusterRef::IN_CLUSTER_NAME.to_owned(),
        server: ClusterRef::IN_CLUSTER_SERVER.to_owned(),
        namespaces: Vec::new(),
        cluster_resources: true,
        project: None,
        auth: plumb_crd::settings::ClusterAuth::default(),
        tls: plumb_crd::settings::ClusterTls::default(),
        proxy_url: None,
        disable_compression: false,
        labels: std::collections::BTreeMap::new(),
        annotations: std::collections::BTreeMap::new(),
        skip_reconcile: false,
    }
}

/// The cluster of this name or address.
async fn find(context: &Context, client: &ClusterClient, which: &str) -> Result<Registered, CommandError> {
    let wanted = which.trim_end_matches('/');
    registered(context, client)
        .await?
        .into_iter()
        .find(|one| one.cluster.server == wanted || one.cluster.name == wanted)
        .ok_or_else(|| {
            CommandError::new(format!("no cluster {which} is registered"))
                .hint("`plumb cluster list` shows the clusters")
        })
}
