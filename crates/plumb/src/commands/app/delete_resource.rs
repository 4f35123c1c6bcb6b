//! `plumb app delete-resource`

use plumb_core::desired::Propagation;
use plumb_kube::DeleteOptions;

use crate::connect::cluster_of;
use crate::context::{Context, delete};
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::prompt;
use crate::select::app::AppArg;
use crate::select::object::ObjectChoice;

/// Delete live objects of an Application. The next sync creates those that are in Git again.
///
/// Asks for confirmation on a terminal, unless --yes is given.
///
/// Example: `plumb app delete-resource payments --kind Job --resource-name migrate`
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is one flag of the command line")]
pub(crate) struct Args {
    #[command(flatten)]
    app: AppArg,
    #[command(flatten)]
    choice: ObjectChoice,
    /// Delete pods without a grace period.
    #[arg(long)]
    force: bool,
    /// Keep the objects that they own.
    #[arg(long)]
    orphan: bool,
    /// Delete all objects that match.
    #[arg(long)]
    all: bool,
    /// Do not ask for confirmation.
    #[arg(long, short = 'y')]
    yes: bool,
}

pub(super) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    if args.choice.kind.is_none() {
        return Err(CommandError::usage("--kind is required").hint("such as --kind Job"));
    }
    let home = context.client_of_all_kinds().await?;
    let (_, application) = args.app.read(context, &home).await?;
    let client = cluster_of(context, &home, &application).await?;
    let objects = if args.all {
        args.choice.find(context, &client, &application).await?
    } else {
        vec![args.choice.find_one(context, &client, &application).await?]
    };
    let options = DeleteOptions {
        propagation: if args.orphan { Propagation::Orphan } else { Propagation::Foreground },
        resource_version: None,
        grace_seconds: args.force.then_some(0),
    };
    for object in objects {
        let name = object.name().unwrap_or_default();
        // argocd does not ask here, so scripts, which have no terminal, must not be asked.
        let is_asked = context.out.is_terminal() && !args.yes;
        if is_asked && !prompt::confirm(&format!("Delete {} {name}?", object.kind()))? {
            context.out.note(&format!("'{name}' was not deleted"));
            return Ok(ExitCode::No);
        }
        delete(&client, &object, &options).await?;
        context.out.print(&format!("Resource '{name}' deleted"));
    }
    Ok(ExitCode::Success)
}
