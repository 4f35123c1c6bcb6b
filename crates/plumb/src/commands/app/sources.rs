//! `plumb app add-source` and `plumb app remove-source`

use serde_json::{Value, json};

use crate::context::Context;
use crate::edit::json_path::{list, map};
use crate::edit::spec::{SourceChoice, SourceFlags};
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::select::app::{AppArg, edit_spec};

/// Add a source to an Application.
///
/// Example: `plumb app add-source payments --repo https://example.com/values.git --ref values`
#[derive(Debug, clap::Args)]
pub(crate) struct AddArgs {
    #[command(flatten)]
    app: AppArg,
    /// A name for the source.
    #[arg(long, value_name = "NAME")]
    source_name: Option<String>,
    #[command(flatten)]
    source: SourceFlags,
}

/// Remove one of an Application's sources.
///
/// Example: `plumb app remove-source payments --source-position 2`
#[derive(Debug, clap::Args)]
pub(crate) struct RemoveArgs {
    #[command(flatten)]
    app: AppArg,
    #[command(flatten)]
    choice: SourceChoice,
}

pub(super) async fn add(context: &Context, args: &AddArgs) -> Result<ExitCode, CommandError> {
    args.source.refuse()?;
    if args.source.repo.is_none() {
        return Err(CommandError::usage("--repo is required"));
    }
    let client = context.client().await?;
    let target = args.app.target(context);
    edit_spec(context, &client, &target, |spec| {
        let mut source = json!({});
        args.source.apply(&mut source)?;
        if let Some(name) = &args.source_name {
            source["name"] = json!(name);
        }
        let spec = map(spec);
        let present = spec.remove("source");
        let sources = list(spec.entry("sources").or_insert(Value::Null));
        if sources.is_empty() {
            sources.extend(present);
        }
        sources.push(source);
        Ok(())
    })
    .await?;
    context.out.print(&format!("application '{}' updated: it has one more source", target.name));
    Ok(ExitCode::Success)
}

pub(super) async fn remove(context: &Context, args: &RemoveArgs) -> Result<ExitCode, CommandError> {
    let client = context.client().await?;
    let target = args.app.target(context);
    edit_spec(context, &client, &target, |spec| {
        let n = spec.get("sources").and_then(Value::as_array).map_or(0, Vec::len);
        if n == 0 {
            return Err(CommandError::usage("the app does not use `sources`"));
        }
        if n == 1 {
            return Err(CommandError::usage("cannot remove the only source of the app"));
        }
        let index = args.choice.index(spec)?;
        list(map(spec).entry("sources").or_insert(Value::Null)).remove(index);
        Ok(())
    })
    .await?;
    context.out.print(&format!("application '{}' updated successfully", target.name));
    Ok(ExitCode::Success)
}
