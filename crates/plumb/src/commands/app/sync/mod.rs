//! `plumb app sync`

mod operation;

pub(super) use operation::{revisions_of, set_options};

use jiff::Timestamp;
use plumb_crd::Application;
use plumb_crd::application::OperationState;
use plumb_kube::{ClusterClient, ObjectEvent, Target};
use serde_json::json;

use super::chosen::Chosen;
use super::desk::RenderArgs;
use super::progress::Progress;
use super::refresh::{PATIENCE, follow, no_engine};
use super::resource_filter::ResourceFilter;
use super::target::{self, parse, patch};
use super::{plan_table, states, wait};
use crate::commands::json::pair;
use crate::context::{Context, limit};
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::output::Format;

/// Make the cluster equal to Git, and wait until it is.
///
/// Shows waves, hooks, and what is waited for and why. Exit code 0: it succeeded; 1: it did not; 20: not in time.
///
/// Examples: `plumb app sync payments --prune`, `plumb app sync payments --resource apps:Deployment:web`,
/// `plumb app sync -l team=payments --async`
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is one flag of the command line")]
pub(crate) struct Args {
    /// `name`, or `namespace/name`; several are synced one after the other.
    #[arg(value_name = "APP", add = crate::commands::completion::apps())]
    apps: Vec<String>,
    /// Those with these labels, in place of names.
    #[arg(long, short = 'l', conflicts_with = "apps")]
    selector: Option<String>,
    /// Those of these projects, in place of names.
    #[arg(long, conflicts_with = "apps", add = crate::commands::completion::projects())]
    project: Vec<String>,
    /// Namespace of the Applications, where it is not the control plane's.
    #[arg(long, short = 'N', value_name = "NAMESPACE")]
    app_namespace: Option<String>,
    /// Delete what left Git.
    #[arg(long)]
    prune: bool,
    /// Only say what would be done.
    #[arg(long)]
    dry_run: bool,
    /// Sync to this revision instead of the app's.
    #[arg(long)]
    revision: Option<String>,
    /// Sync the sources of --source-positions or --source-names to these revisions.
    #[arg(long, value_name = "REVISION")]
    revisions: Vec<String>,
    /// The sources that --revisions are for, counted from 1.
    #[arg(long, value_name = "N")]
    source_positions: Vec<usize>,
    /// The sources that --revisions are for, by name.
    #[arg(long, value_name = "NAME", conflicts_with = "source_positions")]
    source_names: Vec<String>,
    /// Only these objects: `[!]GROUP:KIND:[NAMESPACE/]NAME`, `*` for any.
    #[arg(long, value_name = "RESOURCE")]
    resource: Vec<ResourceFilter>,
    /// Only objects that have one of these labels in Git: `name=value`.
    #[arg(long, value_name = "NAME=VALUE", conflicts_with = "resource")]
    label: Vec<String>,
    /// `hook`: run hooks (the default); `apply`: leave them out.
    #[arg(long, value_parser = ["apply", "hook"])]
    strategy: Option<String>,
    /// Delete and create anew what cannot be changed.
    #[arg(long)]
    force: bool,
    /// Replace objects in place of applying them.
    #[arg(long)]
    replace: bool,
    /// Apply on the server (plumb always does; this is for the app's options in the operation).
    #[arg(long)]
    server_side: bool,
    /// Leave alone what is in sync already.
    #[arg(long)]
    apply_out_of_sync_only: bool,
    /// A line for the operation's record: `name=value`.
    #[arg(long, value_name = "NAME=VALUE")]
    info: Vec<String>,
    /// How often to try again after a failure.
    #[arg(long)]
    retry_limit: Option<i64>,
    /// Resolve the revision anew on each try.
    #[arg(long)]
    retry_refresh: bool,
    /// The first wait between tries, such as `5s`.
    #[arg(long)]
    retry_backoff_duration: Option<String>,
    /// The longest wait between tries.
    #[arg(long)]
    retry_backoff_max_duration: Option<String>,
    /// What each next wait is multiplied with.
    #[arg(long)]
    retry_backoff_factor: Option<i64>,
    /// Do not wait.
    #[arg(long = "async")]
    no_wait: bool,
    /// Give up waiting after this many seconds; 0 never.
    #[arg(long, default_value_t = 0)]
    timeout: u64,
    /// How to print the result.
    #[arg(long, short = 'o', value_enum, default_value_t = Format::Wide)]
    output: Format,
    /// Refused: an operation cannot be previewed and started in one go.
    #[arg(long, hide = true)]
    preview_changes: bool,
    /// Refused together with --preview-changes.
    #[arg(long, visible_alias = "assumeYes", hide = true)]
    assume_yes: bool,
    /// Refused: what is not in Git would be drift a moment later.
    #[arg(long, hide = true, value_name = "DIRECTORY")]
    local: Option<String>,
    /// Refused together with --local.
    #[arg(long, hide = true, value_name = "DIRECTORY")]
    local_repo_root: Option<String>,
    #[command(flatten)]
    render: RenderArgs,
}

