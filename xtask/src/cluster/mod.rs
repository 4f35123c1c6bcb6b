//! `cargo xtask cluster`: a real control plane on loopback.

use std::{path::PathBuf, process::ExitCode};

use clap::Subcommand;

/// Arguments of `cargo xtask cluster`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Build if needed, start a cluster, wait until it is ready.
    Up {
        /// Name of the cluster.
        #[arg(long, default_value = "default")]
        name: String,
        /// Port of the API server on 127.0.0.1; a free one unless given.
        #[arg(long)]
        port: Option<u16>,
        /// Directory for data, keys and logs; one in the user's cache unless given.
        #[arg(long)]
        dir: Option<PathBuf>,
    },
}

/// Runs the chosen command.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.command {
        Command::Up { name, port: _, dir: _ } => anyhow::bail!("cannot start cluster `{name}` yet"),
    }
}
