//! Which verb of `plumb appset` runs.

use super::{confirm_deletion, create, delete, generate, get, list};
use crate::context::Context;
use crate::error::CommandError;
use crate::exit::ExitCode;

/// Show and change `ApplicationSets`, and what they generate.
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
    Create(create::Args),
    Delete(delete::Args),
    Generate(generate::Args),
    ConfirmDeletion(confirm_deletion::Args),
}

pub(crate) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    match &args.command {
        Command::List(args) => list::run(context, args).await,
        Command::Get(args) => get::run(context, args).await,
        Command::Create(args) => create::run(context, args).await,
        Command::Delete(args) => delete::run(context, args).await,
        Command::Generate(args) => generate::run(context, args).await,
        Command::ConfirmDeletion(args) => confirm_deletion::run(context, args).await,
    }
}
