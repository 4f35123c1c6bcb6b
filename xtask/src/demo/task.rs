//! Runs the demo from start to end.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use plumb_testkit::cluster::Layout;

use super::repository::N_APPS;
use super::show::say;
use super::stage::Stage;
use crate::cluster::ensure_programs;
use crate::plumb::given_or_built;

/// How to run the demo.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Exit when all apps have settled. The exit code says whether every planted fault was found as planted.
    #[arg(long)]
    once: bool,
    /// Give up if the apps have not settled after this many seconds.
    #[arg(long, default_value_t = 400)]
    patience: u64,
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
    if args.once {
        return settled.map(|_| ExitCode::SUCCESS);
    }
    stage.linger(&plumb)
}
