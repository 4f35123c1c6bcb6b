//! `plumb app confirm-deletion`

use jiff::Timestamp;
use plumb_crd::annotations::DELETION_APPROVED;
use serde_json::json;

use crate::context::Context;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::select::app::{AppArg, patch, read_whole};

/// Confirm deletions that wait for confirmation.
///
/// plumb waits for confirmation before it deletes an object with `Prune=confirm` or `Delete=confirm`, an object that
/// holds data, or more than half of an app. This confirms all deletions that are waiting now.
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
