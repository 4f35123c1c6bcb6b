//! `plumb app wait`

use crate::context::{Context, limit};
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::follow::state::{Wanted, wait};
use crate::output::Format;
use crate::select::apps::AppSelection;
use crate::select::resource_filter::ResourceFilter;

/// Wait until Applications have the given states.
///
/// By default waits for --sync, --health and --operation. Shows what is not ready yet. Exit code 0: all have them; 20:
/// timeout, or an app became Degraded.
///
/// Examples: `plumb app wait payments --health --timeout 300`, `plumb app wait -l team=payments`
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is one flag of the command line")]
pub(crate) struct Args {
    /// `name`, or `namespace/name`; several are checked one after the other.
    #[arg(value_name = "APP", add = crate::complete::apps())]
    apps: Vec<String>,
    /// Applications with these labels, instead of names.
    #[arg(long, short = 'l', conflicts_with = "apps")]
    selector: Option<String>,
    /// Namespace of the Applications [default: the control plane's].
    #[arg(long, short = 'N', value_name = "NAMESPACE")]
    app_namespace: Option<String>,
    /// Wait until it is Synced.
    #[arg(long)]
    sync: bool,
    /// Wait until it is Healthy.
    #[arg(long)]
    health: bool,
    /// Wait until no operation is in progress.
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
    /// Refused: plumb does not support the source hydrator yet.
    #[arg(long, hide = true)]
    hydrated: bool,
    /// Only check these objects: `[!]GROUP:KIND:[NAMESPACE/]NAME`, `*` for any.
    #[arg(long, value_name = "RESOURCE")]
    resource: Vec<ResourceFilter>,
    /// Timeout in seconds; 0 is none.
    #[arg(long, default_value_t = 0)]
    timeout: u64,
    /// Output format of the result: wide, json or yaml. JSON and YAML have one Application after the other.
    #[arg(long, short = 'o', value_enum, default_value_t = Format::Wide)]
    output: Format,
}

pub(super) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    if args.hydrated {
        return Err(CommandError::refused_flag(
            "--hydrated",
            "plumb does not support the source hydrator yet",
        ));
    }
    if args.apps.is_empty() && args.selector.is_none() {
        return Err(CommandError::usage("no application given")
            .hint("`plumb app wait payments`, or -l team=payments"));
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
        let waiting = wait(context, &client, &target, &wanted, args.output);
        let ended = tokio::time::timeout(limit(args.timeout), waiting).await;
        ended.map_err(|_| {
            CommandError::new(format!(
                "timed out after {} s: {} is not {}",
                args.timeout,
                target.name,
                wanted.in_words()
            ))
            .hint(format!("`plumb app get {}` shows why", target.name))
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