pub(super) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    refuse(args)?;
    let client = context.client().await?;
    let chosen = Chosen {
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
        return Err(CommandError::usage("no app is named")
            .hint("`plumb app sync payments`, -l team=payments, or --project payments"));
    }
    for label in &args.label {
        pair("--label", label)?;
    }
    if args.local_repo_root.is_some() && args.local.is_none() {
        return Err(CommandError::refused_flag("--local-repo-root", "nothing is synced from a checkout"));
    }
    if args.local.is_some() {
        return Err(CommandError::refused_flag(
            "--local",
            "what is not in Git would be drift a moment later",
        )
        .hint("`plumb app diff APP --local DIRECTORY` shows what it would change; commit it, then sync"));
    }
    if args.preview_changes {
        return Err(CommandError::refused_flag("--preview-changes", "it asks and acts in one go")
            .hint("`plumb app sync APP --dry-run` or `plumb app diff APP` shows the changes; then sync"));
    }
    if args.assume_yes {
        return Err(CommandError::refused_flag("--assumeYes", "nothing is asked"));
    }
    if args.revisions.len() != args.source_positions.len() + args.source_names.len() {
        return Err(CommandError::usage(
            "each of --revisions needs its --source-positions or --source-names",
        ));
    }
    Ok(())
}

/// Asks for one sync and sees it through. Says whether it succeeded.
async fn sync(
    context: &Context,
    client: &ClusterClient,
    target: &Target,
    args: &Args,
) -> Result<bool, CommandError> {
    let application = target::read(context, client, target).await?;
    if application.is_terminating() {
        return Err(CommandError::new(format!("application {} is being deleted", target.name)));
    }
    if application.operation.is_some() {
        return Err(CommandError::new(format!(
            "another operation is already in progress on {}",
            target.name
        ))
        .hint(format!(
            "`plumb app wait {0} --operation` waits for it, `plumb app terminate-op {0}` ends it",
            target.name
        )));
    }
    let before = application.status.operation_state.as_ref().map(|state| state.started_at);
    let request = operation::build(context, &application, args).await?;
    patch(client, target, json!({"operation": request, "status": {"operationState": null}})).await?;
    if args.no_wait {
        context.out.complain(&format!("sync of {} asked for", target.name));
        return Ok(true);
    }
    let ended = tokio::time::timeout(
        limit(args.timeout),
        follow_operation(context, client, target, before, &application),
    )
    .await;
    let (application, state) = ended.map_err(|_| {
        CommandError::new(format!("timed out after {} s: {} is not synced yet", args.timeout, target.name))
            .hint(format!("the sync goes on; `plumb app wait {}` waits again", target.name))
    })??;
    show(context, client, &application, &state, args).await?;
    Ok(state.phase == "Succeeded")
}

/// Follows the operation until it has ended, and tells how it goes on. `before`: when the one before it began.
pub(super) async fn follow_operation(
    context: &Context,
    client: &ClusterClient,
    target: &Target,
    before: Option<Timestamp>,
    known: &Application,
) -> Result<(Application, OperationState), CommandError> {
    let mut events = follow(client, target)?;
    let mut progress = Progress::new(context.out, known);
    let mut begun = false;
    loop {
        let event = if begun {
            progress.next(&mut events).await
        } else if let Ok(event) = tokio::time::timeout(PATIENCE, progress.next(&mut events)).await {
            event
        } else {
            begun = true;
            progress.complain(&no_engine(target));
            continue;
        };
        match event {
            Some(ObjectEvent::Seen(manifest)) => {
                let application = parse(&manifest)?;
                let Some(state) = application.status.operation_state.clone() else { continue };
                begun = true;
                progress.tell(&application, Timestamp::now());
                // Times have whole seconds: one that began in the same second is new, too, because asking for
                // it removed the state of the one before.
                let is_new = before.is_none_or(|before| state.started_at >= before);
                let has_ended = matches!(state.phase.as_str(), "Succeeded" | "Failed" | "Error");
                if has_ended && application.operation.is_none() && is_new {
                    progress.end();
                    return Ok((application, *state));
                }
            }
            Some(ObjectEvent::Gone { .. }) => {
                return Err(CommandError::new(format!("application {} was deleted", target.name)));
            }
            Some(ObjectEvent::Trouble(trouble)) => progress.complain(&trouble),
            Some(ObjectEvent::Listed) => {}
            None => {
                return Err(CommandError::new(format!("the watch of application {} ended", target.name)));
            }
        }
    }
}

async fn show(
    context: &Context,
    client: &ClusterClient,
    application: &Application,
    state: &OperationState,
    args: &Args,
) -> Result<(), CommandError> {
    if matches!(args.output, Format::Json | Format::Yaml) {
        return context.out.object(args.output, &application.to_json());
    }
    if args.dry_run {
        plan_table::show(context.out, state);
    }
    wait::conclude(context, application);
    if args.dry_run {
        return Ok(());
    }
    let mut all = states::states(application);
    states::look_at_health(client, &mut all).await;
    let rows: Vec<Vec<String>> = all.iter().map(states::State::row).collect();
    if !rows.is_empty() {
        context.out.say("");
        context.out.table(&states::COLUMNS, &rows);
    }
    let waiting = all.iter().filter(|state| state.message.starts_with("requires pruning")).count();
    if waiting > 0 && !args.prune && state.phase == "Succeeded" {
        context
            .out
            .complain(&format!("{waiting} objects left Git and are still there: --prune deletes them"));
    }
    Ok(())
}
