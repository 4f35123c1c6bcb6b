//! `plumb app patch`

use crate::context::{Context, change};
use crate::edit::patch::parse_patch;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::output::Format;
use crate::select::app::{AppArg, read_whole};
use crate::view::describe;

/// Patch an Application.
///
/// Example: `plumb app patch payments --type merge --patch '{"spec": {"source": {"targetRevision": "v1.2"}}}'`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    app: AppArg,
    /// The patch, as JSON or YAML.
    #[arg(long)]
    patch: String,
    /// `json` (RFC 6902) or `merge` (RFC 7396).
    #[arg(long = "type", default_value = "json", value_parser = ["json", "merge"])]
    kind: String,
    /// Output format of the result.
    #[arg(long, short = 'o', value_enum)]
    output: Option<Format>,
}

pub(super) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let patch = parse_patch(&args.patch, &args.kind)?;
    let client = context.client().await?;
    let target = args.app.target(context);
    read_whole(context, &client, &target).await?;
    let changed = change(&client, &target, &patch).await?;
    match args.output {
        None | Some(Format::Wide) => context.out.print(&format!("application '{}' patched", target.name)),
        Some(Format::Name) => {
            context.out.print(&format!("{}/{}", target.namespace.unwrap_or_default(), target.name));
        }
        Some(format) => context.out.object(format, &describe::readable(&changed))?,
    }
    Ok(ExitCode::Success)
}
