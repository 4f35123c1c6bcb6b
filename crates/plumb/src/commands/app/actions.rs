//! `plumb app actions`

use std::collections::BTreeMap;

use jiff::Timestamp;
use plumb_core::object::Manifest;
use plumb_kube::{ClusterClient, Patch, PatchOptions, Target, WritePermit};
use plumb_lua::{Impact, Limits, Scripts, Write};
use serde_json::{Value, json};

use crate::connect::cluster_of;
use crate::context::{Context, FIELD_MANAGER, change, create, gate, key_of};
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::kinds;
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
    let scripts = scripts(context, &home).await?;
    let mut rows = Vec::new();
    let mut found = Vec::new();
    for object in args.choice.find(context, &client, &application).await? {
        let name = object.name().unwrap_or_default();
        let actions = scripts.list_actions(&object).map_err(|error| {
            CommandError::because(format!("list the actions of {} {name}", object.kind()), error)
        })?;
        for action in actions {
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
    let scripts = scripts(context, &home).await?;
    let has_action = |object: &Manifest| {
        scripts
            .list_actions(object)
            .is_ok_and(|actions| actions.iter().any(|action| action.name == args.action))
    };
    let found = args.choice.find(context, &client, &application).await?;
    let mut objects: Vec<Manifest> = found.into_iter().filter(|object| has_action(object)).collect();
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
        let what = || format!("run {} on {} {name}", args.action, object.kind());
        let listed = scripts.list_actions(object).map_err(|error| CommandError::because(what(), error))?;
        if listed.iter().any(|action| action.name == args.action && action.disabled) {
            return Err(CommandError::new(format!(
                "cannot {}: the action is disabled in its current state",
                what()
            )));
        }
        let impacts = scripts
            .run_action(object, &args.action, &params, Timestamp::now())
            .map_err(|error| CommandError::because(what(), error))?;
        for impact in &impacts {
            send(&client, object, impact).await?;
        }
        context.out.print(&format!("{} {name}: {}", object.kind(), args.action));
    }
    Ok(ExitCode::Success)
}

/// The built-in actions and those of the settings.
async fn scripts(context: &Context, client: &ClusterClient) -> Result<Scripts, CommandError> {
    let settings = client
        .get_at(&kinds::config_map(), Some(context.namespace()), "argocd-cm")
        .await
        .map_err(|error| CommandError::api("read the settings in argocd-cm", error))?;
    let data = settings.as_ref().and_then(|settings| settings.value().get("data")?.as_object());
    let data: BTreeMap<String, String> = data
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect();
    let (scripts, problems) = Scripts::parse(&data, Limits::default());
    for problem in problems {
        context.out.note(&format!("warning: argocd-cm: {problem}"));
    }
    Ok(scripts)
}

/// Writes one change of an action.
async fn send(client: &ClusterClient, live: &Manifest, impact: &Impact) -> Result<(), CommandError> {
    match impact.write(live) {
        None => Ok(()),
        Some(Write::Create(object)) => {
            let object = Manifest::new(object)
                .map_err(|error| CommandError::because("read the object that the action creates", error))?;
            create(client, &object).await.map(drop)
        }
        Some(Write::Patch { body, status }) => {
            let target = Target::of(live).ok_or_else(|| CommandError::new("the object has no name"))?;
            if let Some(body) = body {
                change(client, &target, &Patch::Merge(body)).await?;
            }
            if let Some(status) = status {
                send_status(client, &target, status).await?;
            }
            Ok(())
        }
    }
}

/// Writes the status: to the status subresource, or to the object if the kind has none.
async fn send_status(client: &ClusterClient, target: &Target, status: Value) -> Result<(), CommandError> {
    let key = key_of(target);
    let permit = WritePermit::requested_by_user(key.clone());
    let options = PatchOptions {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        subresource: Some("status".to_owned()),
    };
    let patch = Patch::Merge(status);
    match gate(client).patch(&permit, target, &patch, &options).await {
        Ok(_) => Ok(()),
        Err(error) if error.api().is_some_and(plumb_kube::ApiError::is_not_found) => {
            change(client, target, &patch).await.map(drop)
        }
        Err(error) => Err(CommandError::write(format!("change the status of {key}"), error)),
    }
}
