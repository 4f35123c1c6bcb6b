//! `plumb repo get`

use crate::context::Context;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::output::Format;
use crate::secrets::repositories::{find, readable, type_name};
use plumb_core::project::shown_repo_url;

/// Show a registered repository, without its credentials.
///
/// Example: `plumb repo get https://example.com/payments.git -o yaml`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// URL of the repository.
    repo: String,
    /// Project of the repository.
    #[arg(long, add = crate::complete::projects())]
    project: Option<String>,
    /// Output format.
    #[arg(long, short = 'o', value_enum, default_value_t = Format::Wide)]
    output: Format,
}

pub(super) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let client = context.client().await?;
    let (repository, _) = find(context, &client, &args.repo, args.project.as_deref()).await?;
    match args.output {
        Format::Json | Format::Yaml => context.out.object(args.output, &readable(&repository))?,
        Format::Name => context.out.print(&repository.url),
        Format::Wide => {
            let row = vec![
                type_name(repository.kind).to_owned(),
                repository.name.clone().unwrap_or_default(),
                shown_repo_url(&repository.url),
                (!repository.credentials.is_empty()).to_string(),
                repository.project.clone().unwrap_or_default(),
            ];
            context.out.table(&["TYPE", "NAME", "REPO", "CREDS", "PROJECT"], &[row]);
        }
    }
    Ok(ExitCode::Success)
}
