//! `plumb`: the engine and its command line. A link named `argocd` answers to argocd's commands.

mod commands;
mod config;
mod error;
mod exit;
mod output;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// A `GitOps` engine in which `OutOfSync` means that something is wrong.
#[derive(Debug, Parser)]
#[command(name = "plumb", version, about, propagate_version = true, max_term_width = 100)]
struct Cli {
    #[command(flatten)]
    connection: config::ConnectionArgs,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Reconcile Applications until stopped.
    Run(commands::run::Args),
    /// Print (or apply) what plumb needs in a cluster.
    Install(commands::install::Args),
    /// Look at Applications and sync them.
    App(commands::app::Args),
    /// Every difference, explained: per class, then per app.
    Drift(commands::drift::Args),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let outcome = match cli.command {
        Command::Run(args) => commands::run::run(&cli.connection, args),
        Command::Install(args) => commands::install::run(&cli.connection, &args),
        Command::App(args) => commands::app::run(&cli.connection, &args),
        Command::Drift(args) => commands::drift::run(&cli.connection, &args),
    };
    match outcome {
        Ok(code) => code.into(),
        Err(error) => {
            output::complain(&error.to_string());
            error.code().into()
        }
    }
}
