//! `plumb app sync`

use plumb_crd::Application;
use plumb_crd::application::OperationState;
use plumb_kube::{ClusterClient, Target};
use serde_json::json;

use super::args::Args;
use super::request;
use crate::context::{Context, limit};
use crate::edit::json_path::pair;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::follow::operation::follow_operation;
use crate::select::app::{self, patch};
use crate::select::apps::AppSelection;
use crate::view::describe::print_summary;
use crate::view::rows::{ObjectRow, object_rows};
use crate::view::{plan_table, rows};

pub(in crate::commands::app) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    refuse(args)?;
    let client = context.client().await?;
    let chosen = AppSelection {
        names: &args.apps,
        selector: args.selector.as_deref(),
        projects: &args.project,
        namespace: args.app_namespace.as_deref(),
    };
    let targets = chosen.targets(context, &client).await?;
    let mut code = ExitCode::Success;
    for target in &targets {
        if !sync(context, &client, target, args).await? {
            code = ExitCode::No;
        }
    }
    Ok(code)
}

fn refuse(args: &Args) -> Result<(), CommandError> {
    if args.apps.is_empty() && args.selector.is_none() && args.project.is_empty() {
        return Err(CommandError::usage("no application given")
            .hint("`plumb app sync payments`, -l team=payments, or --project payments"));
    }
    for label in &args.label {
        pair("--label", label)?;
    }
    if args.local_repo_root.is_some() && args.local.is_none() {
        return Err(CommandError::refused_flag("--local-repo-root", "plumb syncs only from Git"));
    }
    if args.local.is_some() {
        return Err(CommandError::refused_flag("--local", "plumb syncs only from Git").hint(
            "`plumb app diff APP --local DIRECTORY` shows what it would change; commit it, then sync",
        ));
    }
    if args.preview_changes {
        return Err(CommandError::refused_flag("--preview-changes", "use --dry-run instead")
            .hint("`plumb app sync APP --dry-run` or `plumb app diff APP` shows the changes; then sync"));
    }
    if args.assume_yes {
        return Err(CommandError::refused_flag("--assumeYes", "sync does not ask for confirmation"));
    }
    if args.revisions.len() != args.source_positions.len() + args.source_names.len() {
        return Err(CommandError::usage("each --revisions needs one --source-positions or --source-names"));
    }
    Ok(())
}

/// Requests one sync and follows it. Returns whether it succeeded.
async fn sync(
    context: &Context,
    client: &ClusterClient,
    target: &Target,
    args: &Args,
) -> Result<bool, CommandError> {
    let application = app::read(context, client, target).await?;
    if application.is_terminating() {
        return Err(CommandError::new(format!("application {} is being deleted", target.name)));
    }
    if application.operation.is_some() {
        return Err(CommandError::new(format!(
            "another operation is already in progress on {}",
            target.name
        ))
        .hint(format!(
            "`plumb app wait {0} --operation` waits for it, `plumb app terminate-op {0}` stops it",
            target.name
        )));
    }
    let request = request::build(context, &application, args).await?;
    patch(client, target, json!({"operation": request, "status": {"operationState": null}})).await?;
    if args.no_wait {
        context.out.note(&format!("sync of {} requested", target.name));
        return Ok(true);
    }
    let ended = tokio::time::timeout(
        limit(args.timeout),
        follow_operation(context, client, target, &application, args.output),
    )
    .await;
    let (application, state) = ended.map_err(|_| {
        CommandError::new(format!("timed out after {} s: {} is not synced yet", args.timeout, target.name))
            .hint(format!("the sync continues; `plumb app wait {}` waits again", target.name))
    })??;
    show(context, client, &application, &state, args).await?;
    Ok(state.phase == "Succeeded")
}

async fn show(
    context: &Context,
    client: &ClusterClient,
    application: &Application,
    state: &OperationState,
    args: &Args,
) -> Result<(), CommandError> {
    if args.output.is_data() {
        return context.out.object(args.output, &application.to_json());
    }
    if args.dry_run {
        plan_table::show(context.out, state);
    }
    print_summary(context.out, application);
    if args.dry_run {
        return Ok(());
    }
    let mut all = object_rows(application);
    rows::read_health(client, &mut all).await;
    let rows: Vec<Vec<String>> = all.iter().map(ObjectRow::row).collect();
    if !rows.is_empty() {
        context.out.print("");
        context.out.table(&rows::COLUMNS, &rows);
    }
    let waiting = all.iter().filter(|state| state.message.starts_with("requires pruning")).count();
    if waiting > 0 && !args.prune && state.phase == "Succeeded" {
        context
            .out
            .note(&format!("{waiting} objects were removed from Git but not pruned: --prune deletes them"));
    }
    Ok(())
}
