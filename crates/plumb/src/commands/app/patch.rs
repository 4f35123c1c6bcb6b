//! `plumb app patch`

use plumb_core::yaml::{Limits, parse_documents};
use plumb_kube::Patch;
use serde_json::Value;

use super::describe;
use super::target::{AppArg, read_whole};
use crate::context::{Context, change};
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::output::Format;

/// Change an Application by a patch.
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
    /// How to print the result.
    #[arg(long, short = 'o', value_enum)]
    output: Option<Format>,
}

pub(super) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let patch = parse_patch(&args.patch, &args.kind)?;
    let client = context.client().await?;
    let target = args.app.place(context);
    read_whole(context, &client, &target).await?;
    let changed = change(&client, &target, &patch).await?;
    match args.output {
        None | Some(Format::Wide) => context.out.say(&format!("application '{}' patched", target.name)),
        Some(Format::Name) => {
            context.out.say(&format!("{}/{}", target.namespace.unwrap_or_default(), target.name));
        }
        Some(format) => context.out.object(format, &describe::readable(&changed))?,
    }
    Ok(ExitCode::Success)
}

/// A patch from the command line.
pub(super) fn parse_patch(text: &str, kind: &str) -> Result<Patch, CommandError> {
    let documents = parse_documents(text, &Limits::default())
        .map_err(|error| CommandError::because("read --patch", error).exit(ExitCode::Usage))?;
    let value = documents.into_iter().map(|document| document.value).next().unwrap_or_default();
    match (kind, &value) {
        ("json", Value::Array(_)) => Ok(Patch::Json(value)),
        ("json", _) => Err(CommandError::usage("a patch of type json is a list of operations")
            .hint("for a map of fields use --type merge")),
        (_, Value::Object(_)) => Ok(Patch::Merge(value)),
        (_, _) => Err(CommandError::usage("a patch of type merge is a map of fields")
            .hint("for a list of operations use --type json")),
    }
}
