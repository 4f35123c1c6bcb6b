//! `plumb cluster rm`

use crate::context::{Context, delete, without_children};
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::prompt;
use crate::secrets::clusters::find;

/// Unregister clusters. Nothing in them is deleted.
///
/// Asks for confirmation, unless --yes is given. Exit code 1: the answer was no.
///
/// Example: `plumb cluster rm production --yes`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Name or URL of the cluster.
    #[arg(required = true)]
    clusters: Vec<String>,
    /// Do not ask for confirmation.
    #[arg(long, short = 'y')]
    yes: bool,
}

pub(super) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let client = context.client().await?;
    let mut code = ExitCode::Success;
    for which in &args.clusters {
        let one = find(context, &client, which).await?;
        let Some(secret) = &one.secret else {
            return Err(CommandError::new(format!(
                "cannot remove {which}: it is the cluster that plumb runs in, and has no Secret"
            )));
        };
        if !args.yes && !prompt::confirm(&format!("Are you sure you want to remove '{which}'?"))? {
            context.out.note(&format!("'{which}' was not removed"));
            code = ExitCode::No;
            continue;
        }
        delete(&client, secret, &without_children()).await?;
        context.out.print(&format!("Cluster '{which}' removed"));
    }
    Ok(code)
}
