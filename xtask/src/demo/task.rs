//! Runs the demo from start to end.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use plumb_testkit::cluster::Layout;

use super::repository::N_APPS;
use super::stage::Stage;
use super::walk;
use crate::cluster::ensure_programs;
use crate::plumb::given_or_built;
use crate::say::say;

/// How to run the demo.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Exit when all apps have settled. The exit code says whether every planted fault was found as planted.
    #[arg(long)]
    once: bool,
    /// Give up if the apps have not settled after this many seconds.
    #[arg(long, default_value_t = 400)]
    patience: u64,
    /// Then run the commands that the demo suggests, and check that each does its part: from 20 apps that a
    /// three-way diff shows as red to a list without noise.
    #[arg(long)]
    walk: bool,
    /// Program to run instead of this repository's plumb.
    #[arg(long)]
    plumb: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let root = crate::repository::root().canonicalize().context("cannot find the repository")?;
    let plumb = given_or_built(args.plumb.as_deref(), &root)?;
    let layout = Layout::from_environment()?;
    let programs = ensure_programs(&layout)?;
    say("starting a cluster");
    let stage = Stage::start(&layout, &programs, &root, &plumb)?;
    say(&format!("waiting until {N_APPS} apps have settled"));
    let settled = stage.play(&root, Duration::from_secs(args.patience));
    stage.show(&plumb)?;
    match (&settled, args.once) {
        (Ok(seconds), _) => {
            say(&format!("settled after {seconds:.1} s: every planted fault was found as planted"));
        }
        (Err(_), true) => {}
        (Err(error), false) => say(&format!("not settled: {error:#}")),
    }
    if args.walk && settled.is_ok() {
        let seconds = walk::walk(&stage, &plumb)?;
        say(&format!("from red to quiet in {seconds:.1} s, each step as it should be"));
    }
    if args.once {
        return settled.map(|_| ExitCode::SUCCESS);
    }
    stage.linger(&plumb)
}
