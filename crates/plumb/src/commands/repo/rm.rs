//! `plumb repo rm`

use crate::context::{Context, delete, without_children};
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::secrets::repositories::find;

/// Unregister repositories.
///
/// Example: `plumb repo rm https://example.com/payments.git`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// URL of the repository.
    #[arg(required = true)]
    repos: Vec<String>,
    /// Project of the repository.
    #[arg(long, add = crate::complete::projects())]
    project: Option<String>,
}

pub(super) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let client = context.client().await?;
    for url in &args.repos {
        let (_, secret) = find(context, &client, url, args.project.as_deref()).await?;
        delete(&client, &secret, &without_children()).await?;
        context.out.print(&format!("Repository '{url}' removed"));
    }
    Ok(ExitCode::Success)
}
