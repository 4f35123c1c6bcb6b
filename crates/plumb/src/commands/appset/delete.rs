//! `plumb appset delete`

use plumb_kube::Target;

use super::set::{read, target, wait};
use crate::context::{Context, delete, without_children};
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::prompt::confirm;

/// Delete `ApplicationSets` and the Applications that they own.
///
/// Kubernetes deletes the Applications, and an Application with a finalizer deletes its objects.
///
/// Example: `plumb appset delete teams --yes`
#[derive(Debug, clap::Args)]
#[command(visible_alias = "rm")]
pub(crate) struct Args {
    /// `name`, or `namespace/name`.
    #[arg(value_name = "APPSETNAME", required = true)]
    names: Vec<String>,
    /// Do not ask for confirmation.
    #[arg(long, short = 'y')]
    yes: bool,
    /// Wait until the sets are gone.
    #[arg(long)]
    wait: bool,
    /// Namespace of the sets [default: the control plane's].
    #[arg(long, short = 'N', value_name = "NAMESPACE")]
    appset_namespace: Option<String>,
}

pub(super) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let client = context.client().await?;
    let mut objects = Vec::new();
    for name in &args.names {
        objects.push(read(&client, &target(context, name, args.appset_namespace.as_deref())).await?);
    }
    for object in objects {
        let name = object.name().unwrap_or_default();
        let question = format!("Are you sure you want to delete '{name}' and all its Applications?");
        if !args.yes && !confirm(&question)? {
            context.out.note(&format!("The command to delete '{name}' was cancelled."));
            continue;
        }
        delete(&client, &object, &without_children()).await?;
        if args.wait {
            let target = Target::of(&object).ok_or_else(|| CommandError::new("the set has no name"))?;
            wait(context, &client, &target, |set| set.is_none()).await?;
        }
        context.out.print(&format!("applicationset '{name}' deleted"));
    }
    Ok(ExitCode::Success)
}
