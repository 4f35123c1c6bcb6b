//! `plumb app actions`

use std::collections::BTreeMap;

use plumb_core::object::Manifest;
use serde_json::{Value, json};

use super::object_actions::Actions;
use crate::connect::cluster_of;
use crate::context::Context;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::output::Format;
use crate::select::app::AppArg;
use crate::select::object::ObjectChoice;

/// List and run actions on objects: restart, scale, promote, and those from the settings.
///
/// Examples: `plumb app actions list payments --kind Deployment`, `plumb app actions run payments restart --kind
/// Deployment --resource-name web`
#[derive(Debug, clap::Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    List(ListArgs),
    Run(RunArgs),
}

/// List the actions of an app's objects.
///
/// Example: `plumb app actions list payments --kind Deployment`
#[derive(Debug, clap::Args)]
struct ListArgs {
    #[command(flatten)]
    app: AppArg,
    #[command(flatten)]
    choice: ObjectChoice,
    /// Output format.
    #[arg(long, short = 'o', value_enum, default_value_t = Format::Wide)]
    output: Format,
}

/// Run an action on an app's objects.
///
/// Example: `plumb app actions run payments restart --kind Deployment --resource-name web`
#[derive(Debug, clap::Args)]
struct RunArgs {
    #[command(flatten)]
    app: AppArg,
    /// Name of the action, as `list` prints it.
    action: String,
    #[command(flatten)]
    choice: ObjectChoice,
    /// Run it on all objects that match.
    #[arg(long)]
    all: bool,
    /// A parameter of the action: `name=value`.
    #[arg(long, value_name = "NAME=VALUE")]
    param: Vec<String>,
}

pub(super) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    match &args.command {
        Command::List(args) => list(context, args).await,
        Command::Run(args) => act(context, args).await,
    }
}

async fn list(context: &Context, args: &ListArgs) -> Result<ExitCode, CommandError> {
    let home = context.client_of_all_kinds().await?;
    let (_, application) = args.app.read(context, &home).await?;
    let client = cluster_of(context, &home, &application).await?;
    let actions = Actions::of(context, &home, &application).await?;
    let mut rows = Vec::new();
    let mut found = Vec::new();
    for object in args.choice.find(context, &client, &application).await? {
        let name = object.name().unwrap_or_default();
        for action in actions.list(&object).await? {
            rows.push(vec![
                object.group().to_owned(),
                object.kind().to_owned(),
                name.to_owned(),
                action.name.clone(),
                action.disabled.to_string(),
            ]);
            let object = json!({"group": object.group(), "kind": object.kind(), "name": name});
            found.push(json!({"resource": object, "action": action.name, "disabled": action.disabled}));
        }
    }
    match args.output {
        Format::Wide => context.out.table(&["GROUP", "KIND", "NAME", "ACTION", "DISABLED"], &rows),
        Format::Name => {
            for row in &rows {
                context.out.print(row.get(3).map(String::as_str).unwrap_or_default());
            }
        }
        format => context.out.object(format, &Value::Array(found))?,
    }
    Ok(ExitCode::Success)
}

async fn act(context: &Context, args: &RunArgs) -> Result<ExitCode, CommandError> {
    let mut params = BTreeMap::new();
    for text in &args.param {
        let (name, value) = text
            .split_once('=')
            .ok_or_else(|| CommandError::usage(format!("--param {text}: expected NAME=VALUE")))?;
        params.insert(name.to_owned(), value.to_owned());
    }
    let home = context.client_of_all_kinds().await?;
    let (_, application) = args.app.read(context, &home).await?;
    let client = cluster_of(context, &home, &application).await?;
    let actions = Actions::of(context, &home, &application).await?;
    let mut objects = Vec::new();
    for object in args.choice.find(context, &client, &application).await? {
        // An object whose actions cannot be listed has none.
        let listed = actions.list(&object).await.unwrap_or_default();
        if listed.iter().any(|action| action.name == args.action) {
            objects.push(object);
        }
    }
    if objects.is_empty() {
        return Err(CommandError::new(format!("no matching object has the action {}", args.action))
            .hint(format!("`plumb app actions list {}` lists the actions", application.metadata.name)));
    }
    if objects.len() > 1 && !args.all {
        return Err(CommandError::usage(format!("{} objects match; narrow it down", objects.len()))
            .hint("use --kind and --resource-name, or --all"));
    }
    objects.sort_by_key(Manifest::key);
    for object in &objects {
        let name = object.name().unwrap_or_default();
        let listed = actions.list(object).await?;
        if listed.iter().any(|action| action.name == args.action && action.disabled) {
            let what = format!("run {} on {} {name}", args.action, object.kind());
            return Err(CommandError::new(format!(
                "cannot {what}: the action is disabled in its current state"
            )));
        }
        actions.run(&client, object, &args.action, &params).await?;
        context.out.print(&format!("{} {name}: {}", object.kind(), args.action));
    }
    Ok(ExitCode::Success)
}
