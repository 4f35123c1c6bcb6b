//! `cargo xtask judge`: runs a test program or a benchmark against plumb on a real cluster.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};
use plumb_testkit::cluster::{self, Layout};

use crate::cluster::ensure_programs;
use crate::plumb::{RunningPlumb, given_or_built};

/// Builds plumb, starts it on a fresh cluster, and runs a program against it.
///
/// `{kubeconfig}` and `{pid}` in the arguments are replaced by the cluster's kubeconfig and plumb's process id:
/// `cargo xtask judge -- python3 judge.py --kubeconfig {kubeconfig} --reports corpus/`. Without a program, this
/// command runs with the judge and the corpus in the folder beside the repository (`../shared/judge`).
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The program and its arguments.
    #[arg(trailing_var_arg = true)]
    command: Vec<String>,
    /// Program to run instead of this repository's plumb.
    #[arg(long)]
    plumb: Option<PathBuf>,
    /// File for plumb's log [default: in the temporary directory].
    #[arg(long)]
    log: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let root = crate::repository::root().canonicalize().context("cannot find the repository")?;
    let command = if args.command.is_empty() { judge_beside(&root)? } else { args.command.clone() };
    let plumb = given_or_built(args.plumb.as_deref(), &root)?;
    let layout = Layout::from_environment()?;
    let programs = ensure_programs(&layout)?;
    let cluster = cluster::attach(&layout, &programs)?;
    let kubeconfig = cluster.state().kubeconfig.clone();
    let folder = std::env::temp_dir().join(format!("plumb-judge-{}", std::process::id()));
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let log = args.log.clone().unwrap_or_else(|| folder.join("plumb.log"));
    let path = crate::programs::path_with(&programs);
    let running = RunningPlumb::start(&plumb, &kubeconfig, &path, &folder.join("cache"), &log)?;
    crate::plumb::wait_until_leading(&log)?;
    let pid = running.id().to_string();
    let fill = |text: &String| {
        text.replace("{kubeconfig}", &kubeconfig.display().to_string()).replace("{pid}", &pid)
    };
    let filled: Vec<String> = command.iter().map(fill).collect();
    let (program, rest) = filled.split_first().context("no program given")?;
    let status = Command::new(program)
        .args(rest)
        .env("PATH", &path)
        .status()
        .with_context(|| format!("cannot run {program}"))?;
    drop(running);
    let _ = std::fs::remove_dir_all(folder.join("cache"));
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The judge in the folder beside the repository, with its whole corpus.
fn judge_beside(root: &Path) -> Result<Vec<String>> {
    let folder = root.join("../shared/judge");
    let judge = folder.join("judge.py");
    ensure!(
        judge.exists(),
        "there is no judge beside the repository; give a program: `cargo xtask judge -- PROGRAM …`"
    );
    let corpus = folder.join("corpus");
    let arguments = ["python3", &judge.display().to_string(), "--kubeconfig", "{kubeconfig}", "--reports"];
    Ok(arguments.into_iter().map(str::to_owned).chain([corpus.display().to_string()]).collect())
}
