//! `cargo xtask test`: everything that CI runs, in the order of what fails fastest.

mod counts;
mod demo;

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use anyhow::{Context, Result};
use counts::Counts;
use plumb_testkit::cluster::{self, AttachedCluster, Layout};

use crate::cluster::ensure_programs;
use crate::tidy;

/// Which parts to run.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Leave out everything that needs a cluster (quick check while editing).
    #[arg(long)]
    no_cluster: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let root = crate::repository::root();
    let mut counts = Counts::default();

    step(&mut counts, "formatting", || cargo(root, &["fmt", "--all", "--check"], &[]))?;
    step(&mut counts, "clippy", || {
        cargo(root, &["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"], &[])
    })?;
    step(&mut counts, "tidy", || tidy_step(root))?;
    step(&mut counts, "licences and advisories", || deny(root))?;

    if args.no_cluster {
        let without = [
            "test",
            "--workspace",
            "--no-fail-fast",
            "--exclude",
            "plumb-testkit",
            "--exclude",
            "plumb-cluster-tests",
            "--exclude",
            "plumb",
        ];
        step(&mut counts, "tests", || cargo(root, &without, &[]))?;
        say("left out: everything that needs a cluster (--no-cluster)");
    } else {
        let stage = Stage::set()?;
        let env = stage.environment();
        step(&mut counts, "tests", || cargo(root, &["test", "--workspace", "--no-fail-fast"], &env))?;
        drop(stage);
        step(&mut counts, "demo", || demo::settles(root))?;
        step(&mut counts, "demo, left running", || demo::stays(root))?;
    }

    // The last line is read by machines: keep its form.
    say(&counts.to_string());
    Ok(if counts.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// One cluster for all tests of this run, stopped when this value is dropped.
struct Stage {
    cluster: AttachedCluster,
    path: OsString,
}

impl Stage {
    fn set() -> Result<Self> {
        let layout = Layout::from_environment()?;
        let programs = ensure_programs(&layout)?;
        let path = crate::programs::path_with(&programs);
        Ok(Self { cluster: cluster::attach(&layout, &programs)?, path })
    }

    /// What tests are told: the cluster, and where the tools are.
    fn environment(&self) -> [(&'static str, OsString); 2] {
        let kubeconfig = self.cluster.state().kubeconfig.clone().into_os_string();
        [("PLUMB_TEST_KUBECONFIG", kubeconfig), ("PATH", self.path.clone())]
    }
}

/// Runs one part, says how long it took, and adds what it counted. A part that fails does not stop the others:
/// one run shows everything that is wrong.
fn step(counts: &mut Counts, name: &str, part: impl FnOnce() -> Result<Counts>) -> Result<()> {
    say(&format!("== {name}"));
    let started = Instant::now();
    let found = part().with_context(|| name.to_owned())?;
    let verdict = if found.failed == 0 { "ok" } else { "FAILED" };
    say(&format!("== {name}: {verdict}, {found}, {:.1} s", started.elapsed().as_secs_f64()));
    *counts += found;
    Ok(())
}

fn tidy_step(root: &Path) -> Result<Counts> {
    let (held, violations) = tidy::run(root)?;
    for violation in &violations {
        say(&violation.to_string());
    }
    Ok(Counts { passed: held, failed: violations.len(), skipped: 0 })
}

/// `cargo deny` where it is installed; a machine without it says so and goes on.
fn deny(root: &Path) -> Result<Counts> {
    let installed =
        Command::new("cargo-deny").arg("--version").output().is_ok_and(|output| output.status.success());
    if !installed {
        say("skipped: cargo-deny is not installed (`cargo install cargo-deny`)");
        return Ok(Counts { skipped: 1, ..Counts::default() });
    }
    cargo(root, &["deny", "--offline", "check", "licenses", "bans", "sources"], &[])
}

/// Runs cargo, shows what it prints, and counts the results of test runners. A command without test results
/// counts as one test.
fn cargo(root: &Path, args: &[&str], env: &[(&str, OsString)]) -> Result<Counts> {
    let mut child = Command::new(env!("CARGO"))
        .args(args)
        .envs(env.iter().map(|(name, value)| (name, value)))
        .current_dir(root)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("run cargo {}", args.join(" ")))?;
    let mut counts = Counts::default();
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).lines() {
            let line = line.context("read cargo's output")?;
            if let Some(found) = Counts::from_test_result(&line) {
                counts += found;
            }
            say(&line);
        }
    }
    let status = child.wait().context("wait for cargo")?;
    if counts == Counts::default() || (!status.success() && counts.failed == 0) {
        counts += if status.success() { Counts::one_passed() } else { Counts::one_failed() };
    }
    Ok(counts)
}

fn say(line: &str) {
    // A reader that went away (`| head`) is no reason to fail.
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}
