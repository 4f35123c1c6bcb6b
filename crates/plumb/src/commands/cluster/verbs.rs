//! Which verb of `plumb cluster` runs.

use super::{add, get, list, rm, rotate_auth, set};
use crate::context::{Context, NamespaceMeans};
use crate::error::CommandError;
use crate::exit::ExitCode;

/// Show, register and remove clusters. Credentials are never shown.
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
    Add(Box<add::Args>),
    Rm(rm::Args),
    Set(set::Args),
    RotateAuth(rotate_auth::Args),
}

impl Args {
    /// What `--namespace` means for the verb.
    pub(crate) fn namespace_means(&self) -> NamespaceMeans {
        match &self.command {
            Command::Add(_) | Command::Set(_) => NamespaceMeans::Objects,
            Command::List(_) | Command::Get(_) | Command::Rm(_) | Command::RotateAuth(_) => {
                NamespaceMeans::ControlPlane
            }
        }
    }
}

pub(crate) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    match &args.command {
        Command::List(args) => list::run(context, args).await,
        Command::Get(args) => get::run(context, args).await,
        Command::Add(args) => add::run(context, args).await,
        Command::Rm(args) => rm::run(context, args).await,
        Command::Set(args) => set::run(context, args).await,
        Command::RotateAuth(args) => rotate_auth::run(context, args).await,
    }
}
