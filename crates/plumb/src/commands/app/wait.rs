//! `plumb app wait`

use crate::context::{Context, limit};
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::follow::state::{Wanted, wait};
use crate::select::apps::AppSelection;
use crate::select::resource_filter::ResourceFilter;

/// Wait until Applications are in the state that is asked for.
///
/// Without a choice it is all of --sync, --health and --operation. Shows what is waited for and why. Exit code 0:
/// they are; 20: not in time, or it cannot come any more.
///
/// Examples: `plumb app wait payments --health --timeout 300`, `plumb app wait -l team=payments`
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is one flag of the command line")]
pub(crate) struct Args {
    /// `name`, or `namespace/name`; several are waited for one after the other.
    #[arg(value_name = "APP", add = crate::complete::apps())]
    apps: Vec<String>,
    /// Those with these labels, in place of names.
    #[arg(long, short = 'l', conflicts_with = "apps")]
    selector: Option<String>,
    /// Namespace of the Applications, where it is not the control plane's.
    #[arg(long, short = 'N', value_name = "NAMESPACE")]
    app_namespace: Option<String>,
    /// Wait until it is Synced.
    #[arg(long)]
    sync: bool,
    /// Wait until it is Healthy.
    #[arg(long)]
    health: bool,
    /// Wait until no operation is under way.
    #[arg(long)]
    operation: bool,
    /// Wait until it is Suspended (or Healthy, with --health).
    #[arg(long)]
    suspended: bool,
    /// Wait until it is Degraded.
    #[arg(long)]
    degraded: bool,
    /// Wait until it is gone.
    #[arg(long)]
    delete: bool,
    /// Refused: plumb does not render to branches yet.
    #[arg(long, hide = true)]
    hydrated: bool,
    /// Only look at these objects: `[!]GROUP:KIND:[NAMESPACE/]NAME`, `*` for any.
    #[arg(long, value_name = "RESOURCE")]
    resource: Vec<ResourceFilter>,
    /// Give up after this many seconds; 0 never.
    #[arg(long, default_value_t = 0)]
    timeout: u64,
}

pub(super) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    if args.hydrated {
        return Err(CommandError::refused_flag("--hydrated", "plumb does not render to branches yet"));
    }
    if args.apps.is_empty() && args.selector.is_none() {
        return Err(
            CommandError::usage("no app is named").hint("`plumb app wait payments`, or -l team=payments")
        );
    }
    let client = context.client().await?;
    let chosen = AppSelection {
        names: &args.apps,
        selector: args.selector.as_deref(),
        projects: &[],
        namespace: args.app_namespace.as_deref(),
    };
    let targets = chosen.targets(context, &client).await?;
    let wanted = wanted(args);
    for target in targets {
        let ended = tokio::time::timeout(limit(args.timeout), wait(context, &client, &target, &wanted)).await;
        ended.map_err(|_| {
            CommandError::new(format!(
                "timed out after {} s: {} is not {}",
                args.timeout,
                target.name,
                wanted.in_words()
            ))
            .hint(format!("`plumb app get {}` shows what holds it up", target.name))
        })??;
    }
    Ok(ExitCode::Success)
}

/// The states that the flags ask for; without one, the default three.
fn wanted(args: &Args) -> Wanted {
    let none =
        ![args.sync, args.health, args.operation, args.suspended, args.degraded, args.delete].contains(&true);
    Wanted {
        sync: args.sync || none,
        health: args.health || none,
        operation: args.operation || none,
        suspended: args.suspended,
        degraded: args.degraded,
        delete: args.delete,
        resources: args.resource.clone(),
    }
}
