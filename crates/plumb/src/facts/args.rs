//! The flags of commands that judge apps.

use std::collections::{BTreeMap, BTreeSet};

use plumb_core::project::normalize_repo_url;
use plumb_crd::{Application, written_sources};
use plumb_engine::DryRuns;

use crate::error::CommandError;
use crate::local::Checkouts;

/// How apps are judged where no engine of plumb does it.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Where no engine of plumb runs")]
pub(crate) struct JudgeArgs {
    /// Local clone of a repository, whose commits are read instead of fetching: `PATH`, or `REPO_URL=PATH`. Changes that
    /// are not committed do not count.
    #[arg(long = "repo", value_name = "[REPO_URL=]PATH")]
    clones: Vec<String>,
    /// Judge on this machine, although an engine of plumb runs.
    #[arg(long)]
    pub(super) here: bool,
    /// Ask the API server for dry runs where the other facts leave a doubt. This needs the right to change the objects;
    /// nothing is changed.
    #[arg(long)]
    dry_runs: bool,
}

impl JudgeArgs {
    /// True if any of these flags was given.
    pub(crate) fn is_given(&self) -> bool {
        self.here || self.dry_runs || !self.clones.is_empty()
    }

    pub(super) fn dry_runs(&self) -> DryRuns {
        if self.dry_runs { DryRuns::Ask } else { DryRuns::Never }
    }

    /// The clones, by the repositories of the apps.
    pub(super) fn checkouts<'app>(
        &self,
        applications: impl Iterator<Item = &'app Application>,
    ) -> Result<BTreeMap<String, String>, CommandError> {
        if self.clones.is_empty() {
            return Ok(BTreeMap::new());
        }
        let sources = applications.flat_map(|application| written_sources(&application.spec));
        let in_git = sources.filter(|source| source.chart.is_empty());
        let urls: BTreeSet<String> = in_git.map(|source| normalize_repo_url(&source.repo_url)).collect();
        Checkouts::parse("--repo", &self.clones)?.of_repositories(&urls)
    }
}
