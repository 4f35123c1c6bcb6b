//! `plumb cluster rotate-auth`

use http::Method;

use crate::context::Context;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::remote::query;
use crate::secrets::clusters::find;

/// Replace the token with which plumb uses a registered cluster. Needs `plumb login`.
///
/// Example: `plumb cluster rotate-auth production`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Name or URL of the cluster.
    cluster: String,
}

pub(super) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let Some(door) = context.door() else {
        return Err(CommandError::new("cannot replace a token with the kubeconfig: the server does it")
            .hint("`plumb login SERVER`, or `plumb cluster add --upsert` with the kubeconfig"));
    };
    let one = find(context, &context.client().await?, &args.cluster).await?;
    let path = format!("/api/v1/clusters/{}/rotate-auth", query::part(&one.cluster.server));
    door.api().call(Method::POST, &path, None).await?;
    context.out.print(&format!("Cluster '{}' rotated auth", args.cluster));
    Ok(ExitCode::Success)
}
