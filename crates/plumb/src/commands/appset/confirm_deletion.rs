//! `plumb appset confirm-deletion`

use jiff::Timestamp;
use plumb_crd::annotations::DELETION_APPROVED;
use plumb_kube::Patch;
use serde_json::json;

use super::set::{parse, read, target};
use crate::context::{Context, change};
use crate::error::CommandError;
use crate::exit::ExitCode;

/// Confirm that a set may delete the Applications that it no longer generates.
///
/// plumb waits for this if a set would delete more than half of its Applications and more than 5, or if a generator
/// that asks a server returned nothing. The condition `DeletionsWaiting` lists them.
///
/// Example: `plumb appset confirm-deletion teams`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// `name`, or `namespace/name`.
    #[arg(value_name = "APPSETNAME")]
    name: String,
    /// Namespace of the set [default: the control plane's].
    #[arg(long, short = 'N', value_name = "NAMESPACE")]
    appset_namespace: Option<String>,
}

pub(super) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let client = context.client().await?;
    let target = target(context, &args.name, args.appset_namespace.as_deref());
    let set = parse(&read(&client, &target).await?)?;
    let waiting = set.status.conditions.iter().find(|known| known.condition_type == "DeletionsWaiting");
    let Some(waiting) = waiting else {
        return Err(CommandError::new(format!("no deletion of ApplicationSet {} waits", target.name)));
    };
    context.out.note(&waiting.message);
    let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let patch = json!({"metadata": {"annotations": {DELETION_APPROVED: now}}});
    change(&client, &target, &Patch::Merge(patch)).await?;
    context.out.print(&format!("ApplicationSet '{}' updated successfully", target.name));
    Ok(ExitCode::Success)
}
