//! `cargo xtask yaml`: records what Go's YAML library returns for the cases of the core's tests.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, ensure};

use crate::repository;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Do not write: fail if Go's library returns something else than the recording.
    #[arg(long)]
    check: bool,
    /// Also compare both readers on random texts; `PLUMB_YAML_TEXTS` is their number.
    #[arg(long)]
    random: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let oracle = build()?;
    let data = repository::root().join("crates/plumb-core/testdata/yaml");
    let recording = data.join("recorded.jsonl");
    let answers = output(Command::new(&oracle).arg("-record").arg(&data))?;
    if args.check {
        let known =
            std::fs::read(&recording).with_context(|| format!("cannot read {}", recording.display()))?;
        ensure!(known == answers, "the recording is out of date: run `cargo xtask yaml`");
    } else {
        std::fs::write(&recording, answers)
            .with_context(|| format!("cannot write {}", recording.display()))?;
    }
    if args.random {
        let status = Command::new(env!("CARGO"))
            .args(["test", "-p", "plumb-core", "yaml::tests::recorded"])
            .env("PLUMB_YAML_ORACLE", &oracle)
            .current_dir(repository::root())
            .status()
            .context("cannot run the tests of the core")?;
        ensure!(status.success(), "the two readers differ");
    }
    Ok(ExitCode::SUCCESS)
}

/// Builds the Go program in cargo's target folder.
fn build() -> Result<PathBuf> {
    let root = std::path::absolute(repository::root()).context("cannot find the repository")?;
    let program = root.join("target/yaml-oracle");
    let source: &Path = &root.join("tools/yaml-oracle");
    let status = Command::new("go")
        .args(["build", "-o"])
        .arg(&program)
        .arg(".")
        .current_dir(source)
        .status()
        .context("cannot run go, which is needed for Go's library")?;
    ensure!(status.success(), "go build failed in {}", source.display());
    Ok(program)
}

fn output(command: &mut Command) -> Result<Vec<u8>> {
    let output = command.stderr(Stdio::inherit()).output().context("cannot run the oracle")?;
    ensure!(output.status.success(), "the oracle failed");
    Ok(output.stdout)
}
