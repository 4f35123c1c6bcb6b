//! `plumb cluster rm`

use crate::context::{Context, at_once, delete};
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::prompt;
use crate::secrets::clusters::find;

/// Remove clusters from the registered ones. Nothing in them is deleted.
///
/// Asks first, unless --yes is given. Exit code 1: you said no.
///
/// Example: `plumb cluster rm production --yes`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Name or address of the cluster.
    #[arg(required = true)]
    clusters: Vec<String>,
    /// Do not ask.
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
                "{which} is the cluster that plumb works in; it is not registered"
            )));
        };
        if !args.yes && !prompt::confirm(&format!("Are you sure you want to remove '{which}'?"))? {
            context.out.note(&format!("'{which}' was not removed"));
            code = ExitCode::No;
            continue;
        }
        delete(&client, secret, &at_once()).await?;
        context.out.print(&format!("Cluster '{which}' removed"));
    }
    Ok(code)
}
