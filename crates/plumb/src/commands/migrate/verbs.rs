//! Which verb of `plumb migrate` runs.

use super::check;
use crate::context::Context;
use crate::error::CommandError;
use crate::exit::ExitCode;

/// Move from Argo CD to plumb.
#[derive(Debug, clap::Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Check(Box<check::Args>),
}

pub(crate) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    match &args.command {
        Command::Check(args) => check::run(context, args).await,
    }
}
