//! The arguments of the task, and its preparation.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use plumb_testkit::cluster::{self, Layout};

use super::audit::Audit;
use super::measure::{Bench, say};
use super::workload::Workload;
use crate::cluster::ensure_programs;
use crate::plumb::given_or_built;

/// Installs many apps on a fresh cluster through plumb, then measures plumb while idle and after a restart.
///
/// Fails if a figure is over its limit: requests, memory and CPU while idle; duration and writes of a start.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Number of apps, each with 20 live objects.
    #[arg(long, default_value_t = 1000)]
    apps: usize,
    /// How long to measure the idle plumb, in seconds. In the default time every app is polled once.
    #[arg(long, default_value_t = 120)]
    idle: u64,
    /// Program to run instead of this repository's plumb.
    #[arg(long)]
    plumb: Option<PathBuf>,
    /// Folder for plumb's logs [default: in the temporary directory].
    #[arg(long)]
    logs: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let root = crate::repository::root().canonicalize().context("cannot find the repository")?;
    let plumb = given_or_built(args.plumb.as_deref(), &root)?;
    let layout = Layout::from_environment()?;
    let programs = ensure_programs(&layout)?;
    let cluster = cluster::attach(&layout, &programs)?;
    let folder = std::env::temp_dir().join(format!("plumb-scale-{}", std::process::id()));
    let logs = args.logs.clone().unwrap_or_else(|| folder.clone());
    for folder in [&folder, &logs] {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    }
    let state = cluster.state();
    let bench = Bench {
        plumb,
        kubeconfig: state.kubeconfig.clone(),
        path: crate::programs::path_with(&programs),
        cache: folder.join("cache"),
        logs,
        audit: Audit::new(&state.audit_log),
        n_apps: args.apps,
    };
    let workload = Workload::new(&folder.join("repository"), args.apps)?;
    let outcome = bench.measure(&workload, Duration::from_secs(args.idle));
    let _ = std::fs::remove_dir_all(&folder);
    let missed = outcome?;
    for miss in &missed {
        say(&format!("MISSED  {miss}"));
    }
    Ok(if missed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
