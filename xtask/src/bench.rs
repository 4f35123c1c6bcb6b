//! `cargo xtask bench`: plumb's figures, compared with the same requests sent without plumb.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};
use plumb_testkit::cluster::{self, Layout};

use crate::cluster::ensure_programs;
use crate::plumb::{RunningPlumb, build, given_or_built};

/// Builds plumb, starts it on a fresh cluster, and measures it: installing and upgrading many small apps, idling,
/// reverting live edits, a sync of many waves.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Number of apps.
    #[arg(long, default_value_t = 100)]
    apps: usize,
    /// Number of live edits.
    #[arg(long, default_value_t = 30)]
    heals: usize,
    /// Measure install and heal beside this many hostile apps, and nothing else.
    #[arg(long)]
    hostile: Option<usize>,
    /// Measure a set with this many Applications, and nothing else. Fails if a figure is over its limit.
    #[arg(long)]
    generated: Option<usize>,
    /// Measure memory with charts and CRDs of all sizes, and nothing else.
    #[arg(long)]
    real_mix: bool,
    /// With `--real-mix`: number of CRDs that no app uses.
    #[arg(long, default_value_t = 200)]
    unused_crds: usize,
    /// Program to run instead of this repository's plumb.
    #[arg(long)]
    plumb: Option<PathBuf>,
    /// File for plumb's log [default: in the temporary directory].
    #[arg(long)]
    log: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let root = crate::repository::root().canonicalize().context("cannot find the repository")?;
    let plumb = given_or_built(args.plumb.as_deref(), &root)?;
    let bench = build(&root, &["--package", "plumb-testkit", "--example", "bench"], "bench")?;
    let layout = Layout::from_environment()?;
    let programs = ensure_programs(&layout)?;
    let cluster = cluster::attach(&layout, &programs)?;
    let kubeconfig = cluster.state().kubeconfig.clone();
    let folder = std::env::temp_dir().join(format!("plumb-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let log = args.log.clone().unwrap_or_else(|| folder.join("plumb.log"));
    let path = crate::programs::path_with(&programs);
    let running = RunningPlumb::start(&plumb, &kubeconfig, &path, &folder.join("cache"), &log)?;
    crate::plumb::wait_until_leading(&log)?;
    let status = Command::new(&bench)
        .arg("--kubeconfig")
        .arg(&kubeconfig)
        .arg("--audit-log")
        .arg(kubeconfig.with_file_name("logs").join("audit.log"))
        .args(["--pid", &running.id().to_string(), "--apps", &args.apps.to_string()])
        .args(["--heals", &args.heals.to_string()])
        .args(args.real_mix.then(|| format!("--unused-crds={}", args.unused_crds)))
        .args(args.real_mix.then_some("--real-mix"))
        .args(args.generated.map(|n_applications| format!("--generated={n_applications}")))
        .args(args.hostile.map(|n_hostile| format!("--hostile={n_hostile}")))
        .status()
        .context("cannot run the bench")?;
    drop(running);
    let _ = std::fs::remove_dir_all(folder.join("cache"));
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
