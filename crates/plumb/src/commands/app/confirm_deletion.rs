//! `plumb app confirm-deletion`

use jiff::Timestamp;
use plumb_crd::annotations::DELETION_APPROVED;
use serde_json::json;

use crate::context::Context;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::select::app::{AppArg, patch, read_whole};

/// Confirm deletions that wait for a person.
///
/// An object with `Prune=confirm` or `Delete=confirm`, one that holds data, or a prune of more than half of an
/// app waits until somebody says yes. This says it, for what waits now.
///
/// Example: `plumb app confirm-deletion payments`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    app: AppArg,
}

pub(super) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let client = context.client().await?;
    let target = args.app.target(context);
    read_whole(context, &client, &target).await?;
    let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    patch(&client, &target, json!({"metadata": {"annotations": {DELETION_APPROVED: now}}})).await?;
    context.out.print(&format!("Application '{}' updated successfully", target.name));
    Ok(ExitCode::Success)
}
