//! The repository's own tasks. `cargo xtask --help` lists them.
//!
//! One module per task: its arguments and its `run`. This file only chooses.

mod bench;
mod bench_list;
mod cluster;
mod demo;
mod judge;
mod plumb;
mod scale;
mod test;
mod tidy;
mod yaml;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use plumb_testkit::cluster::Programs;

/// The repository's own tasks.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Measure plumb beside the bare requests: the table of docs/performance.md.
    Bench(bench::Args),
    /// Measure how long people wait for `plumb app list`, beside kubectl.
    BenchList(bench_list::Args),
    /// A real Kubernetes control plane on 127.0.0.1: start, stop, list.
    Cluster(cluster::Args),
    /// A real cluster with a troubled repository, and plumb at work on it.
    Demo(demo::Args),
    /// Run a judge or a benchmark against plumb on a fresh cluster.
    Judge(judge::Args),
    /// Many apps and objects: what an idle plumb and a start of it cost.
    Scale(scale::Args),
    /// Everything that CI runs: formatting, lints, repository rules, all tests.
    Test(test::Args),
    /// The repository's own rules: arrows between crates, module order, reachable files.
    Tidy,
    /// Records what Go's YAML library says to the cases of the core's YAML tests.
    Yaml(yaml::Args),
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().task {
        Task::Bench(args) => bench::run(&args),
        Task::BenchList(args) => bench_list::run(&args),
        Task::Cluster(args) => cluster::run(args),
        Task::Demo(args) => demo::run(&args),
        Task::Judge(args) => judge::run(&args),
        Task::Scale(args) => scale::run(&args),
        Task::Test(args) => test::run(&args),
        Task::Tidy => tidy::command(),
        Task::Yaml(args) => yaml::run(&args),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            report(&error);
            ExitCode::FAILURE
        }
    }
}

/// The folder that holds the workspace.
fn repository_root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// PATH with the programs of the cluster on it: kubectl, helm and kustomize are found.
#[expect(clippy::disallowed_methods, reason = "PATH is passed on to the programs that are started")]
fn path_with(programs: &Programs) -> OsString {
    let before = std::env::var_os("PATH").unwrap_or_default();
    let folders = programs.path_additions().iter().cloned().chain(std::env::split_paths(&before));
    std::env::join_paths(folders).unwrap_or(before)
}

#[expect(clippy::print_stderr, reason = "the one place where a failed task speaks to its user")]
fn report(error: &anyhow::Error) {
    eprintln!("error: {error:#}");
}
