//! Which verb of `plumb proj` runs.

use super::{create, delete, edit, get, list, role, rules, windows};
use crate::context::Context;
use crate::error::CommandError;
use crate::exit::ExitCode;

/// Show projects and change what they allow.
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
    Edit(edit::Args),
    Delete(delete::Args),
    Windows(windows::Args),
    Role(role::Args),
    #[command(flatten)]
    Rule(rules::Command),
}

pub(crate) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    match &args.command {
        Command::List(args) => list::run(context, args).await,
        Command::Get(args) => get::run(context, args).await,
        Command::Create(args) => create::run(context, args).await,
        Command::Edit(args) => edit::run(context, args).await,
        Command::Delete(args) => delete::run(context, args).await,
        Command::Windows(args) => windows::run(context, args).await,
        Command::Role(args) => role::run(context, args).await,
        Command::Rule(command) => rules::run(context, command).await,
    }
}
