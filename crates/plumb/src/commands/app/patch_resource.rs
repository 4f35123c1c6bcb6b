//! `plumb app patch-resource`

use plumb_kube::{Patch, Target};

use crate::connect::cluster_of;
use crate::context::{Context, change};
use crate::edit::patch::parse_patch;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::select::app::AppArg;
use crate::select::object::ObjectChoice;

/// Patch live objects of an Application. Self-heal reverts the change at once.
///
/// Example: `plumb app patch-resource payments --kind Deployment --resource-name web --patch-type
/// application/merge-patch+json --patch '{"spec": {"paused": true}}'`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    app: AppArg,
    #[command(flatten)]
    choice: ObjectChoice,
    /// The patch, as JSON or YAML.
    #[arg(long)]
    patch: String,
    /// Type of the patch.
    #[arg(long, default_value = "application/merge-patch+json", value_parser =
        ["application/merge-patch+json", "application/json-patch+json", "merge", "json"])]
    patch_type: String,
    /// Patch all objects that match.
    #[arg(long)]
    all: bool,
}

pub(super) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    if args.choice.kind.is_none() {
        return Err(CommandError::usage("--kind is required").hint("such as --kind Deployment"));
    }
    let kind = if args.patch_type.contains("merge") { "merge" } else { "json" };
    let patch: Patch = parse_patch(&args.patch, kind)?;
    let home = context.client_of_all_kinds().await?;
    let (_, application) = args.app.read(context, &home).await?;
    let client = cluster_of(context, &home, &application).await?;
    let objects = if args.all {
        args.choice.find(context, &client, &application).await?
    } else {
        vec![args.choice.find_one(context, &client, &application).await?]
    };
    for object in objects {
        let Some(target) = Target::of(&object) else { continue };
        change(&client, &target, &patch).await?;
        context.out.print(&format!("Resource '{}' patched", target.name));
    }
    Ok(ExitCode::Success)
}
