//! `cargo xtask judge`: any program that judges or measures an engine, against plumb on a real cluster.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};
use plumb_testkit::cluster::{self, Layout};

use crate::cluster::ensure_programs;
use crate::plumb::{RunningPlumb, build_plumb};

/// Builds plumb, starts it on a fresh cluster, and runs a program against it.
///
/// `{kubeconfig}` and `{pid}` in the arguments stand for the cluster's kubeconfig and plumb's process id:
/// `cargo xtask judge -- python3 judge.py --kubeconfig {kubeconfig} --reports corpus/`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The program and its arguments.
    #[arg(required = true, trailing_var_arg = true)]
    command: Vec<String>,
    /// Where plumb's log goes; in the temporary directory unless given.
    #[arg(long)]
    log: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let root = crate::repository_root().canonicalize().context("find the repository")?;
    let plumb = build_plumb(&root)?;
    let layout = Layout::from_environment()?;
    let programs = ensure_programs(&layout)?;
    let cluster = cluster::attach(&layout, &programs)?;
    let kubeconfig = cluster.state().kubeconfig.clone();
    let folder = std::env::temp_dir().join(format!("plumb-judge-{}", std::process::id()));
    std::fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
    let log = args.log.clone().unwrap_or_else(|| folder.join("plumb.log"));
    let path = crate::path_with(&programs);
    let running = RunningPlumb::start(&plumb, &kubeconfig, &path, &folder.join("cache"), &log)?;
    crate::plumb::wait_until_leading(&log)?;
    let pid = running.id().to_string();
    let fill = |text: &String| {
        text.replace("{kubeconfig}", &kubeconfig.display().to_string()).replace("{pid}", &pid)
    };
    let filled: Vec<String> = args.command.iter().map(fill).collect();
    let (program, rest) = filled.split_first().context("no program is named")?;
    let status = Command::new(program)
        .args(rest)
        .env("PATH", &path)
        .status()
        .with_context(|| format!("run {program}"))?;
    drop(running);
    let _ = std::fs::remove_dir_all(folder.join("cache"));
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
