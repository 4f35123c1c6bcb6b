//! `plumb app terminate-op`

use serde_json::json;

use crate::context::Context;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::select::app::{AppArg, patch};

/// Stop the operation that is in progress.
///
/// Running hooks are deleted; applied objects stay. Example: `plumb app terminate-op payments`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    app: AppArg,
}

pub(super) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let client = context.client().await?;
    let (target, application) = args.app.read(context, &client).await?;
    if application.operation.is_none() || application.status.operation_state.is_none() {
        return Err(CommandError::new(format!("no operation is in progress on {}", target.name)));
    }
    patch(&client, &target, json!({"status": {"operationState": {"phase": "Terminating"}}})).await?;
    context.out.note(&format!("stopping the operation on {}", target.name));
    Ok(ExitCode::Success)
}
