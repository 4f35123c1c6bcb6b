//! Which verb of `plumb app` runs.

use super::{
    actions, confirm_deletion, create, delete, delete_resource, diff, edit, get, get_resource, history, list,
    logs, manifests, patch, patch_resource, plan, resources, rollback, set, sources, sync, terminate_op,
    unset, wait,
};
use crate::context::{Context, NamespaceMeans};
use crate::error::CommandError;
use crate::exit::ExitCode;

/// Show, change and sync Applications.
#[derive(Debug, clap::Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    List(list::Args),
    Get(get::Args),
    Diff(Box<diff::Args>),
    Plan(plan::Args),
    Sync(Box<sync::Args>),
    Wait(wait::Args),
    Rollback(rollback::Args),
    TerminateOp(terminate_op::Args),
    History(history::Args),
    Resources(resources::Args),
    Manifests(manifests::Args),
    Logs(logs::Args),
    Actions(actions::Args),
    Create(Box<create::Args>),
    Set(Box<set::Args>),
    Unset(unset::Args),
    Edit(edit::Args),
    Patch(patch::Args),
    #[command(visible_alias = "rm")]
    Delete(delete::Args),
    AddSource(Box<sources::AddArgs>),
    RemoveSource(sources::RemoveArgs),
    GetResource(get_resource::Args),
    PatchResource(patch_resource::Args),
    DeleteResource(delete_resource::Args),
    ConfirmDeletion(confirm_deletion::Args),
}

impl Args {
    /// What `--namespace` means for the verb.
    pub(crate) fn namespace_means(&self) -> NamespaceMeans {
        match &self.command {
            Command::Logs(_)
            | Command::Actions(_)
            | Command::GetResource(_)
            | Command::PatchResource(_)
            | Command::DeleteResource(_) => NamespaceMeans::Objects,
            _ => NamespaceMeans::ControlPlane,
        }
    }
}

pub(crate) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    match &args.command {
        Command::List(args) => list::run(context, args).await,
        Command::Get(args) => get::run(context, args).await,
        Command::Diff(args) => diff::run(context, args).await,
        Command::Plan(args) => plan::run(context, args).await,
        Command::Sync(args) => sync::run(context, args).await,
        Command::Wait(args) => wait::run(context, args).await,
        Command::History(args) => history::run(context, args).await,
        Command::Resources(args) => resources::run(context, args).await,
        Command::Manifests(args) => manifests::run(context, args).await,
        Command::Actions(args) => actions::run(context, args).await,
        Command::Logs(args) => logs::run(context, args).await,
        Command::Rollback(args) => rollback::run(context, args).await,
        Command::TerminateOp(args) => terminate_op::run(context, args).await,
        Command::Create(args) => create::run(context, args).await,
        Command::Set(args) => set::run(context, args).await,
        Command::Unset(args) => unset::run(context, args).await,
        Command::Edit(args) => edit::run(context, args).await,
        Command::Patch(args) => patch::run(context, args).await,
        Command::Delete(args) => delete::run(context, args).await,
        Command::AddSource(args) => sources::add(context, args).await,
        Command::RemoveSource(args) => sources::remove(context, args).await,
        Command::GetResource(args) => get_resource::run(context, args).await,
        Command::PatchResource(args) => patch_resource::run(context, args).await,
        Command::DeleteResource(args) => delete_resource::run(context, args).await,
        Command::ConfirmDeletion(args) => confirm_deletion::run(context, args).await,
    }
}
