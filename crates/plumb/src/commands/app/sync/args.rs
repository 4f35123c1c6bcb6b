//! The flags of `plumb app sync`.

use crate::output::Format;
use crate::render_here::RenderArgs;
use crate::select::resource_filter::ResourceFilter;

/// Make the cluster equal to Git, and wait until it is.
///
/// Shows waves, hooks, and what is waited for and why. Exit code 0: it succeeded; 1: it did not; 20: not in time.
///
/// Examples: `plumb app sync payments --prune`, `plumb app sync payments --resource apps:Deployment:web`,
/// `plumb app sync -l team=payments --async`
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is one flag of the command line")]
pub(crate) struct Args {
    /// `name`, or `namespace/name`; several are synced one after the other.
    #[arg(value_name = "APP", add = crate::complete::apps())]
    pub(super) apps: Vec<String>,
    /// Those with these labels, in place of names.
    #[arg(long, short = 'l', conflicts_with = "apps")]
    pub(super) selector: Option<String>,
    /// Those of these projects, in place of names.
    #[arg(long, conflicts_with = "apps", add = crate::complete::projects())]
    pub(super) project: Vec<String>,
    /// Namespace of the Applications, where it is not the control plane's.
    #[arg(long, short = 'N', value_name = "NAMESPACE")]
    pub(super) app_namespace: Option<String>,
    /// Delete what left Git.
    #[arg(long)]
    pub(super) prune: bool,
    /// Only say what would be done.
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Sync to this revision instead of the app's.
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
    /// `hook`: run hooks (the default); `apply`: leave them out.
    #[arg(long, value_parser = ["apply", "hook"])]
    pub(super) strategy: Option<String>,
    /// Delete and create anew what cannot be changed.
    #[arg(long)]
    pub(super) force: bool,
    /// Replace objects in place of applying them.
    #[arg(long)]
    pub(super) replace: bool,
    /// Apply on the server (plumb always does; this is for the app's options in the operation).
    #[arg(long)]
    pub(super) server_side: bool,
    /// Leave alone what is in sync already.
    #[arg(long)]
    pub(super) apply_out_of_sync_only: bool,
    /// A line for the operation's record: `name=value`.
    #[arg(long, value_name = "NAME=VALUE")]
    pub(super) info: Vec<String>,
    /// How often to try again after a failure.
    #[arg(long)]
    pub(super) retry_limit: Option<i64>,
    /// Resolve the revision anew on each try.
    #[arg(long)]
    pub(super) retry_refresh: bool,
    /// The first wait between tries, such as `5s`.
    #[arg(long)]
    pub(super) retry_backoff_duration: Option<String>,
    /// The longest wait between tries.
    #[arg(long)]
    pub(super) retry_backoff_max_duration: Option<String>,
    /// What each next wait is multiplied with.
    #[arg(long)]
    pub(super) retry_backoff_factor: Option<i64>,
    /// Do not wait.
    #[arg(long = "async")]
    pub(super) no_wait: bool,
    /// Give up waiting after this many seconds; 0 never.
    #[arg(long, default_value_t = 0)]
    pub(super) timeout: u64,
    /// How to print the result.
    #[arg(long, short = 'o', value_enum, default_value_t = Format::Wide)]
    pub(super) output: Format,
    /// Refused: an operation cannot be previewed and started in one go.
    #[arg(long, hide = true)]
    pub(super) preview_changes: bool,
    /// Refused together with --preview-changes.
    #[arg(long, visible_alias = "assumeYes", hide = true)]
    pub(super) assume_yes: bool,
    /// Refused: what is not in Git would be drift a moment later.
    #[arg(long, hide = true, value_name = "DIRECTORY")]
    pub(super) local: Option<String>,
    /// Refused together with --local.
    #[arg(long, hide = true, value_name = "DIRECTORY")]
    pub(super) local_repo_root: Option<String>,
    #[command(flatten)]
    pub(super) render: RenderArgs,
}
