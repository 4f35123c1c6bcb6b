//! `plumb proj get`

use crate::context::Context;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::output::Format;
use crate::select::project::{ProjectArg, parse};
use crate::view::describe;
use crate::view::project::{allowed_cluster_kinds, destinations, orphans, service_accounts};
use plumb_core::text::one_line;

/// Show what a project allows.
///
/// Example: `plumb proj get payments -o yaml`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    project: ProjectArg,
    /// Output format.
    #[arg(long, short = 'o', value_enum, default_value_t = Format::Wide)]
    output: Format,
}

pub(super) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let client = context.client().await?;
    let object = args.project.read(context, &client).await?;
    let out = context.out;
    match args.output {
        Format::Json | Format::Yaml => out.object(args.output, &describe::readable(&object))?,
        Format::Name => out.print(object.name().unwrap_or_default()),
        Format::Wide => {
            let project = parse(&object)?;
            let spec = &project.spec;
            let denied: Vec<String> = spec
                .namespace_resource_blacklist
                .iter()
                .map(|one| format!("{}/{}", one.group, one.kind))
                .collect();
            let keys: Vec<String> = spec.signature_keys.iter().map(|key| key.key_id.clone()).collect();
            line(context, "Name:", std::slice::from_ref(&project.metadata.name));
            out.print(format!("{:<29}{}", "Description:", one_line(&spec.description)).trim_end());
            line(context, "Destinations:", &destinations(spec));
            line(context, "Repositories:", &spec.source_repos);
            line(context, "Source Namespaces:", &spec.source_namespaces);
            line(context, "Allowed Cluster Resources:", &allowed_cluster_kinds(spec));
            line(context, "Denied Namespaced Resources:", &denied);
            line(context, "Signature keys:", &keys);
            line(context, "Orphaned Resources:", &[orphans(spec.orphaned_resources.as_ref())]);
            line(context, "Service Accounts:", &service_accounts(spec));
        }
    }
    Ok(ExitCode::Success)
}

/// Prints the first text beside the label, the others below it.
fn line(context: &Context, label: &str, texts: &[String]) {
    let none = ["<none>".to_owned()];
    let texts = if texts.is_empty() { &none } else { texts };
    for (index, text) in texts.iter().enumerate() {
        let label = if index == 0 { label } else { "" };
        context.out.print(format!("{label:<29}{}", one_line(text)).trim_end());
    }
}
