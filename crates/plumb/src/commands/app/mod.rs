//! `plumb app`: argocd's words for looking at Applications, changing and syncing them.

mod create;
mod delete;
mod describe;
mod diff;
mod edit;
mod get;
mod list;
mod patch;
mod progress;
mod refresh;
mod resource_filter;
mod set;
mod spec;
mod states;
mod sync;
pub(crate) mod target;
mod tree;
mod unset;
mod wait;

use crate::context::{Context, NamespaceMeans};
use crate::error::CommandError;
use crate::exit::ExitCode;

/// Look at Applications, change and sync them.
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
    Diff(diff::Args),
    Sync(sync::Args),
    Wait(wait::Args),
    Create(create::Args),
    Set(set::Args),
    Unset(unset::Args),
    Edit(edit::Args),
    Patch(patch::Args),
    #[command(visible_alias = "rm")]
    Delete(delete::Args),
}

impl Args {
    /// What `--namespace` means to the command.
    #[expect(clippy::unused_self, reason = "commands about single objects will differ")]
    pub(crate) fn namespace_means(&self) -> NamespaceMeans {
        NamespaceMeans::ControlPlane
    }
}

pub(crate) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    match &args.command {
        Command::List(args) => list::run(context, args).await,
        Command::Get(args) => get::run(context, args).await,
        Command::Diff(args) => diff::run(context, args).await,
        Command::Sync(args) => sync::run(context, args).await,
        Command::Wait(args) => wait::run(context, args).await,
        Command::Create(args) => create::run(context, args).await,
        Command::Set(args) => set::run(context, args).await,
        Command::Unset(args) => unset::run(context, args).await,
        Command::Edit(args) => edit::run(context, args).await,
        Command::Patch(args) => patch::run(context, args).await,
        Command::Delete(args) => delete::run(context, args).await,
    }
}
