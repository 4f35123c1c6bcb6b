//! The repository's own tasks. `cargo xtask --help` lists them.
//!
//! One module per task, with its arguments and its `run`. Modules are listed from the bottom up; each uses only
//! modules above it (`cargo xtask tidy` checks it).

mod repository;
mod say;
mod sign;
mod programs;
mod kubectl;
mod cluster;
mod plumb;
mod bench;
mod bench_list;
mod judge;
mod book;
mod image;
mod release;
mod demo;
mod scale;
mod bench_api;
mod tidy;
mod test;
mod yaml;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The repository's own tasks.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Measure plumb and the same requests without it: the table of docs/performance.md.
    Bench(bench::Args),
    /// Measure the API: lists with many Applications, and many open streams.
    BenchApi(bench_api::Args),
    /// Measure how long `plumb app list` takes, compared with kubectl.
    BenchList(bench_list::Args),
    /// Make the documentation as a site, with a page per command (mdBook).
    Book(book::Args),
    /// Start, stop and list real Kubernetes control planes on 127.0.0.1.
    Cluster(cluster::Args),
    /// Run plumb on a real cluster with a repository that has many planted faults.
    Demo(demo::Args),
    /// Make the container image with buildah, and check it under runc.
    Image(image::Args),
    /// Run a test program or a benchmark of yours against plumb on a fresh cluster.
    Judge(judge::Args),
    /// Make every file of a release: archives, packages, chart, image, checksums, notes.
    Release(release::Args),
    /// Measure plumb with many apps and objects: idle, and after a restart.
    Scale(scale::Args),
    /// Run everything that CI runs: formatting, lints, repository rules, all tests.
    Test(test::Args),
    /// Check the repository's own rules: module order, sizes, visibility, documents.
    Tidy(tidy::Args),
    /// Record what Go's YAML library returns for the cases of the core's YAML tests.
    Yaml(yaml::Args),
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().task {
        Task::Bench(args) => bench::run(&args),
        Task::BenchApi(args) => bench_api::run(&args),
        Task::BenchList(args) => bench_list::run(&args),
        Task::Book(args) => book::run(&args),
        Task::Cluster(args) => cluster::run(args),
        Task::Demo(args) => demo::run(&args),
        Task::Image(args) => image::run(&args),
        Task::Judge(args) => judge::run(&args),
        Task::Release(args) => release::run(&args),
        Task::Scale(args) => scale::run(&args),
        Task::Test(args) => test::run(&args),
        Task::Tidy(args) => tidy::command(&args),
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

#[expect(clippy::print_stderr, reason = "the one place that prints the error of a failed task")]
fn report(error: &anyhow::Error) {
    eprintln!("error: {error:#}");
}
