//! The flags of `plumb app sync`.

use crate::output::Format;
use crate::render_here::RenderArgs;
use crate::select::resource_filter::ResourceFilter;

/// Sync Applications, and wait until they are synced.
///
/// Shows waves, hooks, and what the sync waits for. Exit code 0: it succeeded; 1: it failed; 20: timeout or error.
///
/// Examples: `plumb app sync payments --prune`, `plumb app sync payments --resource apps:Deployment:web`,
/// `plumb app sync -l team=payments --async`
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is one flag of the command line")]
pub(crate) struct Args {
    /// `name`, or `namespace/name`; several are synced one after the other.
    #[arg(value_name = "APP", add = crate::complete::apps())]
    pub(super) apps: Vec<String>,
    /// Applications with these labels, instead of names.
    #[arg(long, short = 'l', conflicts_with = "apps")]
    pub(super) selector: Option<String>,
    /// Applications of these projects, instead of names.
    #[arg(long, conflicts_with = "apps", add = crate::complete::projects())]
    pub(super) project: Vec<String>,
    /// Namespace of the Applications [default: the control plane's].
    #[arg(long, short = 'N', value_name = "NAMESPACE")]
    pub(super) app_namespace: Option<String>,
    /// Delete objects that were removed from Git.
    #[arg(long)]
    pub(super) prune: bool,
    /// Only show the plan.
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Sync to this revision instead of the one that the app tracks.
    #[arg(long)]
    pub(super) revision: Option<String>,
    /// Sync the sources of --source-positions or --source-names to these revisions.
    #[arg(long, value_name = "REVISION")]
    pub(super) revisions: Vec<String>,
    /// The sources that --revisions are for, counted from 1.
    #[arg(long, value_name = "N")]
    pub(super) source_positions: Vec<usize>,
    /// The sources that --revisions are for, by name.
    #[arg(long, value_name = "NAME", conflicts_with = "source_positions")]
    pub(super) source_names: Vec<String>,
    /// Only these objects: `[!]GROUP:KIND:[NAMESPACE/]NAME`, `*` for any.
    #[arg(long, value_name = "RESOURCE")]
    pub(super) resource: Vec<ResourceFilter>,
    /// Only objects that have one of these labels in Git: `name=value`.
    #[arg(long, value_name = "NAME=VALUE", conflicts_with = "resource")]
    pub(super) label: Vec<String>,
    /// `hook`: run hooks (the default); `apply`: do not run hooks.
    #[arg(long, value_parser = ["apply", "hook"])]
    pub(super) strategy: Option<String>,
    /// Delete and recreate objects that cannot be updated.
    #[arg(long)]
    pub(super) force: bool,
    /// Replace objects instead of applying them.
    #[arg(long)]
    pub(super) replace: bool,
    /// Add `ServerSideApply=true` to the operation (plumb always applies server-side).
    #[arg(long)]
    pub(super) server_side: bool,
    /// Do not apply objects that are in sync.
    #[arg(long)]
    pub(super) apply_out_of_sync_only: bool,
    /// Information to record with the operation: `name=value`.
    #[arg(long, value_name = "NAME=VALUE")]
    pub(super) info: Vec<String>,
    /// How often to retry a failed sync.
    #[arg(long)]
    pub(super) retry_limit: Option<i64>,
    /// Resolve the revision again for each retry.
    #[arg(long)]
    pub(super) retry_refresh: bool,
    /// Delay before the first retry, such as `5s`.
    #[arg(long)]
    pub(super) retry_backoff_duration: Option<String>,
    /// Longest delay between retries.
    #[arg(long)]
    pub(super) retry_backoff_max_duration: Option<String>,
    /// Factor by which the delay grows with each retry.
    #[arg(long)]
    pub(super) retry_backoff_factor: Option<i64>,
    /// Do not wait for the sync to end.
    #[arg(long = "async")]
    pub(super) no_wait: bool,
    /// Timeout in seconds; 0 is none.
    #[arg(long, default_value_t = 0)]
    pub(super) timeout: u64,
    /// Output format of the result.
    #[arg(long, short = 'o', value_enum, default_value_t = Format::Wide)]
    pub(super) output: Format,
    /// Refused: use --dry-run.
    #[arg(long, hide = true)]
    pub(super) preview_changes: bool,
    /// Refused together with --preview-changes.
    #[arg(long, visible_alias = "assumeYes", hide = true)]
    pub(super) assume_yes: bool,
    /// Refused: plumb syncs only from Git.
    #[arg(long, hide = true, value_name = "DIRECTORY")]
    pub(super) local: Option<String>,
    /// Refused together with --local.
    #[arg(long, hide = true, value_name = "DIRECTORY")]
    pub(super) local_repo_root: Option<String>,
    #[command(flatten)]
    pub(super) render: RenderArgs,
}
