//! `plumb repo rm`

use crate::context::{Context, at_once, delete};
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::secrets::repositories::find;

/// Remove repositories from the registered ones.
///
/// Example: `plumb repo rm https://example.com/payments.git`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Address of the repository.
    #[arg(required = true)]
    repos: Vec<String>,
    /// The project that it is registered for.
    #[arg(long, add = crate::complete::projects())]
    project: Option<String>,
}

pub(super) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let client = context.client().await?;
    for url in &args.repos {
        let (_, secret) = find(context, &client, url, args.project.as_deref()).await?;
        delete(&client, &secret, &at_once()).await?;
        context.out.print(&format!("Repository '{url}' removed"));
    }
    Ok(ExitCode::Success)
}
