//! `cargo xtask cluster`: start, stop and list real control planes on 127.0.0.1.

use std::{path::PathBuf, process::ExitCode, time::Instant};

use anyhow::{Context as _, Result, bail};
use clap::Subcommand;
use plumb_testkit::cluster::{self, Condition, Layout, Programs, StartOptions};

use super::show::{self, Progress, say};

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
        #[arg(long, default_value = DEFAULT_NAME)]
        name: String,
        /// Port of the API server on 127.0.0.1 [default: a free one].
        #[arg(long)]
        port: Option<u16>,
        /// Directory for data, keys and logs [default: one in the user's cache].
        #[arg(long)]
        dir: Option<PathBuf>,
    },
    /// Stop a cluster and remove its data.
    Down {
        /// Name of the cluster.
        #[arg(required_unless_present = "all")]
        name: Option<String>,
        /// Stop every cluster of this user that `list` shows.
        #[arg(long, conflicts_with = "name")]
        all: bool,
    },
    /// Show the clusters of this user, and the processes that dead ones left running.
    List,
    /// Build the programs if needed, and start no cluster.
    Build,
    /// Print the variables for a shell: `eval "$(cargo xtask cluster env)"`.
    Env {
        /// Name of the cluster.
        #[arg(long, default_value = DEFAULT_NAME)]
        name: String,
    },
}

const DEFAULT_NAME: &str = "default";

/// Runs the chosen command.
pub(crate) fn run(args: Args) -> Result<ExitCode> {
    let layout = Layout::from_environment()?;
    match args.command {
        Command::Up { name, port, dir } => up(&layout, &name, &StartOptions { port, directory: dir }),
        Command::Down { name: Some(name), .. } => down(&layout, &name),
        Command::Down { name: None, .. } => down_all(&layout),
        Command::List => list(&layout),
        Command::Build => ensure_programs(&layout).map(drop),
        Command::Env { name } => env(&layout, &name),
    }?;
    Ok(ExitCode::SUCCESS)
}

/// Builds the programs of a cluster, unless they were built before.
pub(crate) fn ensure_programs(layout: &Layout) -> Result<Programs> {
    let mut progress = Progress::new();
    Programs::ensure(layout, &mut |line| progress.show(line))
}

fn up(layout: &Layout, name: &str, options: &StartOptions) -> Result<()> {
    let programs = ensure_programs(layout)?;
    let start = Instant::now();
    let state = cluster::up(layout, &programs, name, options)?;
    say(&format!(
        "cluster `{name}` is ready on https://127.0.0.1:{} after {:.1} s",
        state.port,
        start.elapsed().as_secs_f32()
    ));
    say(&format!("  export KUBECONFIG={}", show::quoted(&state.kubeconfig)));
    say(&format!("  cargo xtask cluster down {name}"));
    Ok(())
}

fn down(layout: &Layout, name: &str) -> Result<()> {
    let cluster = find(layout, name)?;
    cluster::stop(layout, &cluster)?;
    say(&format!("stopped cluster `{name}`"));
    Ok(())
}

fn down_all(layout: &Layout) -> Result<()> {
    for cluster in cluster::list(layout)? {
        cluster::stop(layout, &cluster)?;
        say(&format!("stopped cluster `{}`", cluster.name));
    }
    Ok(())
}

fn list(layout: &Layout) -> Result<()> {
    let clusters = cluster::list(layout)?;
    if clusters.is_empty() {
        say("no clusters; `cargo xtask cluster up` starts one");
    }
    for cluster in clusters {
        say(&show::line(&cluster));
        if cluster.condition() == Condition::Abandoned {
            for process in &cluster.processes {
                say(&format!("  left running: {} (pid {})", process.part, process.pid));
            }
        }
    }
    Ok(())
}

fn env(layout: &Layout, name: &str) -> Result<()> {
    let cluster = find(layout, name)?;
    let Some(state) = cluster.state.as_ref().filter(|_| cluster.condition() == Condition::Ready) else {
        bail!("cluster `{name}` is not running; `cargo xtask cluster up --name {name}` starts it");
    };
    say(&format!("export KUBECONFIG={}", show::quoted(&state.kubeconfig)));
    let programs = ensure_programs(layout)?;
    for directory in programs.path_additions() {
        say(&format!("export PATH=\"$PATH\":{}", show::quoted(directory)));
    }
    Ok(())
}

fn find(layout: &Layout, name: &str) -> Result<cluster::Cluster> {
    cluster::find(layout, name)?.with_context(|| {
        format!("there is no cluster `{name}`; `cargo xtask cluster list` shows the clusters")
    })
}
