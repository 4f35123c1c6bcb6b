//! `plumb cluster get`

use crate::context::Context;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::output::Format;
use crate::secrets::clusters::{find, readable};

/// Show a registered cluster, without its credentials.
///
/// Example: `plumb cluster get production -o json`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Name or URL of the cluster.
    cluster: String,
    /// Output format.
    #[arg(long, short = 'o', value_enum, default_value_t = Format::Yaml)]
    output: Format,
}

pub(super) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let client = context.client().await?;
    let one = find(context, &client, &args.cluster).await?;
    match args.output {
        Format::Name => context.out.print(&one.cluster.name),
        Format::Wide => context.out.table(&["SERVER", "NAME"], &[vec![one.cluster.server, one.cluster.name]]),
        format => context.out.object(format, &readable(&one))?,
    }
    Ok(ExitCode::Success)
}
