//! The figures of `docs/performance.md`: an engine's work on many small apps, beside the floor that the API server
//! itself sets. `cargo xtask bench` starts a cluster and plumb and runs this.
//!
//! The floor is the bare server-side apply of the same objects, with the same number of requests in flight, right
//! before the phase that it is compared with: on a busy machine only the ratio means something.

mod cost;
mod floor;
mod hostile;
mod hostile_apps;
mod least;
mod phases;
mod real_mix;
mod sets;
mod table;
mod workload;

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Parser;
use cost::Meter;
use kube::Client;
use plumb_testkit::client_for;
use plumb_testkit::git::GitRepo;

/// Measures an engine that works on the Applications of a namespace.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// How to reach the cluster.
    #[arg(long)]
    kubeconfig: PathBuf,
    /// The API server's audit log, from which requests are counted.
    #[arg(long)]
    audit_log: PathBuf,
    /// The engine's process.
    #[arg(long)]
    pid: u32,
    /// How the engine names itself to the API server.
    #[arg(long, default_value = "plumb/")]
    user_agent: String,
    /// Where Applications are.
    #[arg(long, default_value = "argocd")]
    namespace: String,
    /// How many apps, of four objects each.
    #[arg(long, default_value_t = 100)]
    apps: usize,
    /// How many live edits.
    #[arg(long, default_value_t = 30)]
    heals: usize,
    /// Measure beside this many hostile apps, and nothing else.
    #[arg(long)]
    hostile: Option<usize>,
    /// Measure memory with charts and CRDs of all sizes, and nothing else.
    #[arg(long)]
    real_mix: bool,
    /// With `--real-mix`: how many CRDs that no app uses.
    #[arg(long, default_value_t = 200)]
    unused_crds: usize,
    /// Measure a set with this many Applications, and nothing else.
    #[arg(long)]
    generated: Option<usize>,
    /// How long to watch an engine that has nothing to do, in seconds.
    #[arg(long, default_value_t = 10)]
    idle: u64,
    /// Requests in flight, of the floor and of what the bench itself asks for.
    #[arg(long, default_value_t = 32)]
    concurrency: usize,
}

/// What every phase works with.
pub(crate) struct Bench {
    args: Args,
    client: Client,
    repo: GitRepo,
    meter: Meter,
}

#[tokio::main]
async fn main() -> Result<()> {
    let args = Args::parse();
    let client = client_for(&args.kubeconfig, "plumb-bench").await?;
    let meter = Meter::new(args.pid, &args.audit_log, &args.user_agent);
    let bench = Bench { repo: GitRepo::new()?, client, meter, args };
    if let Some(n_hostile) = bench.args.hostile {
        return hostile::run(&bench, n_hostile).await;
    }
    if let Some(n_applications) = bench.args.generated {
        return sets::run(&bench, n_applications).await;
    }
    if bench.args.real_mix {
        return real_mix::run(&bench).await;
    }
    let figures = phases::run(&bench).await.context("measure")?;
    table::print(&figures, bench.args.apps)
}
