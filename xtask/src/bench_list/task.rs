//! Fills a cluster and measures the commands.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use plumb_testkit::cluster::{self, Layout};

use super::objects::objects;
use crate::cluster::ensure_programs;
use crate::plumb::given_or_built;

/// Builds plumb, fills a fresh cluster with Applications as they are after a few weeks (twenty objects and ten past
/// syncs each) and their reports, and measures commands of plumb and kubectl.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Number of Applications.
    #[arg(long, default_value_t = 1000)]
    apps: usize,
    /// How often to run each command.
    #[arg(long, default_value_t = 15)]
    runs: usize,
    /// Program to run instead of this repository's plumb.
    #[arg(long)]
    plumb: Option<PathBuf>,
    /// Use this cluster, which has the Applications already, instead of a fresh one.
    #[arg(long, value_name = "KUBECONFIG")]
    kubeconfig: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let root = crate::repository::root().canonicalize().context("cannot find the repository")?;
    let plumb = given_or_built(args.plumb.as_deref(), &root)?;
    let layout = Layout::from_environment()?;
    let programs = ensure_programs(&layout)?;
    let path = crate::programs::path_with(&programs);
    let command = |program: &Path, kubeconfig: &Path, line: &str| {
        let mut command = Command::new(program);
        command.args(line.split_whitespace()).env("KUBECONFIG", kubeconfig).env("PATH", &path);
        command
    };
    let kubectl = Path::new("kubectl");
    let fresh = match &args.kubeconfig {
        Some(_) => None,
        None => Some(cluster::attach(&layout, &programs)?),
    };
    let kubeconfig = match (&args.kubeconfig, &fresh) {
        (Some(kubeconfig), _) => kubeconfig.clone(),
        (None, Some(cluster)) => cluster.state().kubeconfig.clone(),
        (None, None) => anyhow::bail!("there is no cluster"),
    };
    if fresh.is_some() {
        let file = std::env::temp_dir().join(format!("plumb-bench-list-{}.json", std::process::id()));
        std::fs::write(&file, objects(args.apps).to_string())?;
        succeed(&mut command(&plumb, &kubeconfig, "install --apply"))?;
        say(&format!("creating {} Applications", args.apps));
        let made = succeed(&mut command(kubectl, &kubeconfig, &format!("create -f {}", file.display())));
        let _ = std::fs::remove_file(&file);
        made?;
    }
    let mut table =
        format!("| command, {} Applications | median | worst of {} |\n|---|---|---|", args.apps, args.runs);
    for (program, name, line) in [
        (plumb.as_path(), "plumb", "--help"),
        (plumb.as_path(), "plumb", "app list"),
        (plumb.as_path(), "plumb", "app list -o name"),
        (plumb.as_path(), "plumb", "app list -o json"),
        (plumb.as_path(), "plumb", "doctor"),
        (kubectl, "kubectl", "get applications -n argocd"),
        (kubectl, "kubectl", "get applications -n argocd -o json"),
    ] {
        // The first run fills the caches of the program and the API server.
        once(command(program, &kubeconfig, line))?;
        let mut times = (0..args.runs)
            .map(|_| once(command(program, &kubeconfig, line)))
            .collect::<Result<Vec<Duration>>>()?;
        times.sort_unstable();
        let (median, worst) = (times.get(times.len() / 2), times.last());
        let ms = |time: Option<&Duration>| time.map_or(0.0, |time| time.as_secs_f64() * 1000.0);
        write!(table, "\n| `{name} {line}` | {:.0} ms | {:.0} ms |", ms(median), ms(worst))?;
    }
    say(&table);
    Ok(ExitCode::SUCCESS)
}

/// Runs a command and returns how long it took.
fn once(mut command: Command) -> Result<Duration> {
    let started = Instant::now();
    succeed(&mut command)?;
    Ok(started.elapsed())
}

fn succeed(command: &mut Command) -> Result<()> {
    let output = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?
        .wait_with_output()?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the table is the output of the task")]
fn say(text: &str) {
    println!("{text}");
}
